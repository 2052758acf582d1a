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

/** A message that a matched probe has taken is its taker's alone: its size is known, and it is received or freed once. */
@Timeout(60)
class MatchedProbeTest {
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(20);
    private static final int TAG = 7;

    private int buffers;
    private int requests;
    private long memory;

    @BeforeEach
    void noteWhatIsOpen() {
        buffers = Native.openBuffers();
        requests = Native.openRequests();
        memory = Native.usedMemory();
    }

    /** Garbage of other tests may go meanwhile; these here close everything themselves. */
    @AfterEach
    void nothingMoreIsOpen() {
        assertTrue(Native.openBuffers() <= buffers, Native.openBuffers() + " buffers, before " + buffers);
        assertTrue(Native.openRequests() <= requests, Native.openRequests() + " requests, before " + requests);
        assertTrue(Native.usedMemory() <= memory, Native.usedMemory() + " octets, before " + memory);
    }

    /** What native code tells about a message. */
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

    /** A message of so many ints and so many octets of secondary payload, which may fit beside them or not. */
    private static final class Letter {
        final int number;
        final int ints;
        final int octets;
        final boolean roomy;

        Letter(int number, int ints, int octets, boolean roomy) {
            this.number = number;
            this.ints = ints;
            this.octets = octets;
            this.roomy = roomy;
        }

        /** The octets of capacity that the receiver needs. */
        int needs() {
            int primary = 8 + (4 * ints + 7) / 8 * 8 + (octets > 0 ? 8 : 0);
            return primary + (roomy ? octets : 0);
        }

        /** A buffer with this message. */
        long written() {
            int[] values = new int[ints];
            Arrays.setAll(values, i -> number * 1_000_003 + i);
            byte[] secondary = new byte[octets];
            Arrays.fill(secondary, (byte) number);
            // What is exactly full travels apart from its objects.
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

        /** The buffer holds this message, octet by octet. */
        void isIn(long buffer) {
            long own = written();
            assertArrayEquals(logical(own), logical(buffer), "message " + number);
            Native.close(own);
        }
    }

