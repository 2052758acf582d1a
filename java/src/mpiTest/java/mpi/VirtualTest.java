package mpi;

import static mpi.Program.assertStatus;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
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

    @ParameterizedTest
    @EnumSource
    void shouldWaitInVirtualThreads(World world) throws Exception {
        boolean has = Stream.of(Thread.class.getMethods()).anyMatch(m -> m.getName().equals("startVirtualThread"));
        assumeTrue(has, "this Java has no virtual threads: it is " + System.getProperty("java.version"));
        assertEquals(List.of("done 20", "done 20"), world.run(2, Chain.class));
    }
}
