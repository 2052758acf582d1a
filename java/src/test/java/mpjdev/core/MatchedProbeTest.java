package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import mpjdev.Wait;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Matched probes: the message belongs to the prober, its size is known, and it is received or freed once. */
@Timeout(60)
class MatchedProbeTest {
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(20);
    private static final int TAG = 7;

    private int buffers;
    private int requests;
    private long memory;

    @BeforeEach
    void countOpenHandles() {
        buffers = Native.openBuffers();
        requests = Native.openRequests();
        memory = Native.usedMemory();
    }

    /** The collector may free garbage of other tests at any time. These tests close everything themselves. */
    @AfterEach
    void assertNoMoreOpenHandles() {
        assertTrue(Native.openBuffers() <= buffers, Native.openBuffers() + " buffers, before " + buffers);
        assertTrue(Native.openRequests() <= requests, Native.openRequests() + " requests, before " + requests);
        assertTrue(Native.usedMemory() <= memory, Native.usedMemory() + " octets, before " + memory);
    }

    /** The status that native code fills. */
    private static final class Seen extends NativeStatus {
        int size() {
            return receivedSize();
        }

        int type() {
            return receivedType();
        }

        int count() {
            return receivedCount();
        }
    }

    // ---- Messages

    /**
     * A message of {@code ints} ints and {@code octets} octets of secondary payload, as one physical message
     * or two.
     */
    private static final class TestMessage {
        final int number;
        final int ints;
        final int octets;
        final boolean roomy;

        TestMessage(int number, int ints, int octets, boolean roomy) {
            this.number = number;
            this.ints = ints;
            this.octets = octets;
            this.roomy = roomy;
        }

        /** Returns the octets of capacity that the receiver needs. */
        int needs() {
            int primary = 8 + (4 * ints + 7) / 8 * 8 + (octets > 0 ? 8 : 0);
            return primary + (roomy ? octets : 0);
        }

        /** Returns a buffer with this message. */
        long written() {
            int[] values = new int[ints];
            Arrays.setAll(values, i -> number * 1_000_003 + i);
            byte[] secondary = new byte[octets];
            Arrays.fill(secondary, (byte) number);
            // The objects of an exactly full buffer travel in a second message.
            long buffer = Native.newWriter(needs() + (roomy ? 1 : 0), number & 1);
            Native.write(buffer, values, ints, Types.INT, 0, ints, 0);
            if (octets > 0) {
                Native.beginObjects(buffer, 0);
                Native.appendSecondary(buffer, secondary, octets, 0, octets);
                Native.writeObjects(buffer, 1, 0);
            }
            return buffer;
        }

        void send(long comm, int dest, int tag) {
            long buffer = written();
            Native.send(comm, buffer, dest, tag, false, 0);
            Native.close(buffer);
        }

        long issend(long comm, int dest, int tag) {
            long buffer = written();
            long request = Native.isend(comm, buffer, dest, tag, true, 0);
            Native.close(buffer);
            return request;
        }

        /** Asserts that the buffer holds this message, octet by octet. */
        void isIn(long buffer) {
            long own = written();
            assertArrayEquals(logical(own), logical(buffer), "message " + number);
            Native.close(own);
        }
    }

    /** Inline and by reference; without objects, with objects beside the ints, and as a split message. */
    private static TestMessage[] samples() {
        return new TestMessage[] {new TestMessage(0, 0, 0, false), new TestMessage(1, 1, 0, false), new TestMessage(2, 5000, 0, false),
            new TestMessage(3, 3, 10, true), new TestMessage(4, 300, 5000, true), new TestMessage(5, 0, 1, false),
            new TestMessage(6, 3, 40, false), new TestMessage(7, 3000, 70_000, false)};
    }

    private static byte[] logical(long buffer) {
        byte[] octets = new byte[(int) Native.logicalLength(buffer, 0)];
        Native.copyLogical(buffer, octets, octets.length, 0);
        return octets;
    }

    private static long envelope(int source, int tag) {
        return (long) source << 32 | tag;
    }

    // ---- Jobs

    /** The work of one rank. */
    private interface Part {
        void run(int rank, long comm) throws Exception;
    }