    /** Inline, by reference; without objects, with objects beside the ints, as two messages where there can be two. */
    private static Letter[] letters() {
        return new Letter[] {new Letter(0, 0, 0, false), new Letter(1, 1, 0, false), new Letter(2, 5000, 0, false),
            new Letter(3, 3, 10, true), new Letter(4, 300, 5000, true), new Letter(5, 0, 1, false),
            new Letter(6, 3, 40, false), new Letter(7, 3000, 70_000, false)};
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

    /** What one rank does. */
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

    /** Takes a message out of matching as soon as it is there. */
    private static long take(long comm, int source, int tag) throws Exception {
        long[] matched = new long[1];
        Wait.until("a message is there", () -> {
            matched[0] = Native.improbe(comm, source, tag);
            return matched[0] != Native.PENDING;
        });
        return matched[0];
    }

    private static void isClosed(Runnable call) {
        assertEquals("the matched message is closed",
                assertThrows(IllegalStateException.class, call::run).getMessage());
    }

    // ---- What it tells, and who gets it

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldTellTheSizeAndReceiveExactlyThat(boolean messageOriented) throws Exception {
        job(messageOriented, 2, (rank, comm) -> {
            for (Letter letter : letters()) {
                if (rank == 0) {
                    letter.send(comm, 1, letter.number);
                    continue;
                }
                Seen seen = new Seen();
                long matched = take(comm, Native.ANY_SOURCE, Native.ANY_TAG);
                for (int look = 0; look < 2; look++) {
                    assertEquals(envelope(0, letter.number), Native.matchedStatus(matched, seen));
                    assertEquals(letter.needs(), seen.size());
                    assertEquals(NativeStatus.NO_TYPE, seen.type(), "its sections are not known before it is received");
                }
                long buffer = Native.newReader(seen.size());
                long request = Native.imrecv(matched, buffer);
                assertEquals(envelope(0, letter.number), Native.await(request, PATIENCE_NANOS, seen));
                assertEquals(letter.needs(), seen.size());
                assertEquals(Types.INT, seen.type());
                assertEquals(letter.ints, seen.count());
                letter.isIn(buffer);
                Native.close(buffer);
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldLeaveTheNextMessageToTheReceiveThatIsPostedMeanwhile(boolean messageOriented) throws Exception {
        Letter next = new Letter(99, 2, 30, false);
        job(messageOriented, 2, (rank, comm) -> {
            for (Letter letter : letters()) {
                if (rank == 0) {
                    letter.send(comm, 1, TAG);
                    next.send(comm, 1, TAG);
                    continue;
                }
                long matched = take(comm, 0, TAG);
                long early = Native.newReader(next.needs());
                long posted = Native.irecv(comm, early, Native.ANY_SOURCE, Native.ANY_TAG);
                long late = Native.newReader(letter.needs());
                long request = Native.imrecv(matched, late);
                Native.await(posted, PATIENCE_NANOS, new Seen());
                Native.await(request, PATIENCE_NANOS, new Seen());
                next.isIn(early);
                letter.isIn(late);
                Native.close(early);
                Native.close(late);
            }
        });
    }

    @Test
    void shouldTakeNothingThatDoesNotMatch() throws Exception {
        long comm = Native.worldOfOne();
        assertEquals(Native.PENDING, Native.improbe(comm, Native.ANY_SOURCE, Native.ANY_TAG));
        Letter letter = new Letter(3, 4, 0, false);
        letter.send(comm, 0, TAG);
        assertEquals(Native.PENDING, Native.improbe(comm, 0, TAG + 1));
        assertEquals(NativeFailure.BAD_ARGUMENT,
                assertThrows(NativeFailure.class, () -> Native.improbe(comm, 1, TAG)).code());
        long matched = Native.improbe(comm, Native.ANY_SOURCE, TAG);
        assertEquals(Native.PENDING, Native.iprobe(comm, 0, TAG, new Seen()), "it is out of matching");
        assertEquals(Native.PENDING, Native.improbe(comm, 0, TAG));
        long buffer = Native.newReader(letter.needs());
        Native.await(Native.imrecv(matched, buffer), PATIENCE_NANOS, new Seen());
        letter.isIn(buffer);
        Native.close(buffer);
        Native.finish(comm);
        Native.freeComm(comm);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldGiveEachMessageToOneOfManyThreads(boolean messageOriented) throws Exception {
        int senders = 2;
        int each = 1000;
        AtomicInteger left = new AtomicInteger(senders * each);
        AtomicIntegerArray times = new AtomicIntegerArray(senders * each);
        job(messageOriented, 1 + senders, (rank, comm) -> {
            if (rank > 0) {
                for (int i = 0; i < each; i++) {
                    letter((rank - 1) * each + i).send(comm, 0, i);
                }
                // Whoever looks for a message when all others have finished is told so instead.
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
                new Letter(0, 0, 0, false).send(comm, sender, each);
            }
        });
        for (int i = 0; i < senders * each; i++) {
            assertEquals(1, times.get(i), "message " + i);
        }
    }

    private static Letter letter(int number) {
        return new Letter(number, number % 400, number % 3 == 0 ? 0 : 1 + number % 500, number % 3 == 1);
    }

    /** Takes messages until none is left; the tag and the source say which one it is. */
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
            letter(number).isIn(buffer);
            Native.close(buffer);
        }
    }

    // ---- Freed, used twice, too large

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldConsumeAMessageThatIsFreedAndLetItsSenderGoOn(boolean messageOriented) throws Exception {
        Letter next = new Letter(99, 2, 30, false);
        job(messageOriented, 2, (rank, comm) -> {
            for (Letter letter : letters()) {
                if (rank == 0) {
                    long request = letter.issend(comm, 1, TAG);
                    assertEquals(Native.SENT, Native.await(request, PATIENCE_NANOS, new Seen()), "" + letter.number);
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
    void shouldRefuseAMatchedMessageThatWasUsedAndLeaveTheBufferAlone() throws Exception {
        long comm = Native.worldOfOne();
        Letter letter = new Letter(5, 6, 7, true);
        Letter kept = new Letter(8, 1, 0, false);
        letter.send(comm, 0, TAG);
        letter.send(comm, 0, TAG);
        long received = Native.improbe(comm, 0, TAG);
        long freed = Native.improbe(comm, 0, TAG);
        long buffer = Native.newReader(letter.needs());
        Native.await(Native.imrecv(received, buffer), PATIENCE_NANOS, new Seen());
        Native.freeMatched(freed);
        byte[] octets = logical(buffer);
        for (long used : new long[] {received, freed, 0, -1, Long.MAX_VALUE, Long.MIN_VALUE}) {
            isClosed(() -> Native.imrecv(used, buffer));
            isClosed(() -> Native.matchedStatus(used, new Seen()));
            Native.freeMatched(used);
            assertArrayEquals(octets, logical(buffer), "neither in use nor emptied");
        }
        // A new one may have an old one's place, and is not reached by the old handle.
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
    void shouldKeepAMatchedMessageWhenItsBufferIsRefused() throws Exception {
        long comm = Native.worldOfOne();
        Letter letter = new Letter(5, 6, 7, false);
        letter.send(comm, 0, TAG);
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
        letter.isIn(busy);
        Native.close(busy);
        Native.finish(comm);
        Native.freeComm(comm);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldSayTheNumbersWhenAMessageDoesNotFit(boolean messageOriented) throws Exception {
        Letter next = new Letter(99, 0, 30, false);
        job(messageOriented, 2, (rank, comm) -> {
            for (Letter letter : letters()) {
                // Capacities are multiples of 8.
                int less = (letter.needs() - 1) / 8 * 8;
                if (less < next.needs()) {
                    continue;
                }
                if (rank == 0) {
                    long request = letter.issend(comm, 1, TAG);
                    assertEquals(Native.SENT, Native.await(request, PATIENCE_NANOS, new Seen()), "" + letter.number);
                    next.send(comm, 1, TAG);
                    continue;
                }
                long buffer = Native.newReader(less);
                long request = Native.imrecv(take(comm, 0, TAG), buffer);
                NativeFailure failure =
                        assertThrows(NativeFailure.class, () -> Native.await(request, PATIENCE_NANOS, new Seen()));
                assertEquals(NativeFailure.TRUNCATED, failure.code());
                assertEquals(0, failure.rank());
                for (String word : new String[] {"rank 0", "tag " + TAG, "" + letter.needs(),
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
    void shouldGiveTheMemoryBackOfAMessageThatOutlivesItsCommunicator(boolean received) throws Exception {
        long comm = Native.worldOfOne();
        Letter letter = new Letter(5, 60_000, 0, false);
        letter.send(comm, 0, TAG);
        long matched = Native.improbe(comm, 0, TAG);
        Native.freeComm(comm);
        assertTrue(Native.usedMemory() >= memory + letter.needs());
        Seen seen = new Seen();
        assertEquals(envelope(0, TAG), Native.matchedStatus(matched, seen));
        if (received) {
            long buffer = Native.newReader(seen.size());
            Native.await(Native.imrecv(matched, buffer), PATIENCE_NANOS, seen);
            letter.isIn(buffer);
            Native.close(buffer);
        } else {
            Native.freeMatched(matched);
        }
    }
}
