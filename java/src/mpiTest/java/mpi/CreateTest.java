package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Create with different groups at different ranks. */
@Timeout(180)
class CreateTest {
    private static final int RANKS = 5;

    /** Groups without a common member: one call divides the communicator. */
    static final class Division {
        private static final int[] EVEN = {2, 0};
        private static final int[] ODD = {1, 3};

        private Division() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Group all = world.Group();
            int me = world.Rank();
            Group own = all.Incl(me % 2 == 0 ? EVEN : ODD);
            // Rank 4 is in no group, and passes the empty one or that of others.
            for (Group last : new Group[] {MPI.GROUP_EMPTY, all.Incl(EVEN), all.Incl(ODD)}) {
                Intracomm part = world.Create(me == 4 ? last : own);
                if (me == 4) {
                    assertNull(part);
                } else {
                    check(part, me % 2 == 0 ? EVEN : ODD);
                }
            }
            assertEquals(0, world.Creat(all.Incl(new int[] {me})).Rank());
            assertNull(world.Create(MPI.GROUP_EMPTY));
            connect(world, world.Create(me == 4 ? MPI.GROUP_EMPTY : own));
            world.Barrier();
            MPI.Finalize();
            System.out.println("done");
        }

        private static void check(Intracomm part, int[] members) {
            assertArrayEquals(members, part.Group().members);
            int[] got = new int[1];
            int other = 1 - part.Rank();
            part.Sendrecv(new int[] {part.Rank()}, 0, 1, MPI.INT, other, 0, got, 0, 1, MPI.INT, MPI.ANY_SOURCE, 0);
            assertEquals(other, got[0]);
            part.Barrier();
            part.Free();
        }

        /** The groups of one call meet again in an intercommunicator. */
        private static void connect(Intracomm world, Intracomm part) {
            if (part != null) {
                boolean isEven = world.Rank() % 2 == 0;
                Intercomm inter = world.Create_intercomm(part, 0, isEven ? 1 : 2, 7);
                assertArrayEquals(isEven ? ODD : EVEN, inter.Remote_group().members);
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldDivideByGroupsWithoutACommonMember(World world) throws Exception {
        assertEquals(Collections.nCopies(RANKS, "done"), world.run(RANKS, Division.class));
    }

    /** Groups with a common member, or the same members in another order. */
    static final class Overlap {
        private Overlap() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Group all = world.Group();
            int me = world.Rank();
            // By rank: the groups of 1 and 2 have a member that passes another one.
            int[][] groups = {{0}, {1, 2}, {2, 0}};
            refused(world, all.Incl(groups[me]), "[1, 2]");
            refused(world, me == 0 ? all : all.Incl(new int[] {2, 1, 0}), "[0, 1, 2]");
            refused(world, me == 1 ? MPI.GROUP_EMPTY : all, "[0, 2]");
            world.Barrier();
            MPI.Finalize();
            System.out.println("done");
        }

        private static void refused(Intracomm world, Group group, String ranks) {
            String text = fails(MPI.ERR_GROUP, () -> world.Create(group));
            assertTrue(text.contains("ranks " + ranks), text);
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldFailAtAllRanksForGroupsThatOverlap(World world) throws Exception {
        assertEquals(Collections.nCopies(3, "done"), world.run(3, Overlap.class));
    }
}
