package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Requests that are waited for or tested. Each message is received exactly once. */
@Timeout(60)
class RequestTest {
    private static final Request NULL = Request.MPI_REQUEST_NULL;

    static WriteBuffer message(int value) {
        WriteBuffer b = new WriteBuffer(16);
        b.write(new int[] {value}, 0, 1);
        return b;
    }

    static void send(Comm comm, int value, int dest, int tag) {
        try (WriteBuffer b = message(value)) {
            comm.send(b, dest, tag);
        }
    }

    static int value(ReadBuffer b) throws BufferReadException {
        int[] dest = new int[1];
        b.read(dest, 0, 1);
        return dest[0];
    }

    /** A job of two. The second rank obeys the empty messages of the first one. */
    interface Pair {
        void run(Comm world) throws Exception;
    }

    static void pair(boolean split, Pair zero, Pair one) throws Exception {
        Wait.job(split, 2, world -> {
            if (world.id() == 0) {
                zero.run(world);
            } else {
                one.run(world);
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldReturnTheSameStatusAgain(boolean split) throws Exception {
        pair(split, world -> send(world, 5, 1, 3), world -> {
            try (ReadBuffer in = new ReadBuffer(16)) {
                Request request = world.irecv(in, 0, 3);
                Status status = request.iwait();
                assertEquals(3, status.tag);
                assertSame(status, request.iwait());
                assertSame(status, request.iwait(0, TimeUnit.SECONDS));
                assertSame(status, request.itest());
                assertEquals(5, value(in));
                // The second wait has not changed the buffer.
                assertNull(in.nextType());
            }
        });
    }

    @Test
    void shouldReturnNullUntilTheMessageArrives() throws Exception {
        pair(false, world -> {
            world.recv(new ReadBuffer(0), 1, 0);
            send(world, 7, 1, 1);
        }, world -> {
            try (ReadBuffer in = new ReadBuffer(16); WriteBuffer go = new WriteBuffer(0)) {
                Request request = world.irecv(in, 0, 1);
                assertNull(request.itest());
                assertNull(Request.itestany(new Request[] {null, request, NULL}));
                world.send(go, 0, 0);
                Wait.until("the message has arrived", () -> request.itest() != null);
                assertEquals(7, value(in));
            }
        });
    }

    @Test
    void shouldTimeOutAndStayPending() throws Exception {
        pair(false, world -> {
            world.recv(new ReadBuffer(0), 1, 0);
            send(world, 7, 1, 1);
            send(world, 8, 1, 2);
        }, world -> {
            try (ReadBuffer in = new ReadBuffer(16); WriteBuffer go = new WriteBuffer(0)) {
                Request request = world.irecv(in, 0, 1);
                for (long millis : new long[] {0, 1, 30, -5}) {
                    long begun = System.nanoTime();
                    TimedOutException e = assertThrows(TimedOutException.class,
                            () -> request.iwait(millis, TimeUnit.MILLISECONDS));
                    assertTrue(System.nanoTime() - begun >= TimeUnit.MILLISECONDS.toNanos(millis), "too early");
                    assertTrue(e.getMessage().contains("still pending"), e.getMessage());
                    assertThrows(IllegalStateException.class, in::capacity);
                }
                world.send(go, 0, 0);
                assertEquals(1, request.iwait(30, TimeUnit.SECONDS).tag);
                assertEquals(7, value(in));
                assertEquals(2, world.irecv(in, 0, 2).iwait(Long.MAX_VALUE, TimeUnit.DAYS).tag);
            }
        });
    }

    @Test
    void shouldSkipNullsAndReturnNullWhenNothingIsActive() throws Exception {
        assertNull(Request.iwaitany(new Request[0]));
        assertNull(Request.iwaitany(new Request[] {null, NULL}));
        assertNull(Request.itestany(new Request[] {null, NULL}));
        assertArrayEquals(new Status[2], Request.iwaitall(new Request[] {null, NULL}));
        assertNull(NULL.iwait());
        assertNull(NULL.itest());
        assertNull(NULL.iwait(1, TimeUnit.SECONDS));
        assertFalse(NULL.cancel());
        NULL.free();
        pair(false, world -> {
            for (int tag : new int[] {2, 0, 1}) {
                send(world, tag, 1, tag);
                world.recv(new ReadBuffer(0), 1, 0);
            }
        }, world -> {
            ReadBuffer[] in = {new ReadBuffer(16), new ReadBuffer(16), new ReadBuffer(16)};
            Request[] requests = {NULL, world.irecv(in[0], 0, 0), null, world.irecv(in[1], 0, 1), NULL,
                world.irecv(in[2], 0, 2)};
            int[] places = {5, 1, 3};
            for (int place : places) {
                Status status = Request.iwaitany(requests);
                assertEquals(place, status.index);
                assertEquals((place - 1) / 2, status.tag);
                assertEquals(status.tag, value(in[status.tag]));
                // The elements of the array stay, and the wait skips finished ones.
                assertNotNull(requests[place]);
                world.send(new WriteBuffer(0), 0, 0);
            }
            assertNull(Request.iwaitany(requests));
            assertNull(Request.itestany(requests));
            Status[] all = Request.iwaitall(requests);
            assertNull(all[0]);
            assertNull(all[2]);
            assertEquals(1, all[3].tag);
            assertEquals(3, all[3].index);
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldWaitForAllAndThenThrowTheFirstFailure(boolean split) throws Exception {
        pair(split, world -> {
            try (WriteBuffer large = new WriteBuffer(64)) {
                large.write(new long[7], 0, 7);
                for (int tag = 0; tag < 5; tag++) {
                    if (tag == 1 || tag == 3) {
                        world.send(large, 1, tag);
                    } else {
                        send(world, 10 * tag, 1, tag);
                    }
                }
            }
        }, world -> {
            ReadBuffer[] in = new ReadBuffer[5];
            Request[] requests = new Request[5];
            for (int tag = 4; tag >= 0; tag--) {
                in[tag] = new ReadBuffer(16);
                requests[tag] = world.irecv(in[tag], 0, tag);
            }
            TruncationException e = assertThrows(TruncationException.class, () -> Request.iwaitall(requests));
            assertTrue(e.getMessage().contains("tag 1"), e.getMessage());
            for (int tag = 0; tag < 5; tag++) {
                assertEquals(tag % 2 == 1 ? 0 : 1, in[tag].sectionCount(), "all requests are done, " + tag + " too");
            }
            assertThrows(TruncationException.class, requests[3]::iwait);
            assertEquals(40, value(in[4]));
        });
    }

    @Test
    void shouldCompleteASynchronousSendOnlyWhenMatched() throws Exception {
        pair(false, world -> {
            try (WriteBuffer out = message(1)) {
                Request request = world.issend(out, 1, 0);
                // A probe has found the message and has not matched it.
                world.recv(new ReadBuffer(0), 1, 0);
                assertNull(request.itest());
                assertThrows(TimedOutException.class, () -> request.iwait(1, TimeUnit.MILLISECONDS));
                world.send(new WriteBuffer(0), 1, 1);
                request.iwait();
            }
        }, world -> {
            try (ReadBuffer in = new ReadBuffer(16)) {
                world.probe(0, 0);
                world.send(new WriteBuffer(0), 0, 0);
                world.recv(in, 0, 1);
                world.recv(in, 0, 0);
                assertEquals(1, value(in));
            }
        });
    }

    @Test
    void shouldStayPendingWhenItsWaitIsInterrupted() throws Exception {
        pair(false, world -> {
            world.barrier();
            send(world, 4, 1, 1);
            send(world, 5, 1, 2);
        }, world -> {
            try (ReadBuffer in = new ReadBuffer(16); ReadBuffer more = new ReadBuffer(16)) {
                Request request = world.irecv(in, 0, 1);
                Request other = world.irecv(more, 0, 2);
                Thread.currentThread().interrupt();
                assertThrows(InterruptedOperationException.class, request::iwait);
                assertTrue(Thread.currentThread().isInterrupted(), "the flag stays set");
                assertThrows(InterruptedOperationException.class, () -> request.iwait(30, TimeUnit.SECONDS));
                assertThrows(InterruptedOperationException.class,
                        () -> Request.iwaitany(new Request[] {request, other}));
                assertThrows(InterruptedOperationException.class,
                        () -> Request.iwaitall(new Request[] {request, other}));
                assertNull(request.itest(), "a test does not block, so it ignores the interrupt");
                assertTrue(Thread.interrupted());
                world.barrier();
                Request.iwaitall(new Request[] {request, other});
                assertEquals(4, value(in));
                assertEquals(5, value(more));
            }
        });
    }

    @Test
    void shouldEndAWaitThatIsInterruptedWhileItParks() throws Exception {
        pair(false, world -> {
            world.recv(new ReadBuffer(0), 1, 0);
            send(world, 4, 1, 1);
        }, world -> {
            try (ReadBuffer in = new ReadBuffer(16)) {
                Request request = world.irecv(in, 0, 1);
                Thread waiting = Thread.currentThread();
                Thread interrupter = new Thread(waiting::interrupt);
                // The interrupt ends the wait, whether it comes before or during it.
                interrupter.start();
                assertThrows(InterruptedOperationException.class, request::iwait);
                Wait.until("interrupted", Thread::interrupted);
                Wait.join(interrupter);
                world.send(new WriteBuffer(0), 0, 0);
                request.iwait();
                assertEquals(4, value(in));
            }
        });
    }

    @Test
    void shouldRejectRequestsOfDifferentRanksTogether() throws Exception {
        Request[] both = new Request[2];
        Comm.runThreads(2, world -> {
            both[world.id()] = world.irecv(new ReadBuffer(16), 1 - world.id(), 0);
            world.barrier();
            if (world.id() == 0) {
                BadArgumentException e = assertThrows(BadArgumentException.class, () -> Request.iwaitany(both));
                assertTrue(e.getMessage().contains("different ranks"), e.getMessage());
            }
            world.barrier();
            send(world, world.id(), 1 - world.id(), 0);
            both[world.id()].iwait();
        });
    }

    @Test
    void shouldFailWhenOnlyAFinishedRankCouldCompleteIt() throws Exception {
        pair(false, world -> { }, world -> {
            try (ReadBuffer in = new ReadBuffer(16); ReadBuffer any = new ReadBuffer(16)) {
                Request request = world.irecv(in, 0, 1);
                Request wild = world.irecv(any, Comm.ANY_SOURCE, Comm.ANY_TAG);
                PeerFailedException e = assertThrows(PeerFailedException.class, request::iwait);
                assertEquals(0, e.rank());
                assertThrows(PeerFailedException.class, wild::iwait);
                assertThrows(PeerFailedException.class, () -> world.probe(0, 0));
                assertThrows(PeerFailedException.class, () -> send(world, 1, 0, 0));
                assertSame(e, assertThrows(PeerFailedException.class, request::itest), "a repeated wait throws the same");
                assertEquals(16, in.capacity());
            }
        });
    }

    @Test
    void shouldWaitForAllWhenOneReceiveHasNoMemory() throws Exception {
        Request failed = Request.of(0, null);
        java.lang.reflect.Field failure = Request.class.getDeclaredField("failure");
        failure.setAccessible(true);
        failure.set(failed, new OutOfMemoryError("no message memory"));
        Comm.runThreads(1, world -> {
            try (ReadBuffer in = new ReadBuffer(16)) {
                Request good = world.irecv(in, 0, 3);
                send(world, 5, 0, 3);
                OutOfMemoryError e = assertThrows(OutOfMemoryError.class,
                        () -> Request.iwaitall(new Request[] {failed, good}));
                assertEquals("no message memory", e.getMessage());
                assertEquals(1, in.sectionCount(), "the wait has covered the other request");
            }
        });
    }
}
