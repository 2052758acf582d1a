package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Jobs of threads: their ranks, their end and their failures. */
@Timeout(60)
class RunThreadsTest {
    @Test
    void shouldRunEveryRankOnceInItsOwnThread() {
        AtomicInteger sum = new AtomicInteger();
        Thread caller = Thread.currentThread();
        Comm.runThreads(5, world -> {
            assertEquals(5, world.size());
            sum.addAndGet(1 << world.id());
            assertFalse(caller == Thread.currentThread());
            assertEquals("rank-" + world.id(), Thread.currentThread().getName());
        });
        assertEquals(31, sum.get());
    }

    @Test
    void shouldRejectJobsOfNoRanksAndOfTooManyRanks() {
        for (int ranks : new int[] {0, -1, Integer.MIN_VALUE, ThreadRanks.RANKS_MAX + 1, 100_000, Integer.MAX_VALUE}) {
            IllegalArgumentException e =
                    assertThrows(IllegalArgumentException.class, () -> Comm.runThreads(ranks, world -> { }));
            assertTrue(e.getMessage().contains("" + ranks), e.getMessage());
        }
        assertThrows(NullPointerException.class, () -> Comm.runThreads(1, null));
    }

    @Test
    void shouldNameAnInvalidProperty() {
        String before = System.getProperty("mpjdev.messageOriented");
        AtomicInteger ran = new AtomicInteger();
        try {
            for (String bad : new String[] {"yes", "TRUE", "1", "", " true"}) {
                System.setProperty("mpjdev.messageOriented", bad);
                IllegalArgumentException e = assertThrows(IllegalArgumentException.class,
                        () -> Comm.runThreads(2, world -> ran.incrementAndGet()), bad);
                assertEquals("-Dmpjdev.messageOriented=" + bad + " is neither true nor false", e.getMessage());
            }
            assertEquals(0, ran.get());
            for (String good : new String[] {"true", "false"}) {
                System.setProperty("mpjdev.messageOriented", good);
                Comm.runThreads(2, world -> ran.incrementAndGet());
            }
            assertEquals(4, ran.get());
        } finally {
            if (before == null) {
                System.clearProperty("mpjdev.messageOriented");
            } else {
                System.setProperty("mpjdev.messageOriented", before);
            }
        }
    }

    @Test
    void shouldThrowTheExceptionOfARankWithItsType() {
        IOException checked = new FileNotFoundException("checked");
        assertSame(checked, assertThrows(IOException.class, () -> Comm.<IOException>runThreads(2, world -> {
            if (world.id() == 1) {
                throw checked;
            }
        })));
        Error error = new StackOverflowError("error");
        assertSame(error, assertThrows(Error.class, () -> Comm.runThreads(2, world -> {
            if (world.id() == 0) {
                throw error;
            }
        })));
        RuntimeException unchecked = new ArithmeticException("unchecked");
        assertSame(unchecked, assertThrows(RuntimeException.class, () -> Comm.runThreads(1, world -> {
            throw unchecked;
        })));
    }

    @Test
    void shouldSuppressExceptionsOfOtherRanksInTheFirst() throws Exception {
        CyclicBarrier both = new CyclicBarrier(2);
        Exception e = assertThrows(Exception.class, () -> Comm.runThreads(3, world -> {
            if (world.id() == 2) {
                // This rank fails because of the others, so its exception is not added.
                world.recv(new ReadBuffer(8), 0, 0);
            }
            both.await();
            throw new IOException("rank " + world.id());
        }));
        assertEquals(1, e.getSuppressed().length);
        assertTrue((e.getMessage() + e.getSuppressed()[0].getMessage()).matches("rank [01]rank [01]"), e.toString());
        assertFalse(e.getMessage().equals(e.getSuppressed()[0].getMessage()));
    }

    @Test
    void shouldThrowOneExceptionWhenAllRanksThrowTheSame() {
        AtomicReference<Throwable> uncaught = new AtomicReference<>();
        Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
        Thread.setDefaultUncaughtExceptionHandler((thread, e) -> uncaught.set(e));
        try {
            RuntimeException same = new IllegalStateException("the same");
            assertSame(same, assertThrows(RuntimeException.class, () -> Comm.runThreads(4, world -> {
                throw same;
            })));
            assertEquals(0, same.getSuppressed().length);
            assertNull(uncaught.get());
        } finally {
            Thread.setDefaultUncaughtExceptionHandler(before);
        }
    }

