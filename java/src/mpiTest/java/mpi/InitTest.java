package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import mpjdev.Fork;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Begin and end of a rank. */
@Timeout(180)
class InitTest {
    /** Begins and ends several times, with messages in between and without. */
    static final class Again {
        private static final int TIMES = 10;

        private Again() {}

        public static void main(String[] args) {
            for (int time = 0; time < TIMES; time++) {
                MPI.Init(args);
                if (time % 2 == 0) {
                    int[] sum = {time};
                    if (MPI.COMM_WORLD.Rank() == 0) {
                        MPI.COMM_WORLD.Send(sum, 0, 1, MPI.INT, 1, time);
                    } else {
                        MPI.COMM_WORLD.Recv(sum, 0, 1, MPI.INT, 0, time);
                    }
                    assertEquals(time, sum[0]);
                }
                MPI.Finalize();
            }
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldBeginAgainAfterFinalize(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Again.class));
    }

    /** Asks for the state before, between and after. */
    static final class States {
        private States() {}

        public static void main(String[] args) {
            assertFalse(MPI.Initialized() || MPI.Finalized());
            assertNull(MPI.COMM_WORLD);
            fails(MPI.ERR_OTHER, MPI::Finalize);
            assertArrayEquals(new String[0], MPI.Init(null));
            assertTrue(MPI.Initialized() && MPI.isMainThread());
            assertEquals(1, MPI.COMM_WORLD.Size());
            assertEquals(0, MPI.COMM_WORLD.Rank());
            fails(MPI.ERR_OTHER, () -> MPI.Init(args));
            assertArrayEquals(args, MPI.initThread(MPI.THREAD_MULTIPLE, 0, args));
            assertEquals(MPI.THREAD_MULTIPLE, MPI.queryThread());
            MPI.COMM_WORLD.Barrier();
            MPI.Finalize();
            assertTrue(!MPI.Initialized() && MPI.Finalized());
            assertNull(MPI.COMM_WORLD);
            fails(MPI.ERR_OTHER, MPI::Finalize);
            String[] own = MPI.initThread(MPI.THREAD_MULTIPLE, 0, args);
            assertArrayEquals(args, own);
            assertNotSame(args, own);
            assertFalse(MPI.Finalized());
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @Test
    void shouldTellItsStateInAWorldOfOne() throws Exception {
        assertEquals("done\n", new Fork().run(States.class, "one", "two").ok());
    }

    /** Gets arguments of MPJ Express before its own. */
    static final class Prefixed {
        private Prefixed() {}

        public static void main(String[] args) {
            String[] own = MPI.Init(args);
            int me = MPI.COMM_WORLD.Rank();
            assertArrayEquals(new String[] {"" + me, "2", "multicore", "x", "y"}, args);
            assertArrayEquals(new String[] {"x", "y"}, own);
            assertArrayEquals(new String[] {"x", "y"}, MPI.initThread(MPI.THREAD_MULTIPLE, 0, args));
            assertArrayEquals(own, MPI.initThread(MPI.THREAD_MULTIPLE, 0, own), "without a prefix nothing is removed");
            assertArrayEquals(new String[] {"7"}, MPI.initThread(MPI.THREAD_MULTIPLE, 0, new String[] {"7"}));
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SHM", "TCP"})
    void shouldRemoveTheArgumentsOfMpjExpress(World world) throws Exception {
        Job job = world.job(2).with("--args", "mpje").asClass().run(Prefixed.class, "x", "y");
        assertEquals(List.of("done", "done"), job.lines(), job::toString);
    }

    @Test
    void shouldRemoveTheArgumentsOfMpjExpressFromThreads() throws Exception {
        Job job = new mpjdev.Mpjrun(2).with("--threads", "--args", "mpje").asClass().run(Prefixed.class, "x", "y");
        assertEquals(List.of("done", "done"), job.lines(), job::toString);
    }

    /** Static fields of the program and of the package belong to a rank. */
    static final class Statics {
        private static int mine = -1;

        private Statics() {}

        public static void main(String[] args) {
            MPI.Init(args);
            assertEquals(-1, mine);
            mine = MPI.COMM_WORLD.Rank();
            MPI.COMM_WORLD.Barrier();
            assertEquals(MPI.COMM_WORLD.Rank(), mine);
            assertEquals(Statics.class.getClassLoader(), Thread.currentThread().getContextClassLoader());
            System.out.println(mine + " " + String.join(" ", args));
            MPI.Finalize();
        }
    }

    @Test
    void shouldGiveEachThreadStaticFieldsOfItsOwn() throws Exception {
        assertEquals(List.of("0 x y", "1 x y", "2 x y"), World.THREADS.run(3, Statics.class, "x", "y"));
    }

    /** Rank 1 ends in the way that the argument names, while the others wait. */
    static final class Ending {
        static final int STATUS = 5;

        private Ending() {}

        public static void main(String[] args) {
            MPI.Init(args);
            if (MPI.COMM_WORLD.Rank() == 1) {
                if (args[0].equals("exit")) {
                    System.exit(STATUS);
                }
                throw new IllegalStateException("on purpose");
            }
            MPI.COMM_WORLD.Barrier();
            System.out.println("not reached");
        }
    }

    @Test
    void shouldEndTheJobOfThreadsWithTheFirstThatEndsIt() throws Exception {
        mpjdev.Mpjrun.Job job = World.THREADS.job(3).run(Ending.class, "exit");
        assertEquals(Ending.STATUS, job.status, job::toString);
        job = World.THREADS.job(3).run(Ending.class, "throw");
        assertEquals(1, job.status, job::toString);
        assertTrue(job.err.contains("Exception in thread \"rank-1\" java.lang.IllegalStateException: on purpose"),
                job::toString);
    }

    /** The class of rank 1 cannot be initialised, while the others wait. */
    static final class Uninitialised {
        static {
            if (Thread.currentThread().getName().equals("rank-1")) {
                throw new IllegalStateException("on purpose");
            }
        }

        private Uninitialised() {}

        public static void main(String[] args) {
            MPI.Init(args);
            MPI.COMM_WORLD.Barrier();
        }
    }

    @Test
    void shouldEndTheJobOfThreadsWhenTheClassOfOneCannotBeInitialised() throws Exception {
        mpjdev.Mpjrun.Job job = World.THREADS.job(3).run(Uninitialised.class);
        assertEquals(1, job.status, job::toString);
        assertTrue(job.err.contains("java.lang.IllegalStateException: on purpose"), job::toString);
    }

    @Test
    void shouldTellTheTime() {
        double before = MPI.Wtime();
        double now = System.currentTimeMillis() / 1e3;
        assertTrue(Math.abs(now - before) < 10, before + " and " + now);
        double after = MPI.Wtime();
        assertTrue(after >= before, before + " and " + after);
        assertEquals(1e-9, MPI.Wtick());
        assertFalse(MPI.Get_processor_name().isEmpty());
    }
}
