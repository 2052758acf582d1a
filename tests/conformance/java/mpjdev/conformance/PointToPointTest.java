package mpjdev.conformance;

import static mpjdev.conformance.TestMessages.await;
import static mpjdev.conformance.TestMessages.check;
import static mpjdev.conformance.TestMessages.testMessage;
import static mpjdev.conformance.TestMessages.put;
import static mpjdev.conformance.TestMessages.signal;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import mpjdev.CancelledException;
import mpjdev.Comm;
import mpjdev.ObjectReadBuffer;
import mpjdev.ObjectWriteBuffer;
import mpjdev.PeerFailedException;
import mpjdev.Request;
import mpjdev.Status;
import mpjdev.TimedOutException;
import mpjdev.TruncationException;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Requirements for every transport, in terms of the public API. One more transport is one more {@link
 * TransportFixture}.
 *
 * <p>Most messages here carry their own description (source, destination, number, length), so that one that
 * is mixed up, doubled or cut cannot pass.
 */
@Timeout(120)
class PointToPointTest {
    /** Primary payloads from nothing to far past every internal limit. */
    private static final int[] LENGTHS = {0, 1, 7, 100, 250, 1000, 5000, 100_000};
    private static final int CAPACITY = 500_000;

    @ParameterizedTest
    @EnumSource
    void shouldKeepMessagesOfEverySizeWhole(TransportFixture transport) throws Exception {
        transport.run(2, world -> {
            for (int length : LENGTHS) {
                for (int text : new int[] {-1, 0, 100, 5000, 200_000}) {
                    // Room for all, for the primary payload only, and for that alone.
                    for (int capacity : new int[] {CAPACITY, 32 + 8 + 4 * length + 4 + 8}) {
                        if (world.id() == 0) {
                            try (ObjectWriteBuffer out = testMessage(capacity, 0, 1, length, length, text)) {
                                world.send(out, 1, 5);
                            }
                        } else {
                            try (ObjectReadBuffer in = new ObjectReadBuffer(capacity)) {
                                Status status = world.recv(in, 0, 5);
                                assertEquals(length, check(in, status, 1));
                            }
                        }
                    }
                }
            }
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldNotLetMessagesOvertakeEachOther(TransportFixture transport) throws Exception {
        transport.run(2, world -> {
            int messages = 400;
            Random random = new Random(11);
            int[] lengths = random.ints(messages, 0, 600).toArray();
            int[] texts = random.ints(messages, -1, 800).toArray();
            if (world.id() == 0) {
                List<Request> requests = new ArrayList<>();
                for (int i = 0; i < messages; i++) {
                    try (ObjectWriteBuffer out = testMessage(3000, 0, 1, i, lengths[i], texts[i] / 2)) {
                        if (i % 3 == 0) {
                            world.send(out, 1, 5);
                        } else {
                            requests.add(i % 3 == 1 ? world.isend(out, 1, 5) : world.issend(out, 1, 5));
                        }
                    }
                }
                Request.iwaitall(requests.toArray(new Request[0]));
            } else {
                try (ObjectReadBuffer in = new ObjectReadBuffer(3000)) {
                    for (int i = 0; i < messages; i++) {
                        Status status = i % 2 == 0 ? world.recv(in, 0, 5) : world.recv(in, Comm.ANY_SOURCE,
                                Comm.ANY_TAG);
                        assertEquals(i, check(in, status, 1));
                    }
                }
            }
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldGiveWildcardReceivesEveryMessageOnce(TransportFixture transport) throws Exception {
        int senders = 4;
        int messages = 100;
        transport.run(senders + 1, world -> {
            if (world.id() > 0) {
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(200)) {
                    for (int i = 0; i < messages; i++) {
                        put(out, world.id(), 0, i, i % 30, i % 2 == 0 ? 300 : -1);
                        world.send(out, 0, i % 5);
                    }
                }
                return;
            }
            BitSet seen = new BitSet();
            int[][] next = new int[senders + 1][5];
            try (ObjectReadBuffer in = new ObjectReadBuffer(200)) {
                for (int i = 0; i < senders * messages; i++) {
                    Status status = i % 2 == 0 ? world.recv(in, Comm.ANY_SOURCE, Comm.ANY_TAG)
                            : world.recv(in, world.probe(Comm.ANY_SOURCE, Comm.ANY_TAG).source, Comm.ANY_TAG);
                    int number = check(in, status, 0);
                    assertEquals(number % 5, status.tag);
                    assertFalse(seen.get(status.source * messages + number), "twice");
                    seen.set(status.source * messages + number);
                    assertEquals(next[status.source][status.tag]++, number / 5, "in order by source and tag");
                }
            }
            assertEquals(senders * messages, seen.cardinality());
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldNotMixTheHalvesOfManyOutstandingReceives(TransportFixture transport) throws Exception {
        int messages = 60;
        transport.run(3, world -> {
            if (world.id() > 0) {
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(64)) {
                    await(world, 0, 99);
                    for (int i = 0; i < messages; i++) {
                        put(out, world.id(), 0, i, i % 4, 50 + 7 * i + world.id());
                        world.isend(out, 0, i % 2).free();
                    }
                }
                await(world, 0, 98);
                return;
            }
            ObjectReadBuffer[] in = new ObjectReadBuffer[2 * messages];
            Request[] requests = new Request[2 * messages];
            Random random = new Random(4);
            for (int i = 0; i < requests.length; i++) {
                in[i] = new ObjectReadBuffer(64);
                // Each tag has as many receives as messages, exact ones and wildcards.
                requests[i] = world.irecv(in[i], Comm.ANY_SOURCE, i % 2);
            }
            signal(world, 1, 99);
            signal(world, 2, 99);
            BitSet seen = new BitSet();
            for (int left = requests.length; left > 0; left--) {
                Status status;
                if (left % 2 == 0) {
                    status = Request.iwaitany(requests);
                } else {
                    int at = random.nextInt(requests.length);
                    while (requests[at] == null) {
                        at = (at + 1) % requests.length;
                    }
                    status = requests[at].iwait();
                    status.index = at;
                }
                int number = check(in[status.index], status, 0);
                assertEquals(number % 2, status.tag);
                seen.set(status.source * messages + number);
                requests[status.index] = null;
                in[status.index].close();
            }
            assertEquals(2 * messages, seen.cardinality());
            signal(world, 1, 98);
            signal(world, 2, 98);
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldTellByAProbeWhatAMessageNeeds(TransportFixture transport) throws Exception {
        transport.run(2, world -> {
            for (int length : LENGTHS) {
                if (world.id() == 0) {
                    try (ObjectWriteBuffer out = testMessage(CAPACITY, 0, 1, length, length, 50)) {
                        world.send(out, 1, length);
                    }
                } else {
                    Status probed = world.probe(Comm.ANY_SOURCE, Comm.ANY_TAG);
                    assertEquals(0, probed.source);
                    assertEquals(length, probed.tag);
                    assertEquals(probed.size(), world.iprobe(0, length).size());
                    try (ObjectReadBuffer in = new ObjectReadBuffer(probed.size())) {
                        Status status = world.recv(in, probed.source, probed.tag);
                        assertEquals(probed.size(), status.size());
                        assertEquals(length, check(in, status, 1));
                    }
                }
            }
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldCompleteASynchronousSendOnlyWhenItIsMatched(TransportFixture transport) throws Exception {
        transport.run(2, world -> {
            for (int text : new int[] {-1, 10, 1000}) {
                if (world.id() == 0) {
                    try (ObjectWriteBuffer out = testMessage(100, 0, 1, 3, 5, text)) {
                        Request request = world.issend(out, 1, 1);
                        await(world, 1, 2);
                        assertNull(request.itest());
                        assertThrows(TimedOutException.class, () -> request.iwait(1, TimeUnit.MILLISECONDS));
                        signal(world, 1, 3);
                        assertNotNull(request.iwait(30, TimeUnit.SECONDS));
                        world.ssend(out, 1, 1);
                    }
                } else {
                    try (ObjectReadBuffer in = new ObjectReadBuffer(100)) {
                        world.probe(0, 1);
                        signal(world, 0, 2);
                        await(world, 0, 3);
                        assertEquals(3, check(in, world.recv(in, 0, 1), 1));
                        assertEquals(3, check(in, world.recv(in, 0, 1), 1));
                    }
                }
            }
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldConsumeWhatIsTooLargeAndNothingMore(TransportFixture transport) throws Exception {
        transport.run(2, world -> {
            for (int length : new int[] {10, 1000, 50_000}) {
                for (int text : new int[] {-1, 30, 70_000}) {
                    if (world.id() == 0) {
                        try (ObjectWriteBuffer out = testMessage(CAPACITY, 0, 1, 1, length, text)) {
                            world.send(out, 1, 1);
                            put(out, 0, 1, 2, 0, 20);
                            world.send(out, 1, 1);
                        }
                    } else {
                        int size = world.probe(0, 1).size();
                        // Capacities are multiples of 8.
                        int tooSmall = (size - 1) / 8 * 8;
                        try (ObjectReadBuffer in = new ObjectReadBuffer(tooSmall)) {
                            TruncationException e =
                                    assertThrows(TruncationException.class, () -> world.recv(in, 0, 1));
                            assertTrue(e.getMessage().contains("" + size) && e.getMessage().contains("" + tooSmall),
                                    e.getMessage());
                            assertEquals(0, in.sectionCount());
                            assertEquals(tooSmall, in.capacity());
                        }
                        try (ObjectReadBuffer in = new ObjectReadBuffer(CAPACITY)) {
                            assertEquals(2, check(in, world.recv(in, Comm.ANY_SOURCE, Comm.ANY_TAG), 1));
                        }
                    }
                }
            }
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldExchangeLargeMessagesInBothDirectionsAtOnce(TransportFixture transport) throws Exception {
        transport.run(3, world -> {
            int me = world.id();
            int right = (me + 1) % 3;
            int left = (me + 2) % 3;
            for (int round = 0; round < 5; round++) {
                try (ObjectWriteBuffer a = testMessage(1_500_000, me, right, 10 + round, 300_000, 100_000);
                        ObjectWriteBuffer b = testMessage(1_500_000, me, left, 20 + round, 300_000, -1);
                        ObjectReadBuffer c = new ObjectReadBuffer(1_500_000);
                        ObjectReadBuffer d = new ObjectReadBuffer(1_500_000)) {
                    Request[] all = {world.isend(a, right, 1), world.isend(b, left, 2), world.irecv(c, left, 1),
                        world.irecv(d, right, 2)};
                    a.clear();
                    Status[] status = Request.iwaitall(all);
                    assertEquals(10 + round, check(c, status[2], me));
                    assertEquals(20 + round, check(d, status[3], me));
                }
            }
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldDeliverAFloodThatIsReceivedLate(TransportFixture transport) throws Exception {
        int messages = 1500;
        transport.run(3, world -> {
            if (world.id() > 0) {
                List<Request> requests = new ArrayList<>();
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(60_000)) {
                    for (int i = 0; i < messages; i++) {
                        put(out, world.id(), 0, i, i % 100 == 0 ? 12_000 : 10, i % 10 == 0 ? 500 : -1);
                        requests.add(world.isend(out, 0, 0));
                    }
                }
                signal(world, 0, 1);
                Request.iwaitall(requests.toArray(new Request[0]));
                return;
            }
            await(world, 1, 1);
            await(world, 2, 1);
            int[] next = new int[3];
            try (ObjectReadBuffer in = new ObjectReadBuffer(60_000)) {
                for (int i = 0; i < 2 * messages; i++) {
                    Status status = world.recv(in, Comm.ANY_SOURCE, 0);
                    assertEquals(next[status.source]++, check(in, status, 0));
                }
            }
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldSendToItself(TransportFixture transport) throws Exception {
        transport.run(2, world -> {
            int me = world.id();
            try (ObjectWriteBuffer out = testMessage(500, me, me, 1, 10, 700);
                    ObjectReadBuffer in = new ObjectReadBuffer(500)) {
                world.send(out, me, 1);
                assertEquals(1, check(in, world.recv(in, me, 1), me));
                Request receive = world.irecv(in, Comm.ANY_SOURCE, 2);
                world.ssend(out, me, 2);
                assertEquals(1, check(in, receive.iwait(), me));
                // A receive from any source fails when all others have finished, whatever its own rank may
                // still send.
                world.barrier();
            }
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldKeepCommunicatorsApart(TransportFixture transport) throws Exception {
        transport.run(4, world -> {
            Comm dup = world.dup();
            Comm pair = world.split(world.id() / 2, -world.id());
            Comm three = world.create(new int[] {3, 0, 1});
            assertEquals(world.id() == 2, three == null);
            List<Comm> comms = new ArrayList<>(List.of(world, dup, pair));
            if (three != null) {
                comms.add(three);
            }
            List<Request> sends = new ArrayList<>();
            for (int c = 0; c < comms.size(); c++) {
                Comm comm = comms.get(c);
                for (int to = 0; to < comm.size(); to++) {
                    try (ObjectWriteBuffer out = testMessage(100, comm.id(), to, c, 3, 200)) {
                        sends.add(comm.isend(out, to, 7));
                    }
                }
            }
            for (int c = comms.size() - 1; c >= 0; c--) {
                Comm comm = comms.get(c);
                try (ObjectReadBuffer in = new ObjectReadBuffer(100)) {
                    for (int i = 0; i < comm.size(); i++) {
                        Status status = comm.recv(in, Comm.ANY_SOURCE, Comm.ANY_TAG);
                        assertEquals(c, check(in, status, comm.id()), "a message of another communicator");
                    }
                    assertNull(comm.iprobe(Comm.ANY_SOURCE, Comm.ANY_TAG));
                }
            }
            Request.iwaitall(sends.toArray(new Request[0]));
            world.barrier();
            for (Comm comm : comms.subList(1, comms.size())) {
                comm.barrier();
                comm.free();
            }
            world.barrier();
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldReceiveEachMessageOnceWhateverIsCancelled(TransportFixture transport) throws Exception {
        transport.run(2, world -> {
            int messages = 100;
            if (world.id() == 0) {
                for (int i = 0; i < messages; i++) {
                    try (ObjectWriteBuffer out = testMessage(64, 0, 1, i, 2, 100)) {
                        world.send(out, 1, 1);
                    }
                }
                await(world, 1, 2);
                return;
            }
            int next = 0;
            while (next < messages) {
                try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                    Request request = world.irecv(in, 0, 1);
                    if (request.cancel()) {
                        assertThrows(CancelledException.class, request::iwait);
                        assertEquals(0, in.sectionCount());
                    } else {
                        assertEquals(next++, check(in, request.iwait(), 1));
                    }
                }
                if (world.iprobe(0, 1) == null) {
                    Thread.yield();
                }
            }
            signal(world, 0, 2);
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldServeThreadsThatShareATag(TransportFixture transport) throws Exception {
        int threads = 4;
        int messages = 80;
        transport.run(2, world -> {
            AtomicReference<Throwable> thrown = new AtomicReference<>();
            BitSet seen = new BitSet();
            List<Thread> all = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                int number = t;
                all.add(new Thread(() -> {
                    try (ObjectWriteBuffer out = new ObjectWriteBuffer(100);
                            ObjectReadBuffer in = new ObjectReadBuffer(100)) {
                        for (int i = 0; i < messages; i++) {
                            int id = number * messages + i;
                            put(out, world.id(), 1 - world.id(), id, i % 5, id % 3 == 0 ? -1 : id);
                            Request send = world.isend(out, 1 - world.id(), 0);
                            int got = check(in, world.recv(in, Comm.ANY_SOURCE, Comm.ANY_TAG), world.id());
                            synchronized (seen) {
                                assertFalse(seen.get(got), "twice");
                                seen.set(got);
                            }
                            send.iwait();
                        }
                    } catch (Throwable e) {
                        thrown.set(e);
                    }
                }));
            }
            all.forEach(Thread::start);
            for (Thread thread : all) {
                thread.join();
            }
            assertNull(thrown.get());
            assertEquals(threads * messages, seen.cardinality());
        });
    }

    @ParameterizedTest
    @EnumSource
    void shouldEndEveryWaitForARankThatFails(TransportFixture transport) {
        ArithmeticException e = assertThrows(ArithmeticException.class, () -> transport.run(4, world -> {
            try (ObjectReadBuffer in = new ObjectReadBuffer(8); ObjectWriteBuffer out = new ObjectWriteBuffer(8)) {
                switch (world.id()) {
                    case 0:
                        world.recv(in, 3, 0);
                        break;
                    case 1:
                        world.ssend(out, 3, 0);
                        break;
                    case 2:
                        world.barrier();
                        break;
                    default:
                        awaitUnreceived(world, 1, Comm.ANY_TAG);
                        throw new ArithmeticException("rank 3");
                }
                throw new AssertionError("rank " + world.id() + " has waited without success");
            } catch (PeerFailedException failed) {
                // Processes are on their own: a barrier may also fail for a rank that has left because of
                // rank 3.
                assertTrue(failed.rank() == 3 || world.id() == 2 && transport == TransportFixture.PROCESSES, failed::toString);
            }
        }));
        assertEquals("rank 3", e.getMessage());
    }

    /** Waits until a message is there, without receiving it. */
    private static void awaitUnreceived(Comm world, int from, int tag) {
        assertNotNull(world.probe(from, tag));
    }

    @ParameterizedTest
    @EnumSource
    void shouldFailAReceiveFromARankThatHasFinishedButDeliverWhatItSent(TransportFixture transport) throws Exception {
        transport.run(3, world -> {
            if (world.id() > 0) {
                try (ObjectWriteBuffer out = testMessage(64, world.id(), 0, 5, 2, 300)) {
                    world.send(out, 0, 1);
                }
                return;
            }
            try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                // The split ones need their receiver, so both are still there; then they go.
                assertEquals(5, check(in, world.recv(in, 1, 1), 0));
                assertEquals(5, check(in, world.recv(in, 2, 1), 0));
                assertEquals(1, assertThrows(PeerFailedException.class, () -> world.recv(in, 1, 1)).rank());
                assertThrows(PeerFailedException.class, () -> world.recv(in, Comm.ANY_SOURCE, Comm.ANY_TAG));
                assertEquals(64, in.capacity());
            }
        });
    }
}
