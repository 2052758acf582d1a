package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import mpjdev.core.Native;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Long tests: messages near the largest size, and random traffic for minutes. */
@Tag("soak")
@Timeout(1800)
class SoakTest {
    private static final int GIBI = 1 << 30;

    /**
     * A direct buffer: the engine copies it as a whole, and -Xcheck:jni does not slow it down as it does heap
     * arrays.
     */
    private static void fill(ByteBuffer direct, long seed) {
        for (int at = 0; at < direct.capacity(); at += 8) {
            direct.putLong(at, seed * 0x9e3779b97f4a7c15L + at);
        }
    }

    private static void check(ByteBuffer direct, long seed) {
        for (int at = 0; at < direct.capacity(); at += 8) {
            if (direct.getLong(at) != seed * 0x9e3779b97f4a7c15L + at) {
                throw new AssertionError("octet " + at + " differs");
            }
        }
    }

    @Test
    void shouldSendAGibibyte() throws Exception {
        long before = Native.usedMemory();
        ByteBuffer source = ByteBuffer.allocateDirect(GIBI).order(ByteOrder.nativeOrder());
        ByteBuffer dest = ByteBuffer.allocateDirect(GIBI).order(ByteOrder.nativeOrder());
        fill(source, 1);
        for (Type type : new Type[] {Type.LONG, Type.BYTE, Type.FLOAT}) {
            int count = GIBI / AnyArray.size(type);
            Comm.runThreads(2, world -> {
                int capacity = (int) Buffer.requiredCapacity(type, count);
                if (world.id() == 0) {
                    try (WriteBuffer out = new WriteBuffer(capacity)) {
                        out.write(source, type, 0, count);
                        world.send(out, 1, 0);
                    }
                } else {
                    try (ReadBuffer in = new ReadBuffer(capacity)) {
                        Status status = world.recv(in, 0, 0);
                        // A count of 2^28 and more does not fit the packed status.
                        assertEquals(count, status.count());
                        assertSame(type, status.type());
                        assertEquals(capacity, status.size());
                        in.read(dest, type, 0, count);
                    }
                }
            });
            check(dest, 1);
            fill(dest, 2);
        }
        assertEquals(before, Native.usedMemory());
    }

    @Test
    void shouldFillTheLargestCapacity() throws Exception {
        ByteBuffer direct = ByteBuffer.allocateDirect(Buffer.MAX_CAPACITY - 8).order(ByteOrder.nativeOrder());
        int count = direct.capacity();
        fill(direct, 3);
        try (WriteBuffer out = new WriteBuffer(Buffer.MAX_CAPACITY)) {
            out.write(direct, Type.BYTE, 0, count);
            BufferOverflowException e = null;
            try {
                out.write(new byte[0], 0, 0);
            } catch (BufferOverflowException thrown) {
                e = thrown;
            }
            assertTrue(e != null && e.getMessage().contains("0 available"), "" + e);
            Comm.runThreads(1, world -> {
                try (ReadBuffer in = new ReadBuffer(Buffer.MAX_CAPACITY)) {
                    Request receive = world.irecv(in, 0, 0);
                    world.send(out, 0, 0);
                    Status status = receive.iwait();
                    assertEquals(count, status.count());
                    assertEquals(Buffer.MAX_CAPACITY, status.size());
                    fill(direct, 4);
                    in.read(direct, Type.BYTE, 0, count);
                    check(direct, 3);
                }
            });
        }
    }

    /** A message in flight, as its sender has recorded it. */
    private static final class Sent {
        final int number;
        final int length;