    @Test
    void shouldEndTheJobWhenTheCallerIsInterrupted() {
        for (int round = 0; round < 5; round++) {
            AtomicInteger ended = new AtomicInteger();
            Thread caller = Thread.currentThread();
            InterruptedOperationException e = assertThrows(InterruptedOperationException.class,
                    () -> Comm.runThreads(3, world -> {
                        if (world.id() == 0) {
                            caller.interrupt();
                        }
                        try {
                            world.recv(new ReadBuffer(8), Comm.ANY_SOURCE, 0);
                        } finally {
                            ended.incrementAndGet();
                        }
                    }));
            assertTrue(Thread.interrupted(), "the flag stays set");
            assertEquals(3, ended.get(), "every rank has ended before the caller continues");
            assertTrue(e.getMessage().contains("interrupted"), e.getMessage());
        }
    }

    @Test
    void shouldResolveTheWorldByThread() {
        assertThrows(IllegalStateException.class, Comm.WORLD::id);
        Comm.runThreads(3, world -> {
            assertEquals(world.id(), Comm.WORLD.id());
            assertEquals(3, Comm.WORLD.size());
            assertEquals(Comm.MODEL_MULTITHREADED, Comm.getModel());
            Comm.WORLD.barrier();
        });
        assertThrows(IllegalStateException.class, Comm.WORLD::id);
        assertEquals(Comm.MODEL_MULTIPROCESS, Comm.getModel());
    }

    @Test
    void shouldBindChildThreadsToTheirRank() throws Exception {
        Comm.runThreads(2, world -> {
            Throwable[] thrown = new Throwable[1];
            Thread grandchild = new Thread(() -> {
                try (WriteBuffer out = new WriteBuffer(8)) {
                    assertEquals(world.id(), Comm.WORLD.id());
                    Comm.WORLD.send(out, 1 - world.id(), 5);
                } catch (Throwable t) {
                    thrown[0] = t;
                }
            });
            Thread child = new Thread(grandchild::start);
            child.start();
            Wait.join(child);
            Wait.join(grandchild);
            assertNull(thrown[0]);
            try (ReadBuffer in = new ReadBuffer(8)) {
                assertEquals(5, world.recv(in, Comm.ANY_SOURCE, Comm.ANY_TAG).tag);
            }
        });
    }

    @Test
    void shouldDoNothingForInitInsideARank() {
        Comm.runThreads(2, world -> {
            String[] rest = Comm.init(new String[] {"x"});
            assertEquals("x", rest[0]);
            Comm.init(new String[0]);
            assertEquals(world.id(), Comm.WORLD.id());
            assertEquals(2, Comm.WORLD.size());
            Comm.WORLD.barrier();
            Comm.finish();
        });
        assertThrows(IllegalStateException.class, Comm.WORLD::size);
    }

    @Test
    void shouldRunAJobInsideARankOfAnotherJob() {
        AtomicInteger ran = new AtomicInteger();
        Comm.runThreads(2, outer -> {
            Comm.runThreads(3, inner -> {
                assertEquals(3, Comm.WORLD.size());
                assertEquals(inner.id(), Comm.WORLD.id());
                inner.barrier();
                ran.incrementAndGet();
            });
            assertEquals(2, Comm.WORLD.size());
            assertEquals(outer.id(), Comm.WORLD.id());
            outer.barrier();
            // The outer rank catches a failure of the inner job, and the outer job continues.
            assertThrows(ArithmeticException.class, () -> Comm.runThreads(2, inner -> {
                throw new ArithmeticException();
            }));
            outer.barrier();
        });
        assertEquals(6, ran.get());
    }

