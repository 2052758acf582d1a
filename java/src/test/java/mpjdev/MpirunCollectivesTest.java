package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.reflect.Method;
import java.util.List;
import java.util.stream.Stream;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Collective operations over a C MPI: interrupted, and called by virtual threads. */
@Timeout(180)
@Tag("jdk")
class MpirunCollectivesTest {
    static Stream<List<String>> launchers() {
        return Mpirun.launchers();
    }

    /** Rank 0 is interrupted in a dup that the other ranks have not called. Then all ranks end. */
    static final class Interrupted {
        private Interrupted() {}

        public static void main(String[] args) {
            Comm.init(args);
            Comm world = Comm.WORLD;
            String got = "nothing";
            if (world.id() == 0) {
                Thread.currentThread().interrupt();
                try {
                    world.dup();
                } catch (InterruptedOperationException e) {
                    got = "interrupted";
                }
                Thread.interrupted();
            }
            try (WriteBuffer out = new WriteBuffer(16); ReadBuffer in = new ReadBuffer(16)) {
                // The other ranks call it after rank 0 has abandoned it.
                for (int other = 1; world.id() == 0 && other < world.size(); other++) {
                    world.send(out, other, 1);
                }
                if (world.id() > 0) {
                    world.recv(in, 0, 1);
                }
            }
            try {
                world.dup();
            } catch (CollectiveAbandonedException e) {
                got += ", abandoned by " + e.rank();
            }
            System.out.println(world.id() + ": " + got);
            Comm.finish();
        }
    }

    @ParameterizedTest
    @MethodSource("launchers")
    void shouldEndAnInterruptedDupAndRejectTheNext(List<String> launcher) throws Exception {
        Job job = Mpirun.job(launcher, 3).run(Interrupted.class);
        assertEquals(0, job.status, job::toString);
        List<String> expected = List.of(
                "0: interrupted, abandoned by 0", "1: nothing, abandoned by 0", "2: nothing, abandoned by 0");
        assertEquals(expected, job.lines(), job::toString);
    }

    /** Virtual threads make communicators at the same time, in a different order in each rank. */
    static final class Virtual {
        /**
         * Threads of each kind. With as many carriers as threads, all carriers can wait for different
         * operations.
         */
        private static final int PAIRS = 4;

        private Virtual() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            Comm world = Comm.WORLD;
            int count = 2 * PAIRS;
            Comm[] comms = new Comm[count];
            for (int i = 0; i < PAIRS; i++) {
                comms[i] = world.dup();
                comms[PAIRS + i] = world.create(new int[] {1, 0});
            }
            world.barrier();
            Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
            Thread[] threads = new Thread[count];
            for (int i = 0; i < count; i++) {
                Comm comm = comms[world.id() == 0 ? i : (i + PAIRS) % count];
                threads[i] = (Thread) start.invoke(null, (Runnable) () -> comm.dup().barrier());
            }
            Wait.join(threads);
            System.out.println(world.id() + " done");
            Comm.finish();
        }
    }

    @ParameterizedTest
    @MethodSource("launchers")
    void shouldMakeCommunicatorsInVirtualThreads(List<String> launcher) throws Exception {
        boolean has = Stream.of(Thread.class.getMethods()).anyMatch(m -> m.getName().equals("startVirtualThread"));
        assumeTrue(has, "this Java has no virtual threads: it is " + Runtime.version());
        Job job = Mpirun.job(launcher, 2).run(Virtual.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("0 done", "1 done"), job.lines(), job::toString);
    }
}
