package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Defect X12 of MPJ Express: a second Bsend waits until the message of the first one is received, and a
 * message behind the first in the buffer is cut.
 */
@Timeout(180)
class X12Test {
    private static final int ROUNDS = 3;

    /** Both ranks send two messages of different lengths before they receive any. */
    static final class Twice {
        private Twice() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int me = world.Rank();
            int other = 1 - me;
            for (int n : new int[] {1, 100, 100_000}) {
                MPI.Buffer_attach(ByteBuffer.allocate(2 * Integer.BYTES * (2 * n + 1)));
                for (int round = 0; round < ROUNDS; round++) {
                    world.Bsend(numbers(n, me + round), 0, n, MPI.INT, other, 1);
                    world.Bsend(numbers(n + 1, me - round), 0, n + 1, MPI.INT, other, 2);
                    check(world, n + 1, other, 2, other - round);
                    check(world, n, other, 1, other + round);
                    // The next round finds the buffer empty: the messages have been received.
                    world.Barrier();
                    MPI.Buffer_detach();
                    MPI.Buffer_attach(ByteBuffer.allocate(Integer.BYTES * (2 * n + 1)));
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private static int[] numbers(int n, int value) {
            int[] numbers = new int[n];
            java.util.Arrays.fill(numbers, value);
            return numbers;
        }

        private static void check(Intracomm world, int n, int source, int tag, int value) {
            int[] got = new int[n];
            assertEquals(n, world.Recv(got, 0, n, MPI.INT, source, tag).count);
            for (int number : got) {
                assertEquals(value, number);
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldSendASecondMessageBeforeTheFirstIsReceived(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Twice.class));
    }
}
