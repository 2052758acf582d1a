package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Communication of ranks that are threads, and its errors. */
@Timeout(60)
class CommTest {
    @Test
    void shouldSendAndReceiveArraysAndObjectsBetweenTwoRanks() throws Exception {
        Comm.runThreads(2, world -> {
            if (world.id() == 0) {
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(4096)) {
                    out.write(new int[] {1, 2, 3}, 0, 3);
                    out.write(new Object[] {"a", null, 7L}, 0, 3);
                    world.send(out, 1, 5);
                }
            } else {
                try (ObjectReadBuffer in = new ObjectReadBuffer(4096)) {
                    Status status = world.recv(in, Comm.ANY_SOURCE, Comm.ANY_TAG);
                    assertEquals(0, status.source);
                    assertEquals(5, status.tag);
                    assertEquals(Type.INT, status.type());
                    assertEquals(3, status.count());
                    int[] ints = new int[3];
                    in.read(ints, 0, 3);
                    assertArrayEquals(new int[] {1, 2, 3}, ints);
                    Object[] objects = new Object[3];
                    in.read(objects, 0, 3);
                    assertArrayEquals(new Object[] {"a", null, 7L}, objects);
                }
            }
        });
    }

    /** Capacities of programs for the original: 8 + n octets, by construction or by growth, on both sides. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldSendSectionsWhoseCapacityOmitsThePadding(boolean split) throws Exception {
        for (int n : new int[] {1, 5, 100, 101, 1001}) {
            Wait.job(split, 2, world -> {
                int other = 1 - world.id();
                byte[] octets = new byte[n];
                Object[] object = new Object[1];
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(8 + n); ReadBuffer in = new ReadBuffer(8 + n);
                        ObjectReadBuffer grown = new ObjectReadBuffer(0)) {
                    out.write(octets, 0, n);
                    Request request = world.irecv(in, other, 1);
                    world.send(out, other, 1);
                    assertEquals(n, request.iwait().count());
                    in.read(octets, 0, n);
                    grown.ensureCapacity(8 + n);
                    out.clear();
                    // One physical message if both payloads are less than the rounded capacity, otherwise
                    // two.
                    out.write(new Object[] {"x".repeat(n)}, 0, 1);
                    Request sent = world.isend(out, other, 2);
                    world.recv(grown, other, 2);
                    grown.read(object, 0, 1);
                    assertEquals("x".repeat(n), object[0]);
                    sent.iwait();
                }
            });
        }
    }

    @Test
    void shouldThrowTheExceptionOfARankAndFailTheOthers() {
        IllegalArgumentException e = assertThrows(IllegalArgumentException.class, () -> Comm.runThreads(3, world -> {
            if (world.id() == 1) {
                throw new IllegalArgumentException("mine");
            }
            try (ReadBuffer in = new ReadBuffer(8)) {
                PeerFailedException failed =
                        assertThrows(PeerFailedException.class, () -> world.recv(in, Comm.ANY_SOURCE, 0));
                assertEquals(1, failed.rank());
                assertTrue(failed.getMessage().contains("mine"), failed.getMessage());
            }
        }));
        assertEquals("mine", e.getMessage());
        assertEquals(0, e.getSuppressed().length);
    }

    @Test
    void shouldMakeCommunicatorsOfSelectedRanks() {
        Comm.runThreads(4, world -> {
            Comm dup = world.dup();
            assertEquals(world.id(), dup.id());
            Comm odd = world.create(new int[] {3, 1});
            assertEquals(world.id() % 2 == 1, odd != null);
            if (odd != null) {
                assertEquals(world.id() == 3 ? 0 : 1, odd.id());
            }
            Comm half = world.split(world.id() / 2, -world.id());
            assertEquals(2, half.size());
            assertEquals(1 - world.id() % 2, half.id());
            half.barrier();
        });
    }

    @Test
    void shouldKeepTheConstantsOfTheOriginal() {
        assertEquals(0, Comm.MODEL_MULTIPROCESS);
        assertEquals(1, Comm.MODEL_MULTITHREADED);
        assertEquals(-2, Comm.ANY_SOURCE);
        assertEquals(-1, Comm.ANY_TAG);
    }

    // ---- Communicators

    @Test
    void shouldKeepTheMessagesOfCommunicatorsApart() throws Exception {
        Comm.runThreads(2, world -> {
            Comm dup = world.dup();
            Comm swapped = world.create(new int[] {1, 0});
            Comm[] comms = {world, dup, swapped};
            try (WriteBuffer out = new WriteBuffer(16); ReadBuffer in = new ReadBuffer(16)) {
                if (world.id() == 0) {
                    for (int i = 0; i < 3; i++) {
                        out.clear();
                        out.write(new int[] {i}, 0, 1);
                        comms[i].send(out, i == 2 ? 0 : 1, 0);
                    }
                } else {
                    int[] got = new int[1];
                    for (int i = 2; i >= 0; i--) {
                        Status status = comms[i].recv(in, Comm.ANY_SOURCE, Comm.ANY_TAG);
                        in.read(got, 0, 1);
                        assertEquals(i, got[0]);
                        assertEquals(i == 2 ? 1 : 0, status.source, "ranks are numbered in the communicator");
                    }
                }
            }
            dup.free();
            swapped.free();
            world.barrier();
        });
    }

    @Test
    void shouldOrderASplitByKeyThenByRank() {
        Comm.runThreads(6, world -> {
            int id = world.id();
            Comm same = world.split(7, 0);
            assertEquals(id, same.id());
            Comm backwards = world.split(0, -id);
            assertEquals(5 - id, backwards.id());
            Comm part = world.split(id == 2 ? -1 : id % 2, id < 3 ? 1 : 0);
            assertEquals(id == 2, part == null);
            if (part != null) {
                assertEquals(id % 2 == 0 ? 2 : 3, part.size());
                // The even ranks are ordered 4, 0 and the odd ones 3, 5, 1.
                int[] places = {1, 2, -1, 0, 0, 1};
                assertEquals(places[id], part.id());
                part.barrier();
            }
        });
    }

    @Test
    void shouldRejectInvalidListsOfRanksInAllRanks() {
        int[][] bad = {{0, 0}, {2}, {-1}, {0, 1, 2}, {Integer.MAX_VALUE}};
        Comm.runThreads(2, world -> {
            for (int[] ids : bad) {
                assertThrows(BadArgumentException.class, () -> world.create(ids));
            }
            BadArgumentException e = assertThrows(BadArgumentException.class,
                    () -> world.create(world.id() == 0 ? new int[] {0, 1} : new int[] {1}), "rank 1 is in both");
            assertNotNull(e.getMessage());
            // The communicator still works.
            assertEquals(world.id() == 0, world.create(new int[] {0}) != null);
            assertNull(world.create(new int[0]));
            world.barrier();
        });
    }

    @Test
    void shouldHoldABarrierUntilAllRanksEnter() {
        int ranks = 5;
        java.util.concurrent.atomic.AtomicInteger entered = new java.util.concurrent.atomic.AtomicInteger();
        Comm.runThreads(ranks, world -> {
            for (int round = 1; round <= 50; round++) {
                entered.incrementAndGet();
                world.barrier();
                int seen = entered.get();
                assertTrue(seen >= ranks * round && seen <= ranks * (round + 1), seen + " in round " + round);
            }
        });
    }

    @Test
    void shouldAbortEveryOperationOfEveryRank() {
        Comm.runThreads(3, world -> {
            if (world.id() == 2) {
                world.abort("enough of it");
            }
            PeerFailedException e = assertThrows(PeerFailedException.class, () -> {
                while (true) {
                    world.barrier();
                }
            });
            assertTrue(e.getMessage().contains("enough of it"), e.getMessage());
            try (ReadBuffer in = new ReadBuffer(8)) {
                assertThrows(PeerFailedException.class, () -> world.irecv(in, 0, 0).iwait());
                assertThrows(PeerFailedException.class, () -> world.probe(0, 0));
            }
        });
    }

    // ---- Probes

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldProbeWithoutReceiving(boolean split) throws Exception {
        Wait.job(split, 2, world -> {
            if (world.id() == 1) {
                assertEquals(0, world.probe(0, 9).source);
                world.recv(new ReadBuffer(0), 0, 9);
                for (int tag : new int[] {4, 2}) {
                    try (ObjectWriteBuffer out = new ObjectWriteBuffer(1000)) {
                        out.write(new byte[100 * tag], 0, 100 * tag);
                        out.write(new Object[] {"o".repeat(2000)}, 0, 1);
                        world.send(out, 0, tag);
                    }
                }
                return;
            }
            assertNull(world.iprobe(1, Comm.ANY_TAG));
            world.send(new WriteBuffer(0), 1, 9);
            Status second = world.probe(Comm.ANY_SOURCE, 2);
            assertEquals(2, second.tag);
            // Messages of one source keep their order, so the first one has arrived too.
            Status first = world.iprobe(Comm.ANY_SOURCE, Comm.ANY_TAG);
            assertEquals(4, first.tag);
            assertEquals(1, first.source);
            assertEquals(8 + 400 + 8, first.size(), "the size of a split message is its primary payload");
            assertEquals(first.size(), world.probe(1, 4).size());
            try (ObjectReadBuffer in = new ObjectReadBuffer(first.size())) {
                assertEquals(4, world.recv(in, 1, Comm.ANY_TAG).tag);
                assertEquals(2, in.sectionCount());
                assertEquals(2, world.recv(in, 1, Comm.ANY_TAG).tag);
            }
        });
    }

    // ---- Interrupts

    @Test
    void shouldCancelABlockingReceiveWhenInterrupted() throws Exception {
        Comm.runThreads(2, world -> {
            if (world.id() == 0) {
                world.barrier();
                try (WriteBuffer out = new WriteBuffer(16)) {
                    out.write(new int[] {3}, 0, 1);
                    world.send(out, 1, 0);
                }
                return;
            }
            try (ReadBuffer in = new ReadBuffer(16); ReadBuffer other = new ReadBuffer(16)) {
                Thread.currentThread().interrupt();
                for (Executable call : new Executable[] {() -> world.recv(in, 0, 0), () -> world.probe(0, 0),
                    () -> world.recv(in, Comm.ANY_SOURCE, Comm.ANY_TAG)}) {
                    assertThrows(InterruptedOperationException.class, call);
                    assertTrue(Thread.currentThread().isInterrupted(), "the flag stays set");
                }
                assertNull(world.iprobe(0, 0), "a probe does not block");
                assertTrue(Thread.interrupted());
                assertEquals(16, in.capacity(), "its buffer is free");
                world.barrier();
                // The next receive gets the message.
                world.recv(other, 0, 0);
                assertEquals(1, other.nextCount());
            }
        });
    }

    @Test
    void shouldEndABlockedSendAndABarrierWhenInterrupted() throws Exception {
        Comm.runThreads(2, world -> {
            Comm sync = world.dup();
            try (WriteBuffer out = new WriteBuffer(16); ReadBuffer in = new ReadBuffer(16)) {
                if (world.id() == 0) {
                    out.write(new int[] {3}, 0, 1);
                    Thread.currentThread().interrupt();
                    assertThrows(InterruptedOperationException.class, () -> world.ssend(out, 1, 0));
                    assertThrows(InterruptedOperationException.class, world::barrier);
                    assertTrue(Thread.interrupted());
                    assertEquals(1, out.sectionCount(), "the buffer is free");
                    out.clear();
                    out.write(new int[] {4}, 0, 1);
                    world.send(out, 1, 1);
                    sync.barrier();
                } else {
                    world.recv(in, 0, 1);
                    int[] got = new int[1];
                    in.read(got, 0, 1);
                    assertEquals(4, got[0]);
                    // The message had left, so it arrives.
                    world.recv(in, 0, 0);
                    in.read(got, 0, 1);
                    assertEquals(3, got[0]);
                    sync.barrier();
                }
            }
        });
    }

    @Test
    void shouldEndAWaitThatIsInterruptedAfterItBegan() throws Exception {
        Comm.runThreads(2, world -> {
            if (world.id() == 0) {
                world.recv(new ReadBuffer(0), 1, 9);
                // The message of the interrupted send had left.
                world.recv(new ReadBuffer(0), 1, 5);
                return;
            }
            try (ReadBuffer in = new ReadBuffer(16); WriteBuffer out = new WriteBuffer(16)) {
                for (Executable call : new Executable[] {() -> world.recv(in, 0, 0), () -> world.probe(0, 0),
                    () -> world.ssend(out, 0, 5)}) {
                    Thread waiting = Thread.currentThread();
                    Thread interrupter = new Thread(waiting::interrupt);
                    interrupter.start();
                    assertThrows(InterruptedOperationException.class, call);
                    assertTrue(Thread.interrupted());
                    Wait.join(interrupter);
                }
                world.send(out, 0, 9);
            }
        });
    }

    // ---- This process as a rank

    @Test
    void shouldBeRankZeroOfOneAfterInit() throws Exception {
        assertEquals(Comm.MODEL_MULTIPROCESS, Comm.getModel(), "before init too");
        String[] arguments = {"a", "b"};
        for (int again = 0; again < 2; again++) {
            String[] rest = Comm.init(arguments);
            try {
                assertArrayEquals(arguments, rest);
                assertNotSame(arguments, rest);
                assertEquals(1, Comm.WORLD.size());
                assertEquals(0, Comm.WORLD.id());
                assertEquals(Comm.MODEL_MULTIPROCESS, Comm.getModel());
                IllegalStateException e = assertThrows(IllegalStateException.class, () -> Comm.init(arguments));
                assertTrue(e.getMessage().contains("Comm.finish"), e.getMessage());
                try (WriteBuffer out = new WriteBuffer(8); ReadBuffer in = new ReadBuffer(8)) {
                    Comm.WORLD.send(out, 0, 1);
                    assertEquals(1, Comm.WORLD.recv(in, Comm.ANY_SOURCE, Comm.ANY_TAG).tag);
                    Comm.WORLD.barrier();
                }
                // A job of threads never replaces the world of the process.
                Comm.runThreads(2, world -> {
                    assertEquals(2, world.size());
                    assertEquals(1, Comm.WORLD.size());
                    assertEquals(Comm.MODEL_MULTIPROCESS, Comm.getModel());
                    world.barrier();
                });
            } finally {
                Comm.finish();
            }
            assertThrows(IllegalStateException.class, Comm.WORLD::size);
            assertThrows(IllegalStateException.class, Comm::finish);
        }
    }

    @Test
    void shouldRejectCommunicationAfterFinish() {
        Comm.init(new String[0]);
        Comm dup;
        Request pending;
        try (WriteBuffer out = new WriteBuffer(8); ReadBuffer in = new ReadBuffer(8);
                ReadBuffer posted = new ReadBuffer(8)) {
            try {
                dup = Comm.WORLD.dup();
                pending = dup.irecv(posted, 0, 0);
                assertTrue(pending.cancel());
            } finally {
                Comm.finish();
            }
            Executable[] calls = {() -> dup.send(out, 0, 0), () -> dup.isend(out, 0, 0), () -> dup.recv(in, 0, 0),
                () -> dup.irecv(in, 0, 0), () -> dup.probe(0, 0), () -> dup.iprobe(0, 0), dup::barrier, dup::dup,
                () -> dup.create(new int[] {0}), () -> dup.split(0, 0)};
            for (int i = 0; i < calls.length; i++) {
                Throwable e = assertThrows(Throwable.class, calls[i], "call " + i);
                assertSame(NotInitializedException.class, e.getClass(), "call " + i + ": " + e);
            }
            assertEquals(8, in.capacity());
        }
    }

    @Test
    void shouldFinishOneThreadRankAndKeepTheOthers() {
        Comm.runThreads(3, world -> {
            Comm rest = world.split(world.id() == 1 ? -1 : 0, 0);
            if (world.id() == 1) {
                Comm.finish();
                assertThrows(NotInitializedException.class, world::barrier);
                assertThrows(NotInitializedException.class, Comm.WORLD::barrier);
                Comm.finish();
                return;
            }
            try (WriteBuffer out = new WriteBuffer(8); ReadBuffer in = new ReadBuffer(8)) {
                assertEquals(1, assertThrows(PeerFailedException.class, () -> world.recv(in, 1, 0)).rank());
                Wait.until("rank 0 has noticed that rank 1 has finished", () -> {
                    try {
                        world.send(out, 1, 0);
                        return false;
                    } catch (PeerFailedException e) {
                        return e.rank() == 1;
                    }
                });
                rest.barrier();
                Request request = rest.irecv(in, Comm.ANY_SOURCE, 0);
                rest.send(out, 1 - rest.id(), 0);
                request.iwait(30, TimeUnit.SECONDS);
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
    }

    @Test
    void shouldNameUndeliveredMessages() {
        UndeliveredException e = assertThrows(UndeliveredException.class, () -> Comm.runThreads(1, world -> {
            try (WriteBuffer out = new WriteBuffer(8)) {
                world.issend(out, 0, 33);
            }
        }));
        assertTrue(e.getMessage().contains("1 messages"), e.getMessage());
        assertEquals(0, e.rank());
        assertFalse(Thread.currentThread().isInterrupted());
    }

    @Test
    void shouldRejectNullArgumentsOfInitAndAcceptEmptyOnes() {
        assertThrows(NullPointerException.class, () -> Comm.init(null));
        assertThrows(IllegalStateException.class, Comm.WORLD::size);
        Comm.init(new String[0]);
        Comm.finish();
        IllegalStateException e = assertThrows(IllegalStateException.class, Comm.WORLD::size);
        assertTrue(e.getMessage().contains("finish"), e.getMessage());
    }

    /** A rejected receive leaves its buffer unchanged. */
    @Test
    void shouldKeepTheMessageOfABufferWhenAReceiveAfterFinishIsRejected() throws Exception {
        Comm.init(new String[0]);
        Comm dup = Comm.WORLD.dup();
        Comm.finish();
        try (WriteBuffer out = new WriteBuffer(32); ReadBuffer in = new ReadBuffer(32)) {
            out.write(new int[] {7}, 0, 1);
            out.write(new int[] {8}, 0, 1);
            in.load(out.toByteArray());
            int[] got = new int[1];
            in.read(got, 0, 1);
            assertThrows(NotInitializedException.class, () -> dup.recv(in, 0, 0));
            assertThrows(NotInitializedException.class, () -> dup.irecv(in, 0, 0));
            in.read(got, 0, 1);
            assertEquals(8, got[0]);
        }
    }
}
