package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import mpjdev.core.Backoff;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Waits of virtual threads: they do not keep their carriers, so more threads than processors can wait. */
@Timeout(90)
@Tag("jdk")
class VirtualThreadTest {
    private static final int THREADS = 4 * Runtime.getRuntime().availableProcessors();

    private Method start;

    @BeforeEach
    void findVirtualThreads() {
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            start = null;
        }
        assumeTrue(start != null, "this Java has no virtual threads: it is " + Runtime.version());
    }

    /** The work of a thread. */
    private interface Work {
        void run(int number) throws Exception;
    }

    private void inVirtualThreads(int count, Work work) throws Exception {
        List<Thread> threads = new ArrayList<>();
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        for (int i = 0; i < count; i++) {
            int number = i;
            threads.add((Thread) start.invoke(null, (Runnable) () -> {
                try {
                    assertTrue(Backoff.isVirtual());
                    work.run(number);
                } catch (Throwable t) {
                    thrown.compareAndSet(null, t);
                }
            }));
        }
        Wait.join(threads.toArray(new Thread[0]));
        if (thrown.get() != null) {
            throw new AssertionError(thrown.get());
        }
    }

    private static int value(ReadBuffer in) throws BufferReadException {
        int[] got = new int[1];
        in.read(got, 0, 1);
        return got[0];
    }

    @Test
    void shouldReceiveInMoreThreadsThanProcessors() throws Exception {
        for (boolean split : new boolean[] {false, true}) {
            Wait.job(split, 2, world -> inVirtualThreads(THREADS, number -> {
                // Every thread waits for the next one, and the last one begins.
                try (WriteBuffer out = new WriteBuffer(16); ReadBuffer in = new ReadBuffer(16)) {
                    out.write(new int[] {number}, 0, 1);
                    if (number < THREADS - 1) {
                        world.recv(in, 1 - world.id(), number + 1);
                        assertEquals(number + 1, value(in));
                    }
                    world.send(out, 1 - world.id(), number);
                    if (number == 0) {
                        world.recv(in, 1 - world.id(), 0);
                        assertEquals(0, value(in));
                    }
                }
            }));
        }
    }

    @Test
    void shouldBlockInEveryKindOfCall() throws Exception {
        for (boolean split : new boolean[] {false, true}) {
            Wait.job(split, 2, world -> {
                Comm[] comms = new Comm[THREADS];
                for (int i = 0; i < THREADS; i++) {
                    comms[i] = world.dup();
                }
                AtomicLong sum = new AtomicLong();
                inVirtualThreads(THREADS, number -> {
                    Comm comm = comms[number];
                    int other = 1 - comm.id();
                    try (ObjectWriteBuffer out = new ObjectWriteBuffer(24);
                            ObjectReadBuffer in = new ObjectReadBuffer(24)) {
                        for (int i = 0; i < 10; i++) {
                            out.clear();
                            out.write(new int[] {i}, 0, 1);
                            out.write(new Object[] {"virtual " + number}, 0, 1);
                            if (comm.id() == 0) {
                                comm.ssend(out, other, i);
                                comm.send(out, other, i);
                                comm.issend(out, other, i).iwait(60, TimeUnit.SECONDS);
                                comm.recv(in, Comm.ANY_SOURCE, Comm.ANY_TAG);
                                sum.addAndGet(value(in));
                            } else {
                                assertEquals(i, comm.probe(Comm.ANY_SOURCE, Comm.ANY_TAG).tag);
                                comm.recv(in, other, i);
                                Request[] both = {null, comm.irecv(in, other, i)};
                                assertEquals(1, Request.iwaitany(both).index);
                                assertEquals(i, value(in));
                                Status[] all = Request.iwaitall(new Request[] {comm.irecv(in, other, i)});
                                assertEquals(i, all[0].tag);
                                comm.send(out, other, 77);
                            }
                            comm.barrier();
                            Comm part = comm.split(0, -comm.id());
                            assertEquals(1 - comm.id(), part.id());
                            part.free();
                        }
                    }
                });
                assertEquals(world.id() == 0 ? 45L * THREADS : 0, sum.get());
            });
        }
    }

    @Test
    void shouldSendAndReceiveArraysInMoreThreadsThanProcessors() throws Exception {
        Comm.<Exception>runThreads(2, world -> inVirtualThreads(THREADS, number -> {
            int other = 1 - world.id();
            int[] array = {number, number};
            if (number < THREADS - 1) {
                world.recv(array, 0, 2, other, number + 1);
                assertEquals(number + 1, array[1]);
            }
            array[1] = number;
            world.send(array, 0, 2, other, number);
            if (number == 0) {
                world.recv(array, 0, 2, Comm.ANY_SOURCE, 0);
            }
            Status status = world.sendrecv(array, 0, 2, other, THREADS + number, array, 0, 2, other, THREADS + number);
            assertEquals(2, status.count());
            int[] reversed = {1, 0};
            world.sendGathered(new int[] {5, number}, 2, 0, reversed, other, number);
            assertEquals(2, world.recvScattered(array, 2, 0, reversed, other, number).count());
            assertEquals(number, array[1]);
            world.sendPatch(array, 1, 1, 0, 1, new int[] {2, -1}, other, number);
            world.recvPatch(array, 0, 1, 0, 1, new int[] {2, 1}, other, number);
            assertEquals(number, array[0]);
            world.sendrecvIndexed(array, 2, 0, reversed, other, number, array, 2, 0, reversed, other, number);
            assertEquals(number, array[0]);
            int[] line = {2, 1};
            world.sendrecvPatch(array, 0, 1, 0, 1, line, other, number, array, 0, 1, 0, 1, line, other, number);
            assertEquals(number, array[0]);
        }));
    }

    @Test
    void shouldInheritTheRank() throws Exception {
        Comm.runThreads(2, world -> inVirtualThreads(3, number -> {
            assertEquals(world.id(), Comm.WORLD.id());
            try (WriteBuffer out = new WriteBuffer(8); ReadBuffer in = new ReadBuffer(8)) {
                Comm.WORLD.send(out, 1 - world.id(), number);
                assertEquals(number, Comm.WORLD.recv(in, Comm.ANY_SOURCE, number).tag);
            }
        }));
    }

    @Test
    void shouldLoseNoMessageWhenInterrupted() throws Exception {
        Comm.runThreads(2, world -> {
            Comm sync = world.dup();
            if (world.id() == 0) {
                sync.barrier();
                try (WriteBuffer out = new WriteBuffer(16)) {
                    out.write(new int[] {1}, 0, 1);
                    world.send(out, 1, 0);
                    out.clear();
                    out.write(new int[] {2}, 0, 1);
                    world.send(out, 1, 1);
                }
                return;
            }
            inVirtualThreads(1, number -> {
                try (ReadBuffer in = new ReadBuffer(16); ReadBuffer other = new ReadBuffer(16);
                        WriteBuffer out = new WriteBuffer(8)) {
                    Request request = world.irecv(other, 0, 1);
                    Thread.currentThread().interrupt();
                    assertThrows(InterruptedOperationException.class, () -> world.recv(in, 0, 0));
                    assertThrows(InterruptedOperationException.class, () -> world.probe(0, 0));
                    assertThrows(InterruptedOperationException.class, () -> world.ssend(out, 1, 5));
                    assertThrows(InterruptedOperationException.class, request::iwait);
                    assertThrows(InterruptedOperationException.class,
                            () -> Request.iwaitany(new Request[] {request}));
                    assertThrows(InterruptedOperationException.class,
                            () -> world.split(0, 0), "the other ranks have not called it");
                    assertTrue(Thread.interrupted(), "the flag stays set");
                    assertThrows(TimedOutException.class, () -> request.iwait(2, TimeUnit.MILLISECONDS));
                    assertEquals(16, in.capacity());
                    assertThrows(IllegalStateException.class, other::capacity);
                    sync.barrier();
                    world.recv(in, 0, 0);
                    assertEquals(1, value(in));
                    request.iwait();
                    assertEquals(2, value(other));
                    // The message that the interrupted send has left to this rank.
                    world.recv(in, 1, 5);
                }
            });
        });
    }

    @Test
    void shouldFailWhenThePeerHasFinished() throws Exception {
        Comm.runThreads(2, world -> {
            if (world.id() == 0) {
                return;
            }
            inVirtualThreads(THREADS, number -> {
                try (ReadBuffer in = new ReadBuffer(8)) {
                    assertThrows(PeerFailedException.class, () -> world.recv(in, 0, number));
                    assertThrows(PeerFailedException.class, () -> world.probe(0, number));
                    assertEquals(8, in.capacity());
                }
            });
        });
    }
}