    @Test
    void shouldSeparateConcurrentJobs() throws Exception {
        CyclicBarrier together = new CyclicBarrier(8);
        Thread[] threads = new Thread[2];
        Throwable[] thrown = new Throwable[2];
        for (int job = 0; job < 2; job++) {
            int number = job;
            threads[job] = new Thread(() -> {
                try {
                    Comm.runThreads(4, world -> {
                        together.await();
                        try (WriteBuffer out = new WriteBuffer(16); ReadBuffer in = new ReadBuffer(16)) {
                            for (int i = 0; i < 500; i++) {
                                out.clear();
                                out.write(new int[] {number, i}, 0, 2);
                                Request send = world.isend(out, (world.id() + 1) % 4, i);
                                world.recv(in, Comm.ANY_SOURCE, i);
                                int[] got = new int[2];
                                in.read(got, 0, 2);
                                assertEquals(number, got[0]);
                                assertEquals(i, got[1]);
                                send.iwait();
                            }
                        }
                    });
                } catch (Throwable t) {
                    thrown[number] = t;
                }
            });
            threads[job].start();
        }
        Wait.join(threads);
        assertNull(thrown[0]);
        assertNull(thrown[1]);
    }

    @Test
    void shouldRunSixteenRanksOnFewProcessors() throws Exception {
        for (boolean split : new boolean[] {false, true}) {
            Wait.job(split, 16, world -> {
                int size = world.size();
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(100);
                        ObjectReadBuffer in = new ObjectReadBuffer(100)) {
                    for (int shift = 1; shift < size; shift++) {
                        out.clear();
                        out.write(new int[] {world.id(), shift}, 0, 2);
                        out.write(new Object[] {"from " + world.id()}, 0, 1);
                        Request send = world.isend(out, (world.id() + shift) % size, shift);
                        Status status = world.recv(in, Comm.ANY_SOURCE, shift);
                        int[] got = new int[2];
                        in.read(got, 0, 2);
                        assertEquals((world.id() - shift + size) % size, status.source);
                        assertEquals(status.source, got[0]);
                        Object[] text = new Object[1];
                        in.read(text, 0, 1);
                        assertEquals("from " + status.source, text[0]);
                        send.iwait();
                        if (shift % 4 == 0) {
                            world.barrier();
                        }
                    }
                }
            });
        }
    }

    @Test
    void shouldEndWithUnreceivedMessagesWithinTheCredit() {
        // No rank receives them. A standard send of a few octets is done without a receive.
        Comm.runThreads(2, world -> {
            try (WriteBuffer out = new WriteBuffer(8)) {
                for (int i = 0; i < 100; i++) {
                    world.send(out, 1 - world.id(), i);
                }
            }
            world.barrier();
        });
    }

    /** Without the world the other ranks would not notice the end of the rank. */
    @Test
    void shouldRejectAFreeOfTheWorldOfARank() {
        IllegalStateException e = assertThrows(IllegalStateException.class, () -> Comm.runThreads(2, world -> {
            if (world.id() == 0) {
                world.free();
            } else {
                world.recv(new ReadBuffer(64), 0, 0);
            }
        }));
        assertTrue(e.getMessage().contains("cannot be freed"), e.getMessage());
    }

    @Test
    void shouldEndTheJobForEveryThrowable() {
        RuntimeException mute = new RuntimeException() {
            private static final long serialVersionUID = 1L;

            @Override
            public String toString() {
                throw new IllegalStateException("no words");
            }
        };
        RuntimeException thrown = null;
        try {
            Comm.runThreads(2, world -> {
                if (world.id() == 0) {
                    throw mute;
                }
                world.recv(new ReadBuffer(64), 0, 0);
            });
        } catch (RuntimeException e) {
            thrown = e;
        }
        assertTrue(thrown == mute);
    }

    /** Threads of a pool that a rank has made outlive the job. */
    @Test
    void shouldUnbindThreadsThatOutliveTheirJob() throws Exception {
        AtomicReference<ExecutorService> pool = new AtomicReference<>();
        Comm.runThreads(1, world -> {
            pool.set(Executors.newSingleThreadExecutor());
            assertEquals(0, pool.get().submit(() -> Comm.WORLD.id()).get());
        });
        try {
            pool.get().submit(() -> {
                assertEquals(Comm.MODEL_MULTIPROCESS, Comm.getModel());
                IllegalStateException e = assertThrows(IllegalStateException.class, () -> Comm.WORLD.id());
                assertTrue(e.getMessage().contains("runThreads"), e.getMessage());
            }).get();
        } finally {
            pool.get().shutdown();
        }
    }
}
