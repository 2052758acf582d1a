package mpi;

import static mpi.Program.assertStatus;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Calls of virtual threads, whose waits are in Java. */
@Timeout(180)
class VirtualTest {
    private static final int TIMES = 50;

    /** More virtual threads than there are carriers wait for messages, of which each needs all before it. */
    static final class Chain {
        private static final int THREADS = 20;

        private Chain() {}

        public static void main(String[] args) throws Exception {
            MPI.Init(args);
            Thread[] threads = new Thread[THREADS];
            for (int i = THREADS; i-- > 0; ) {
                int number = i;
                threads[i] = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
                        .invoke(null, (Runnable) () -> link(number));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            MPI.COMM_WORLD.Barrier();
            MPI.Finalize();
            System.out.println("done " + done);
        }

        private static volatile int done;

        /** Waits for the message of the link before, and sends one to the next; each in another way. */
        private static void link(int number) {
            Intracomm world = MPI.COMM_WORLD;
            int other = 1 - world.Rank();
            Object[] text = new Object[1];
            int[] a = new int[1];
            for (int time = 0; time < TIMES; time++) {
                world.Sendrecv(new int[] {time}, 0, 1, MPI.INT, other, number, a, 0, 1, MPI.INT, other, number);
                assertEquals(time, a[0]);
                Request[] both = {world.Irecv(a, 0, 1, MPI.INT, other, number), world.Issend(a, 0, 1, MPI.INT, other, number)};
                int first = Request.Waitany(both).index;
                both[1 - first].Wait();
                if (world.Rank() == 0) {
                    world.Ssend(new Object[] {"text"}, 0, 1, MPI.OBJECT, 1, number);
                } else {
                    assertStatus(0, number, 1, world.Recv(text, 0, 1, MPI.OBJECT, 0, number));
                }
            }
            synchronized (Chain.class) {
                done++;
            }
        }
    }

    /** Each virtual thread has a communicator. The ranks begin with the first and with the last one. */
    static final class Reversed {
        private static final int THREADS = 20;

        private Reversed() {}

        public static void main(String[] args) throws Exception {
            MPI.Init(args);
            Intracomm[] comms = new Intracomm[THREADS];
            for (int i = 0; i < THREADS; i++) {
                comms[i] = (Intracomm) MPI.COMM_WORLD.clone();
            }
            int[] sums = new int[THREADS];
            Thread[] threads = new Thread[THREADS];
            for (int i = 0; i < THREADS; i++) {
                int number = MPI.COMM_WORLD.Rank() == 0 ? i : THREADS - 1 - i;
                threads[i] = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
                        .invoke(null, (Runnable) () -> reduce(comms[number], number, sums));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            MPI.Finalize();
            System.out.println("sums " + IntStream.of(sums).sum());
        }

        private static void reduce(Intracomm comm, int number, int[] sums) {
            int[] sum = new int[1];
            for (int time = 0; time < TIMES; time++) {
                comm.Bcast(sum, 0, 1, MPI.INT, time % 2);
                comm.Allreduce(new int[] {number}, 0, sum, 0, 1, MPI.INT, MPI.SUM);
                int[] both = new int[2];
                comm.Allgather(sum, 0, 1, MPI.INT, both, 0, 1, MPI.INT);
                assertEquals(4 * number, both[0] + both[1]);
            }
            sums[number] = sum[0];
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SHM", "TCP", "THREADS", "OPENMPI"})
    void shouldReduceInMoreVirtualThreadsThanThereAreCarriers(World world) throws Exception {
        boolean has = Stream.of(Thread.class.getMethods()).anyMatch(m -> m.getName().equals("startVirtualThread"));
        assumeTrue(has, "this Java has no virtual threads: it is " + System.getProperty("java.version"));
        assertEquals(List.of("sums 380", "sums 380"), world.run(2, Reversed.class));
    }

    @ParameterizedTest
    @EnumSource
    void shouldWaitInVirtualThreads(World world) throws Exception {
        boolean has = Stream.of(Thread.class.getMethods()).anyMatch(m -> m.getName().equals("startVirtualThread"));
        assumeTrue(has, "this Java has no virtual threads: it is " + System.getProperty("java.version"));
        assertEquals(List.of("done 20", "done 20"), world.run(2, Chain.class));
    }
}
