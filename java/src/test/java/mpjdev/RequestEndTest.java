package mpjdev;

import static mpjdev.RequestTest.message;
import static mpjdev.RequestTest.pair;
import static mpjdev.RequestTest.send;
import static mpjdev.RequestTest.value;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import mpjdev.core.Native;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Requests that are cancelled, freed or unreachable. Each message is received at most once. */
@Timeout(60)
class RequestEndTest {
    @Test
    void shouldCancelAReceiveWithoutAMessage() throws Exception {
        pair(false, world -> {
            world.barrier();
            send(world, 3, 1, 1);
        }, world -> {
            try (ReadBuffer in = new ReadBuffer(16); ReadBuffer other = new ReadBuffer(16)) {
                Request request = world.irecv(in, 0, 1);
                assertTrue(request.cancel());
                assertThrows(CancelledException.class, request::iwait);
                assertThrows(CancelledException.class, request::itest);
                assertFalse(request.cancel(), "the request is done");
                assertEquals(16, in.capacity(), "the buffer is free");
                assertEquals(0, in.sectionCount());
                Request next = world.irecv(other, 0, 1);
                world.barrier();
                assertEquals(1, next.iwait().tag);
                assertEquals(3, value(other));
                assertFalse(next.cancel());
            }
        });
    }

    @Test
    void shouldNotDeliverACancelledSend() throws Exception {
        for (boolean split : new boolean[] {false, true}) {
            pair(split, world -> {
                for (int i = 0; i < 50; i++) {
                    try (WriteBuffer out = message(i)) {
                        Request request = world.issend(out, 1, 0);
                        boolean cancelled = request.cancel();
                        send(world, cancelled ? 1 : 0, 1, 1);
                        if (cancelled) {
                            assertThrows(CancelledException.class, request::iwait);
                        } else {
                            request.iwait();
                        }
                    }
                }
                world.barrier();
                world.barrier();
            }, world -> {
                try (ReadBuffer in = new ReadBuffer(16)) {
                    for (int i = 0; i < 50; i++) {
                        world.recv(in, 0, 1);
                        if (value(in) == 0) {
                            world.recv(in, 0, 0);
                            assertEquals(i, value(in));
                        }
                    }
                    world.barrier();
                    assertNull(world.iprobe(0, 0), "a cancelled send has arrived");
                    world.barrier();
                }
            });
        }
    }

    @Test
    void shouldCompleteAFreedReceiveAndReleaseItsBuffer() throws Exception {
        pair(false, world -> {
            world.barrier();
            send(world, 6, 1, 1);
            world.barrier();
        }, world -> {
            try (ReadBuffer in = new ReadBuffer(16)) {
                Request request = world.irecv(in, 0, 1);
                request.free();
                request.free();
                assertNull(Request.iwaitany(new Request[] {request}), "the request is not active");
                assertNull(request.iwait());
                assertThrows(IllegalStateException.class, in::capacity);
                world.barrier();
                Wait.until("the buffer is free", () -> usable(in));
                assertEquals(6, value(in));
                world.barrier();
                // A freed send arrives too.
                try (WriteBuffer out = message(9)) {
                    world.issend(out, 1, 5).free();
                }
                world.recv(in, 1, 5);
                assertEquals(9, value(in));
            }
        });
    }

    private static boolean usable(Buffer b) {
        try {
            b.capacity();
            return true;
        } catch (IllegalStateException e) {
            return false;
        }
    }

    @Test
    void shouldFreeAnUnreachableRequest() throws Exception {
        int open = Native.openRequests();
        pair(false, world -> {
            world.barrier();
            send(world, 6, 1, 1);
            send(world, 7, 1, 1);
            world.barrier();
        }, world -> {
            try (ReadBuffer in = new ReadBuffer(16); ReadBuffer next = new ReadBuffer(16)) {
                forget(world, in);
                Wait.untilCollected("the request is closed", () -> Native.openRequests() <= open);
                assertThrows(IllegalStateException.class, in::capacity);
                world.barrier();
                Wait.until("the buffer is free", () -> usable(in));
                assertEquals(6, value(in));
                // The receive has taken its message and no other.
                world.recv(next, 0, 1);
                assertEquals(7, value(next));
                world.barrier();
            }
        });
    }

    private static void forget(Comm world, ReadBuffer in) {
        assertNull(world.irecv(in, 0, 1).itest());
    }