        Sent(int number, int length) {
            this.number = number;
            this.length = length;
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldSurviveLongRandomTraffic(boolean split) throws Exception {
        long seed = Long.getLong("mpjdev.soak.seed", 20260601L);
        long nanos = TimeUnit.SECONDS.toNanos(Long.getLong("mpjdev.soak.seconds", 120));
        int ranks = 8;
        int buffers = Native.openBuffers();
        int requests = Native.openRequests();
        long memory = Native.usedMemory();
        AtomicLong exchanged = new AtomicLong();
        long end = System.nanoTime() + nanos;
        System.out.println("random traffic, seed " + seed + (split ? ", split messages" : ""));
        Wait.job(split, ranks, world -> {
            // All ranks draw the same random rounds, so a receiver knows all senders and sizes.
            Random common = new Random(seed);
            Random own = new Random(seed + world.id());
            Comm comm = world.dup();
            for (int round = 0; ; round++) {
                int over = System.nanoTime() > end ? 1 : 0;
                if (agree(comm, over)) {
                    break;
                }
                exchange(comm, common, own, exchanged);
                if (round % 50 == 49) {
                    Comm next = comm.split(0, own.nextInt());
                    comm.free();
                    comm = next;
                }
            }
        });
        System.out.println(exchanged.get() + " messages, seed " + seed);
        Wait.untilCollected("nothing is open", () -> Native.openBuffers() <= buffers
                && Native.openRequests() <= requests && Native.usedMemory() <= memory);
    }

    /** Returns whether rank 0 has ended the test. */
    private static boolean agree(Comm comm, int over) throws Exception {
        int[] value = {over};
        try (WriteBuffer out = new WriteBuffer(16); ReadBuffer in = new ReadBuffer(16)) {
            if (comm.id() == 0) {
                out.write(value, 0, 1);
                for (int to = 1; to < comm.size(); to++) {
                    comm.send(out, to, 1_000_000);
                }
            } else {
                comm.recv(in, 0, 1_000_000);
                in.read(value, 0, 1);
            }
        }
        return value[0] != 0;
    }

    private static void exchange(Comm comm, Random common, Random own, AtomicLong exchanged) throws Exception {
        int size = comm.size();
        int me = comm.id();
        List<Deque<Sent>> expected = new ArrayList<>();
        List<Request> sends = new ArrayList<>();
        int incoming = 0;
        for (int from = 0; from < size; from++) {
            expected.add(new ArrayDeque<>());
        }
        for (int message = 0; message < 20 * size; message++) {
            int from = common.nextInt(size);
            int to = common.nextInt(size);
            int kind = common.nextInt(100);
            int length = kind < 70 ? common.nextInt(100) : kind < 95 ? common.nextInt(5000) : common.nextInt(200_000);
            int text = common.nextInt(3) == 0 ? common.nextInt(2000) : -1;
            if (to == me) {
                expected.get(from).add(new Sent(message, length));
                incoming++;
            }
            if (from != me) {
                continue;
            }
            try (ObjectWriteBuffer out = new ObjectWriteBuffer(8 * length + 100,
                    own.nextBoolean() ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN)) {
                out.write(new int[] {message, length, text}, 0, 3);
                long[] body = new long[length];
                java.util.Arrays.fill(body, message);
                if (own.nextBoolean()) {
                    out.write(body, 0, length);
                } else {
                    out.strGather(body, length == 0 ? 0 : length - 1, 1, 0, 1, new int[] {length, -1});
                }
                if (text >= 0) {
                    out.write(new Object[] {"t".repeat(text), message}, 0, 2);
                }
                sends.add(own.nextInt(4) == 0 ? comm.issend(out, to, 0) : comm.isend(out, to, 0));
            }
        }
        for (int i = 0; i < incoming; i++) {
            Status probed = comm.probe(Comm.ANY_SOURCE, 0);
            try (ObjectReadBuffer in = new ObjectReadBuffer(probed.size())) {
                Status status = own.nextBoolean() ? comm.recv(in, probed.source, 0)
                        : comm.irecv(in, probed.source, 0).iwait();
                Sent sent = expected.get(status.source).remove();
                int[] head = new int[3];
                in.read(head, 0, 3);
                assertEquals(sent.number, head[0], "overtaken or lost");
                assertEquals(sent.length, head[1]);
                long[] body = new long[sent.length];
                in.read(body, 0, sent.length);
                for (long value : body) {
                    assertEquals(sent.number, value);
                }
                if (head[2] >= 0) {
                    Object[] objects = new Object[2];
                    in.read(objects, 0, 2);
                    assertEquals(head[2], ((String) objects[0]).length());
                    assertEquals(sent.number, objects[1]);
                } else {
                    assertNull(in.nextType());
                }
                exchanged.incrementAndGet();
            }
        }
        Request.iwaitall(sends.toArray(new Request[0]));
        comm.barrier();
    }
}