    private static void job(boolean messageOriented, int ranks, Part part) throws Exception {
        long[] worlds = new long[ranks];
        Native.localJob(worlds, ranks, messageOriented);
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        Thread[] threads = new Thread[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            int own = rank;
            threads[rank] = new Thread(() -> {
                try {
                    part.run(own, worlds[own]);
                    Native.finish(worlds[own]);
                } catch (Throwable t) {
                    thrown.compareAndSet(null, t);
                    Native.abort(worlds[own], "rank " + own + " threw " + t);
                }
            }, "rank-" + rank);
            threads[rank].start();
        }
        Wait.join(threads);
        for (long world : worlds) {
            Native.freeComm(world);
        }
        if (thrown.get() != null) {
            throw new AssertionError(thrown.get());
        }
    }

    /** Waits for a message and takes it out of matching. */
    private static long take(long comm, int source, int tag) throws Exception {
        long[] matched = new long[1];
        Wait.until("a message has arrived", () -> {
            matched[0] = Native.improbe(comm, source, tag);
            return matched[0] != Native.PENDING;
        });
        return matched[0];
    }

    private static void isClosed(Runnable call) {
        assertEquals("the matched message is closed",
                assertThrows(IllegalStateException.class, call::run).getMessage());
    }

    // ---- Status and receivers

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldReportTheSizeAndReceiveExactlyThatMessage(boolean messageOriented) throws Exception {
        job(messageOriented, 2, (rank, comm) -> {
            for (TestMessage sample : samples()) {
                if (rank == 0) {
                    sample.send(comm, 1, sample.number);
                    continue;
                }
                Seen seen = new Seen();
                long matched = take(comm, Native.ANY_SOURCE, Native.ANY_TAG);
                for (int look = 0; look < 2; look++) {
                    assertEquals(envelope(0, sample.number), Native.matchedStatus(matched, seen));
                    assertEquals(sample.needs(), seen.size());
                    assertEquals(NativeStatus.NO_TYPE, seen.type(), "its sections are not known before it is received");
                }
                long buffer = Native.newReader(seen.size());
                long request = Native.imrecv(matched, buffer);
                assertEquals(envelope(0, sample.number), Native.await(request, PATIENCE_NANOS, seen));
                assertEquals(sample.needs(), seen.size());
                assertEquals(Types.INT, seen.type());
                assertEquals(sample.ints, seen.count());
                sample.isIn(buffer);
                Native.close(buffer);
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldLeaveTheNextMessageToAReceivePostedLater(boolean messageOriented) throws Exception {
        TestMessage next = new TestMessage(99, 2, 30, false);
        job(messageOriented, 2, (rank, comm) -> {
            for (TestMessage sample : samples()) {
                if (rank == 0) {
                    sample.send(comm, 1, TAG);
                    next.send(comm, 1, TAG);
                    continue;
                }
                long matched = take(comm, 0, TAG);
                long early = Native.newReader(next.needs());
                long posted = Native.irecv(comm, early, Native.ANY_SOURCE, Native.ANY_TAG);
                long late = Native.newReader(sample.needs());
                long request = Native.imrecv(matched, late);
                Native.await(posted, PATIENCE_NANOS, new Seen());
                Native.await(request, PATIENCE_NANOS, new Seen());
                next.isIn(early);
                sample.isIn(late);
                Native.close(early);
                Native.close(late);
            }
        });
    }

    @Test
    void shouldReturnPendingWhenNoMessageMatches() throws Exception {
        long comm = Native.worldOfOne();
        assertEquals(Native.PENDING, Native.improbe(comm, Native.ANY_SOURCE, Native.ANY_TAG));
        TestMessage sample = new TestMessage(3, 4, 0, false);
        sample.send(comm, 0, TAG);
        assertEquals(Native.PENDING, Native.improbe(comm, 0, TAG + 1));
        assertEquals(NativeFailure.BAD_ARGUMENT,
                assertThrows(NativeFailure.class, () -> Native.improbe(comm, 1, TAG)).code());
        long matched = Native.improbe(comm, Native.ANY_SOURCE, TAG);
        assertEquals(Native.PENDING, Native.iprobe(comm, 0, TAG, new Seen()), "the message is out of matching");
        assertEquals(Native.PENDING, Native.improbe(comm, 0, TAG));
        long buffer = Native.newReader(sample.needs());
        Native.await(Native.imrecv(matched, buffer), PATIENCE_NANOS, new Seen());
        sample.isIn(buffer);
        Native.close(buffer);
        Native.finish(comm);
        Native.freeComm(comm);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldGiveEachMessageToExactlyOneThread(boolean messageOriented) throws Exception {
        int senders = 2;
        int each = 1000;
        AtomicInteger left = new AtomicInteger(senders * each);
        AtomicIntegerArray times = new AtomicIntegerArray(senders * each);
        job(messageOriented, 1 + senders, (rank, comm) -> {
            if (rank > 0) {
                for (int i = 0; i < each; i++) {
                    sample((rank - 1) * each + i).send(comm, 0, i);
                }
                // A probe fails instead once all other ranks have finished.
                long buffer = Native.newReader(8);
                Native.recv(comm, buffer, 0, each, new Seen());
                Native.close(buffer);
                return;
            }
            Thread[] takers = new Thread[4];
            AtomicReference<Throwable> thrown = new AtomicReference<>();
            for (int t = 0; t < takers.length; t++) {
                takers[t] = new Thread(() -> {
                    try {
                        takeAll(comm, each, left, times);
                    } catch (Throwable e) {
                        thrown.compareAndSet(null, e);
                        left.set(0);
                    }
                });
                takers[t].start();
            }
            Wait.join(takers);
            if (thrown.get() != null) {
                throw new AssertionError(thrown.get());
            }
            for (int sender = 1; sender <= senders; sender++) {
                new TestMessage(0, 0, 0, false).send(comm, sender, each);
            }
        });
        for (int i = 0; i < senders * each; i++) {
            assertEquals(1, times.get(i), "message " + i);
        }
    }

    private static TestMessage sample(int number) {
        return new TestMessage(number, number % 400, number % 3 == 0 ? 0 : 1 + number % 500, number % 3 == 1);
    }

    /** Takes messages until none is left. Tag and source identify a message. */
    private static void takeAll(long comm, int each, AtomicInteger left, AtomicIntegerArray times) {
        Seen seen = new Seen();
        while (left.get() > 0) {
            long matched = Native.improbe(comm, Native.ANY_SOURCE, Native.ANY_TAG);
            if (matched == Native.PENDING) {
                Thread.yield();
                continue;
            }
            long from = Native.matchedStatus(matched, seen);
            int number = (int) ((from >> 32) - 1) * each + (int) from;
            times.incrementAndGet(number);
            left.decrementAndGet();
            long buffer = Native.newReader(seen.size());
            assertEquals(from, Native.await(Native.imrecv(matched, buffer), PATIENCE_NANOS, seen));
            sample(number).isIn(buffer);
            Native.close(buffer);
        }
    }

    // ---- Freed, stale and truncated messages

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldConsumeAFreedMessageAndCompleteItsSend(boolean messageOriented) throws Exception {
        TestMessage next = new TestMessage(99, 2, 30, false);
        job(messageOriented, 2, (rank, comm) -> {
            for (TestMessage sample : samples()) {
                if (rank == 0) {
                    long request = sample.issend(comm, 1, TAG);
                    assertEquals(Native.SENT, Native.await(request, PATIENCE_NANOS, new Seen()), "" + sample.number);
                    next.send(comm, 1, TAG);
                    continue;
                }
                long matched = take(comm, 0, TAG);
                Native.freeMatched(matched);
                Native.freeMatched(matched);
                isClosed(() -> Native.matchedStatus(matched, new Seen()));
                long buffer = Native.newReader(next.needs());
                Native.recv(comm, buffer, 0, TAG, new Seen());
                next.isIn(buffer);
                Native.close(buffer);
            }
        });
    }

    @Test
    void shouldRejectAStaleMatchedMessageAndKeepTheBuffer() throws Exception {
        long comm = Native.worldOfOne();
        TestMessage sample = new TestMessage(5, 6, 7, true);
        TestMessage kept = new TestMessage(8, 1, 0, false);
        sample.send(comm, 0, TAG);
        sample.send(comm, 0, TAG);
        long received = Native.improbe(comm, 0, TAG);
        long freed = Native.improbe(comm, 0, TAG);
        long buffer = Native.newReader(sample.needs());
        Native.await(Native.imrecv(received, buffer), PATIENCE_NANOS, new Seen());
        Native.freeMatched(freed);
        byte[] octets = logical(buffer);
        for (long used : new long[] {received, freed, 0, -1, Long.MAX_VALUE, Long.MIN_VALUE}) {
            isClosed(() -> Native.imrecv(used, buffer));
            isClosed(() -> Native.matchedStatus(used, new Seen()));
            Native.freeMatched(used);
            assertArrayEquals(octets, logical(buffer), "the buffer is neither in use nor empty");
        }
        // A new message may reuse the table entry, and the old handle does not reach it.
        kept.send(comm, 0, TAG);
        long alive = Native.improbe(comm, 0, TAG);
        Native.freeMatched(received);
        Native.freeMatched(freed);
        Native.await(Native.imrecv(alive, buffer), PATIENCE_NANOS, new Seen());
        kept.isIn(buffer);
        Native.close(buffer);
        Native.finish(comm);
        Native.freeComm(comm);
    }

    @Test
    void shouldKeepAMatchedMessageWhenItsBufferIsRejected() throws Exception {
        long comm = Native.worldOfOne();
        TestMessage sample = new TestMessage(5, 6, 7, false);
        sample.send(comm, 0, TAG);
        long matched = Native.improbe(comm, 0, TAG);
        long closed = Native.newReader(64);
        Native.close(closed);
        long busy = Native.newReader(64);
        long pending = Native.irecv(comm, busy, 0, TAG + 1);
        for (long bad : new long[] {closed, busy, 0}) {
            assertThrows(IllegalStateException.class, () -> Native.imrecv(matched, bad));
        }
        assertTrue(Native.cancel(pending));
        assertEquals(NativeFailure.CANCELLED,
                assertThrows(NativeFailure.class, () -> Native.await(pending, PATIENCE_NANOS, new Seen())).code());
        Native.await(Native.imrecv(matched, busy), PATIENCE_NANOS, new Seen());
        sample.isIn(busy);
        Native.close(busy);
        Native.finish(comm);
        Native.freeComm(comm);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldNameSizesWhenAMessageIsTruncated(boolean messageOriented) throws Exception {
        TestMessage next = new TestMessage(99, 0, 30, false);
        job(messageOriented, 2, (rank, comm) -> {
            for (TestMessage sample : samples()) {
                // Capacities are multiples of 8.
                int less = (sample.needs() - 1) / 8 * 8;
                if (less < next.needs()) {
                    continue;
                }
                if (rank == 0) {
                    long request = sample.issend(comm, 1, TAG);
                    assertEquals(Native.SENT, Native.await(request, PATIENCE_NANOS, new Seen()), "" + sample.number);
                    next.send(comm, 1, TAG);
                    continue;
                }
                long buffer = Native.newReader(less);
                long request = Native.imrecv(take(comm, 0, TAG), buffer);
                NativeFailure failure =
                        assertThrows(NativeFailure.class, () -> Native.await(request, PATIENCE_NANOS, new Seen()));
                assertEquals(NativeFailure.TRUNCATED, failure.code());
                assertEquals(0, failure.rank());
                for (String word : new String[] {"rank 0", "tag " + TAG, "" + sample.needs(),
                    "capacity " + less}) {
                    assertTrue(failure.getMessage().contains(word), word + " is missing in: " + failure.getMessage());
                }
                assertEquals(0, Native.sectionCount(buffer, 0));
                assertEquals(less, Native.capacity(buffer));
                Native.recv(comm, buffer, 0, TAG, new Seen());
                next.isIn(buffer);
                Native.close(buffer);
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldReleaseMemoryOfAMessageThatOutlivesItsCommunicator(boolean received) throws Exception {
        long comm = Native.worldOfOne();
        TestMessage sample = new TestMessage(5, 60_000, 0, false);
        sample.send(comm, 0, TAG);
        long matched = Native.improbe(comm, 0, TAG);
        Native.freeComm(comm);
        assertTrue(Native.usedMemory() >= memory + sample.needs());
        Seen seen = new Seen();
        assertEquals(envelope(0, TAG), Native.matchedStatus(matched, seen));
        if (received) {
            long buffer = Native.newReader(seen.size());
            Native.await(Native.imrecv(matched, buffer), PATIENCE_NANOS, seen);
            sample.isIn(buffer);
            Native.close(buffer);
        } else {
            Native.freeMatched(matched);
        }
    }
}
