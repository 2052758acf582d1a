package compat;

import static org.junit.jupiter.api.Assertions.assertEquals;

import mpi.Intracomm;
import mpi.MPI;
import mpi.Request;
import mpjbuf.Buffer;
import mpjdev.Mpjrun;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Defect X20 of MPJ Express: a send of a packed buffer frees it, and a receive of one by Irecv clears it
 * before it can be unpacked.
 */
@Timeout(180)
class X20Test {
    private static final int ROUNDS = 3;

    /** Rank 0 sends one buffer again and again, in each mode; rank 1 receives into one buffer. */
    public static final class Again {
        private Again() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Buffer unit = PackTest.buffer();
            int[] got = new int[1];
            for (int round = 0; round < ROUNDS; round++) {
                if (world.Rank() == 0) {
                    int end = world.Pack(new int[] {round}, 0, 1, MPI.INT, unit, 0);
                    world.Send(unit, 0, end, MPI.PACKED, 1, round);
                    world.Ssend(unit, 0, end, MPI.PACKED, 1, round);
                    world.Isend(unit, 0, end, MPI.PACKED, 1, round).Wait();
                } else {
                    for (int message = 0; message < ROUNDS; message++) {
                        Request request = world.Irecv(unit, 0, unit.getCapacity(), MPI.PACKED, 0, round);
                        assertEquals(16, request.Wait().Get_count(MPI.PACKED));
                        got[0] = -1;
                        assertEquals(16, world.Unpack(unit, 0, got, 0, 1, MPI.INT));
                        assertEquals(round, got[0]);
                    }
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @Test
    void shouldLeaveABufferUsable() throws Exception {
        PackTest.run(Again.class, new Mpjrun(2));
        PackTest.run(Again.class, new Mpjrun(1).threads(2));
    }
}
