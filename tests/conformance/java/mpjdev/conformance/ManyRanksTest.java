package mpjdev.conformance;

import static mpjdev.conformance.TestMessages.await;
import static mpjdev.conformance.TestMessages.check;
import static mpjdev.conformance.TestMessages.put;
import static mpjdev.conformance.TestMessages.signal;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import mpjdev.Comm;
import mpjdev.ObjectReadBuffer;
import mpjdev.ObjectWriteBuffer;
import mpjdev.ReadBuffer;
import mpjdev.Request;
import mpjdev.Status;
import mpjdev.Type;
import mpjdev.WriteBuffer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Exchanges of all ranks with all, of threads at once, and of much data at once. */
@Timeout(120)
class ManyRanksTest {
    private static final int MEBI = 1 << 20;

    @ParameterizedTest
    @EnumSource
    void shouldExchangeBetweenAllRanksAtOnce(TransportFixture transport) throws Exception {
        int ranks = 4;
        int rounds = 15;
        transport.run(ranks, world -> {
            int me = world.id();
            Random random = new Random(me);
            int capacity = 60_000;
            List<Request> sends = new ArrayList<>();
            ObjectReadBuffer[] in = new ObjectReadBuffer[ranks * rounds];
            Request[] receives = new Request[in.length];
            try (ObjectWriteBuffer out = new ObjectWriteBuffer(capacity)) {
                for (int round = 0; round < rounds; round++) {
                    for (int peer = 0; peer < ranks; peer++) {
                        int at = round * ranks + peer;
                        in[at] = new ObjectReadBuffer(capacity);
                        receives[at] = world.irecv(in[at], peer, round % 3);
                        int length = random.nextInt(3) == 0 ? random.nextInt(14_000) : random.nextInt(40);
                        put(out, me, peer, round, length, random.nextInt(4) == 0 ? random.nextInt(5000) : -1);
                        sends.add(round % 2 == 0 ? world.isend(out, peer, round % 3) : world.issend(out, peer, round % 3));
                    }
                }
            }
            for (int at = 0; at < in.length; at++) {
                Status status = receives[at].iwait();
                assertEquals(at % ranks, status.source);
                assertEquals(at / ranks, check(in[at], status, me), "messages of one tag overtook each other");
                in[at].close();
            }
            Request.iwaitall(sends.toArray(new Request[0]));
            world.barrier();
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldServeManyThreadsOfManyRanksWithTagsOfTheirOwn(TransportFixture transport) throws Exception {
        int ranks = 3;
        int threads = 5;
        int messages = 40;
        transport.run(ranks, world -> {
            AtomicReference<Throwable> thrown = new AtomicReference<>();
            List<Thread> all = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                int tag = t;
                all.add(new Thread(() -> {
                    try {
                        circulate(world, tag, messages);
                    } catch (Throwable e) {
                        thrown.compareAndSet(null, e);
                    }
                }));
            }
            all.forEach(Thread::start);
            for (Thread thread : all) {
                thread.join();
            }
            assertNull(thrown.get());
        });
    }

    /** Sends to the right and receives from the left: up to a few pages, with objects every fifth time. */
    private static void circulate(Comm world, int tag, int messages) throws Exception {
        int right = (world.id() + 1) % world.size();
        int left = (world.id() + world.size() - 1) % world.size();
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(20_000); ObjectReadBuffer in = new ObjectReadBuffer(20_000)) {
            for (int i = 0; i < messages; i++) {
                put(out, world.id(), right, i, i * i % 4000, i % 5 == 0 ? 3000 : -1);
                Request send = i % 2 == 0 ? world.isend(out, right, tag) : world.issend(out, right, tag);
                Status status = world.recv(in, i % 3 == 0 ? Comm.ANY_SOURCE : left, tag);
                assertEquals(i, check(in, status, world.id()));
                send.iwait();
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldKeepLargeMessagesWhole(TransportFixture transport) throws Exception {
        transport.run(2, world -> {
            for (int octets : new int[] {0, 8, 1 << 10, 64 << 10, MEBI, 8 * MEBI, 64 * MEBI}) {
                pass(world, octets);
            }
        });
    }

    @Tag("soak")
    @Timeout(600)
    @ParameterizedTest
    @EnumSource
    void shouldKeepAMessageOfAGibWhole(TransportFixture transport) throws Exception {
        transport.run(2, world -> pass(world, 1024 * MEBI));
    }

    /** There and back, in place: so no rank needs a second copy. */
    private static void pass(Comm world, int octets) throws Exception {
        int n = octets / Long.BYTES;
        int capacity = octets + 8;
        if (world.id() == 0) {
            try (WriteBuffer out = new WriteBuffer(capacity); ReadBuffer in = new ReadBuffer(capacity)) {
                var longs = out.view(Type.LONG, n).asLongBuffer();
                for (int i = 0; i < n; i++) {
                    longs.put(i, i * 0x9e37_79b9_7f4a_7c15L);
                }
                world.send(out, 1, 1);
                world.recv(in, 1, 2);
                checkLongs(in, n);
            }
        } else {
            try (ReadBuffer in = new ReadBuffer(capacity)) {
                world.recv(in, 0, 1);
                checkLongs(in, n);
                world.send(in, 0, 2);
            }
        }
    }

    private static void checkLongs(ReadBuffer in, int n) throws Exception {
        var longs = in.view(Type.LONG, n).asLongBuffer();
        for (int i = 0; i < n; i++) {
            if (longs.get(i) != i * 0x9e37_79b9_7f4a_7c15L) {
                throw new AssertionError("element " + i + " of " + n + " is " + longs.get(i));
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldBearAFloodOfLargeMessages(TransportFixture transport) throws Exception {
        int messages = 30;
        transport.run(4, world -> {
            int capacity = 300_100;
            if (world.id() > 0) {
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(capacity)) {
                    for (int i = 0; i < messages; i++) {
                        put(out, world.id(), 0, i, 75_000, -1);
                        world.send(out, 0, 0);
                    }
                }
                await(world, 0, 1);
                return;
            }
            int[] next = new int[4];
            try (ObjectReadBuffer in = new ObjectReadBuffer(capacity)) {
                for (int i = 0; i < 3 * messages; i++) {
                    Status status = world.recv(in, Comm.ANY_SOURCE, 0);
                    assertEquals(next[status.source]++, check(in, status, 0));
                }
            }
            for (int source = 1; source < 4; source++) {
                assertEquals(messages, next[source]);
                signal(world, source, 1);
            }
        });
    }
}
