package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertNotSame;

import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Communicators that are made of others: split, created of groups, cloned, freed, compared. */
@Timeout(180)
class SplitTest {
    private static final int TAG = 2;

    private static int[] members(Comm comm) {
        return comm.Group().members;
    }

    /** Splits four ranks. */
    static final class Splits {
        private Splits() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int me = world.Rank();
            Intracomm equal = world.Split(7, 0);
            assertArrayEquals(new int[] {0, 1, 2, 3}, members(equal), "equal keys keep the order of the ranks");
            Intracomm reversed = world.Split(0, -me);
            assertArrayEquals(new int[] {3, 2, 1, 0}, members(reversed));
            assertEquals(3 - me, reversed.Rank());
            Intracomm parity = world.Split(me % 2, 0);
            assertArrayEquals(me % 2 == 0 ? new int[] {0, 2} : new int[] {1, 3}, members(parity));
            Intracomm one = world.Split(me == 2 ? 5 : MPI.UNDEFINED, 0);
            if (me == 2) {
                assertArrayEquals(new int[] {2}, members(one));
            } else {
                assertNull(one);
            }
            fails(MPI.ERR_ARG, () -> world.Split(-2, 0));
            int[] got = new int[1];
            int other = 1 - parity.Rank();
            if (parity.Rank() == 0) {
                parity.Send(new int[] {me}, 0, 1, MPI.INT, other, TAG);
                parity.Recv(got, 0, 1, MPI.INT, MPI.ANY_SOURCE, MPI.ANY_TAG);
            } else {
                parity.Recv(got, 0, 1, MPI.INT, other, TAG);
                parity.Send(new int[] {me}, 0, 1, MPI.INT, other, TAG);
            }
            assertEquals((me + 2) % 4, got[0]);
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldOrderRanksByKeyAndThenByRank(World world) throws Exception {
        assertEquals(Collections.nCopies(4, "done"), world.run(4, Splits.class));
    }

    /** Creates communicators of groups of three ranks. */
    static final class Creations {
        private Creations() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int me = world.Rank();
            Group all = world.Group();
            assertEquals(me, all.Rank());
            Group two = all.Incl(new int[] {2, 0});
            Intracomm made = me == 1 ? world.Creat(two) : world.Create(two);
            if (me == 1) {
                assertNull(made);
                assertEquals(MPI.UNDEFINED, two.Rank());
            } else {
                assertArrayEquals(new int[] {2, 0}, members(made));
                assertEquals(me == 2 ? 0 : 1, made.Rank());
                fails(MPI.ERR_GROUP, () -> made.Create(all));
            }
            assertNull(world.Create(MPI.GROUP_EMPTY));
            fails(MPI.ERR_GROUP, () -> world.Create(null));
            world.Barrier();
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldCreateCommunicatorsOfGroupsAndNullForOthers(World world) throws Exception {
        assertEquals(Collections.nCopies(3, "done"), world.run(3, Creations.class));
    }

    /** Clones, compares and frees communicators. */
    static final class Clones {
        private Clones() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int me = world.Rank();
            Intracomm copy = (Intracomm) world.clone();
            assertNotSame(world, copy);
            assertEquals(MPI.IDENT, Comm.Compare(world, world));
            assertEquals(MPI.CONGRUENT, Comm.Compare(world, copy));
            Intracomm reversed = world.Split(0, -me);
            assertEquals(MPI.SIMILAR, Comm.Compare(world, reversed));
            Intracomm single = world.Split(me, 0);
            assertEquals(MPI.UNEQUAL, Comm.Compare(world, single));
            fails(MPI.ERR_COMM, () -> Comm.Compare(world, null));
            int[] got = new int[2];
            if (me == 0) {
                world.Send(new int[] {1}, 0, 1, MPI.INT, 1, TAG);
                copy.Send(new int[] {2}, 0, 1, MPI.INT, 1, TAG);
            } else {
                copy.Recv(got, 0, 1, MPI.INT, 0, TAG);
                world.Recv(got, 1, 1, MPI.INT, 0, TAG);
                assertArrayEquals(new int[] {2, 1}, got, "contexts are separate");
            }
            copy.Free();
            fails(MPI.ERR_COMM, copy::Rank);
            fails(MPI.ERR_COMM, () -> copy.Send(got, 0, 1, MPI.INT, 0, TAG));
            fails(MPI.ERR_COMM, world::Free);
            int rounds = Integer.parseInt(args[args.length - 1]);
            for (int k = 0; k < rounds; k++) {
                ((Comm) world.clone()).Free();
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldCloneCompareAndFree(World world) throws Exception {
        String rounds = world == World.SHM || world == World.THREADS ? "2000" : "100";
        assertEquals(List.of("done", "done"), world.run(2, Clones.class, rounds));
    }
}