    @Test
    void shouldDropTheMessageWhenRequestAndBufferAreUnreachable() throws Exception {
        int buffers = Native.openBuffers();
        int requests = Native.openRequests();
        long memory = Native.usedMemory();
        pair(true, world -> {
            world.barrier();
            try (ObjectWriteBuffer out = new ObjectWriteBuffer(16)) {
                out.write(new Object[] {"z".repeat(50_000)}, 0, 1);
                world.send(out, 1, 1);
            }
            send(world, 7, 1, 1);
            world.barrier();
        }, world -> {
            assertNull(world.irecv(new ObjectReadBuffer(64), 0, 1).itest());
            Wait.untilCollected("both are closed",
                    () -> Native.openRequests() <= requests && Native.openBuffers() <= buffers);
            world.barrier();
            try (ReadBuffer next = new ReadBuffer(16)) {
                world.recv(next, 0, 1);
                assertEquals(7, value(next));
            }
            world.barrier();
        });
        Wait.untilCollected("the memory is released", () -> Native.usedMemory() <= memory);
    }

    @Test
    void shouldReturnFalseForALateCancel() throws Exception {
        int rounds = 3000;
        AtomicInteger refused = new AtomicInteger();
        Comm.runThreads(2, world -> {
            try (ReadBuffer in = new ReadBuffer(16); WriteBuffer out = message(1)) {
                if (world.id() == 1) {
                    for (int i = 0; i < rounds; i++) {
                        world.recv(in, 0, 0);
                        world.send(out, 0, 1);
                    }
                    return;
                }
                AtomicReference<Request> now = new AtomicReference<>();
                AtomicBoolean end = new AtomicBoolean();
                Thread canceller = new Thread(() -> {
                    while (!end.get()) {
                        Request request = now.get();
                        try {
                            if (request != null) {
                                request.cancel();
                            }
                        } catch (IllegalStateException e) {
                            refused.incrementAndGet();
                        }
                    }
                });
                canceller.start();
                try {
                    for (int i = 0; i < rounds; i++) {
                        Request request = world.irecv(in, 1, 1);
                        now.set(request);
                        world.send(out, 1, 0);
                        try {
                            request.iwait();
                        } catch (CancelledException e) {
                            now.set(null);
                            world.recv(in, 1, 1);
                        }
                    }
                } finally {
                    end.set(true);
                    canceller.join();
                }
            }
        });
        assertEquals(0, refused.get());
    }

    /**
     * One thread waits for a request or tests it, another one frees it: the result is a status or null in any
     * order.
     */
    @ParameterizedTest
    @ValueSource(strings = {"iwait", "itest", "itestany", "iwaitany", "iwaitall"})
    void shouldWaitForARequestThatAnotherThreadFrees(String how) throws Exception {
        int rounds = 3000;
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Comm.runThreads(1, world -> {
            AtomicReference<Request> next = new AtomicReference<>();
            AtomicBoolean end = new AtomicBoolean();
            Thread freer = new Thread(() -> {
                while (!end.get()) {
                    Request request = next.getAndSet(null);
                    if (request != null) {
                        request.free();
                    }
                }
            });
            freer.start();
            try {
                for (int round = 0; round < rounds; round++) {
                    send(world, 5, 0, 3);
                    // A separate buffer: the other one is in use until the free in the other thread returns.
                    try (ReadBuffer in = new ReadBuffer(16)) {
                        Request request = world.irecv(in, 0, 3);
                        next.set(request);
                        take(how, request);
                    }
                }
            } catch (RuntimeException e) {
                failure.set(e);
            } finally {
                end.set(true);
                Wait.join(freer);
            }
        });
        assertNull(failure.get());
    }

    private static void take(String how, Request request) {
        Request[] one = {request};
        Status status;
        switch (how) {
            case "iwait":
                status = request.iwait();
                break;
            case "itest":
                status = request.itest();
                break;
            case "itestany":
                status = Request.itestany(one);
                break;
            case "iwaitany":
                status = Request.iwaitany(one);
                break;
            default:
                status = Request.iwaitall(one)[0];
                break;
        }
        assertTrue(status == null || status.tag == 3, how);
        if (status == null) {
            // The request was freed or is not done. The message has arrived, so the buffer becomes free.
            request.iwait();
        }
    }

    @Test
    void shouldSkipFreedRequestsInWaitall() {
        Comm.runThreads(1, world -> {
            try (ReadBuffer in = new ReadBuffer(16); ReadBuffer other = new ReadBuffer(16)) {
                Request freed = world.irecv(other, 0, 7);
                freed.free();
                Request good = world.irecv(in, 0, 3);
                send(world, 5, 0, 3);
                Status[] all = Request.iwaitall(new Request[] {freed, good});
                assertNull(all[0]);
                assertEquals(3, all[1].tag);
                assertEquals(1, all[1].index);
                send(world, 5, 0, 7);
            }
        });
    }
}
