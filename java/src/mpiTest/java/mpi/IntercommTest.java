package mpi;

import static mpi.Program.assertStatus;
import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Communicators of two groups. */
@Timeout(180)
class IntercommTest {
    private static final int TAG = 3;
    private static final int RANKS = 6;

    /**
     * Two groups among six ranks: 4, 2, 0 and 3, 1, in this order. The leaders are 2 and 3; rank 5 is in no
     * group.
     */
    static final class Groups {
        private static final int[] EVEN = {4, 2, 0};
        private static final int[] ODD = {3, 1};

        private final Intracomm local;
        private final Intercomm inter;
        private final int[] own;
        private final int[] other;

        private Groups(Intracomm world, int tag) {
            int me = world.Rank();
            boolean isEven = me % 2 == 0;
            local = world.Split(me == 5 ? MPI.UNDEFINED : me % 2, -me);
            own = isEven ? EVEN : ODD;
            other = isEven ? ODD : EVEN;
            inter = local == null ? null : world.Create_intercomm(local, isEven ? 1 : 0, isEven ? 3 : 2, tag);
        }

        public static void main(String[] args) {
            MPI.Init(args);
            Groups groups = new Groups(MPI.COMM_WORLD, TAG);
            if (groups.inter != null) {
                groups.check();
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private void check() {
            int me = MPI.COMM_WORLD.Rank();
            assertTrue(inter.Test_inter());
            assertFalse(local.Test_inter());
            assertEquals(own.length, inter.Size());
            assertEquals(local.Rank(), inter.Rank());
            assertEquals(me, own[inter.Rank()]);
            assertArrayEquals(own, inter.Group().members);
            assertEquals(inter.Rank(), inter.Group().Rank());
            assertEquals(other.length, inter.Remote_size());
            assertArrayEquals(other, inter.Remote_group().members);
            assertEquals(MPI.UNDEFINED, inter.Remote_group().Rank());
            talk(inter);
            Intercomm copy = (Intercomm) inter.clone();
            assertArrayEquals(other, copy.Remote_group().members);
            compare(copy);
            apart(copy);
            merge();
            copy.Free();
            fails(MPI.ERR_COMM, copy::Remote_size);
            talk(inter);
            misuse();
        }

        /** Each rank sends to each one of the other group, in all ways. */
        private void talk(Intercomm comm) {
            int me = comm.Rank();
            int remote = comm.Remote_size();
            Request[] sends = new Request[remote];
            for (int to = 0; to < remote; to++) {
                sends[to] = comm.Issend(new int[] {own[me], to}, 0, 2, MPI.INT, to, TAG);
            }
            int[] got = new int[2];
            for (int from = 0; from < remote; from++) {
                assertStatus(from, TAG, 2, comm.Recv(got, 0, 2, MPI.INT, from, MPI.ANY_TAG));
                assertArrayEquals(new int[] {other[from], me}, got);
            }
            Request.Waitall(sends);
            comm.Send(new String[] {"from " + own[me]}, 0, 1, MPI.OBJECT, me % remote, 1);
            for (int k = me; k < remote; k += own.length) {
                comm.Send(new double[] {own[me]}, 0, 1, MPI.DOUBLE, k, 2);
            }
            for (int from = 0; from < remote; from++) {
                if (from % own.length == me) {
                    String[] text = new String[1];
                    Status status = comm.Recv(text, 0, 1, MPI.OBJECT, MPI.ANY_SOURCE, 1);
                    assertEquals("from " + other[status.source], text[0]);
                }
            }
            double[] number = new double[1];
            Status status = comm.Irecv(number, 0, 1, MPI.DOUBLE, MPI.ANY_SOURCE, 2).Wait();
            assertStatus(me % remote, 2, 1, status);
            assertEquals(other[me % remote], number[0]);
            assertStatus(MPI.PROC_NULL, MPI.ANY_TAG, 0, comm.Recv(got, 0, 1, MPI.INT, MPI.PROC_NULL, 0));
        }

        private void compare(Intercomm copy) {
            assertEquals(MPI.IDENT, Comm.Compare(inter, inter));
            assertEquals(MPI.CONGRUENT, Comm.Compare(inter, copy));
            assertEquals(MPI.UNEQUAL, Comm.Compare(inter, local));
            assertEquals(MPI.UNEQUAL, Comm.Compare(MPI.COMM_WORLD, inter));
        }

        /** The same ranks and tags in both: messages do not meet. */
        private void apart(Intercomm copy) {
            int[] got = new int[2];
            if (inter.Rank() == 0) {
                Request first = inter.Isend(new int[] {1}, 0, 1, MPI.INT, 0, TAG);
                Request second = copy.Isend(new int[] {2}, 0, 1, MPI.INT, 0, TAG);
                copy.Recv(got, 1, 1, MPI.INT, MPI.ANY_SOURCE, MPI.ANY_TAG);
                inter.Recv(got, 0, 1, MPI.INT, MPI.ANY_SOURCE, MPI.ANY_TAG);
                assertArrayEquals(new int[] {1, 2}, got);
                Request.Waitall(new Request[] {first, second});
            }
        }

        private void merge() {
            boolean isEven = own == EVEN;
            assertArrayEquals(new int[] {4, 2, 0, 3, 1}, inter.Merge(!isEven).Group().members);
            assertArrayEquals(new int[] {3, 1, 4, 2, 0}, inter.Merge(isEven).Group().members);
            // The leader of the even ranks, 2, has the smaller rank in the world.
            assertArrayEquals(new int[] {4, 2, 0, 3, 1}, inter.Merge(true).Group().members);
            Intracomm all = inter.Merge(false);
            assertArrayEquals(new int[] {4, 2, 0, 3, 1}, all.Group().members);
            assertFalse(all.Test_inter());
            all.Barrier();
            int[] got = new int[1];
            int next = (all.Rank() + 1) % all.Size();
            int previous = (all.Rank() + all.Size() - 1) % all.Size();
            all.Sendrecv(new int[] {all.Rank()}, 0, 1, MPI.INT, next, 0, got, 0, 1, MPI.INT, previous, 0);
            assertEquals(previous, got[0]);
            all.Free();
        }

        private void misuse() {
            int remote = other.length;
            fails(MPI.ERR_RANK, () -> inter.Send(new int[1], 0, 1, MPI.INT, remote, TAG));
            fails(MPI.ERR_RANK, () -> inter.Recv(new int[1], 0, 1, MPI.INT, remote, TAG));
            fails(MPI.ERR_COMM, () -> MPI.COMM_WORLD.Create_intercomm(null, 0, 0, TAG));
            fails(MPI.ERR_COMM, () -> MPI.COMM_WORLD.Create_intercomm(inter, 0, 0, TAG));
            fails(MPI.ERR_RANK, () -> MPI.COMM_WORLD.Create_intercomm(local, own.length, 0, TAG));
            fails(MPI.ERR_RANK, () -> MPI.COMM_WORLD.Create_intercomm(MPI.COMM_SELF, 0, RANKS, TAG));
            fails(MPI.ERR_TAG, () -> MPI.COMM_WORLD.Create_intercomm(MPI.COMM_SELF, 0, 0, -1));
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldConnectTwoGroups(World world) throws Exception {
        assertEquals(Collections.nCopies(RANKS, "done"), world.run(RANKS, Groups.class));
    }

    /** A leader whose arguments are invalid, while the others of its group wait for it. */
    static final class BadLeader {
        private BadLeader() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Intracomm half = world.Split(world.Rank() / 2, 0);
            Intracomm freed = (Intracomm) world.clone();
            freed.Free();
            refused(half, world, 9, TAG, MPI.ERR_RANK);
            refused(half, world, 0, -1, MPI.ERR_TAG);
            refused(half, freed, 0, TAG, MPI.ERR_COMM);
            // The communicator of the group is usable.
            Intercomm inter = world.Create_intercomm(half, 1, world.Rank() < 2 ? 3 : 1, TAG);
            assertEquals(2, inter.Remote_size());
            half.Barrier();
            MPI.Finalize();
            System.out.println("done");
        }

        private static void refused(Intracomm half, Comm peer, int remoteLeader, int tag, int errorClass) {
            boolean isLeader = half.Rank() == 1;
            String text = fails(isLeader ? errorClass : MPI.ERR_OTHER,
                    () -> peer.Create_intercomm(half, 1, remoteLeader, tag));
            String leader = "world rank " + half.Group().members[1] + ", a leader, has abandoned the creation";
            assertTrue(isLeader || text.contains(leader), text);
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldFailInTheWholeGroupOfABadLeader(World world) throws Exception {
        assertEquals(Collections.nCopies(4, "done"), world.run(4, BadLeader.class));
    }

    /** Groups that have rank 1 in common, then two groups that meet in a communicator of two groups. */
    static final class Overlap {
        private Overlap() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int me = world.Rank();
            Intracomm copy = (Intracomm) world.clone();
            // Rank 0 leads all three, and rank 2 leads itself.
            Intracomm single = me == 2 ? MPI.COMM_SELF : null;
            if (single == null) {
                Intracomm low = world.Split(0, 0);
                Intercomm ahead = world.Create_intercomm(low, 0, 2, TAG);
                assertEquals(1, ahead.Remote_size());
                Intercomm again = ahead.Create_intercomm(low, 1, 0, TAG);
                assertArrayEquals(new int[] {2}, again.Remote_group().members);
            } else {
                world.Split(1, 0);
                Intercomm ahead = world.Create_intercomm(single, 0, 0, TAG);
                assertEquals(2, ahead.Remote_size());
                Intercomm again = ahead.Create_intercomm(single, 0, 1, TAG);
                assertArrayEquals(new int[] {0, 1}, again.Remote_group().members);
            }
            String text = fails(MPI.ERR_GROUP, () -> world.Create_intercomm(copy, 0, 0, TAG));
            assertTrue(text.endsWith("world ranks [0, 1, 2] belong to both groups"), text);
            copy.Barrier();
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldRefuseGroupsThatOverlap(World world) throws Exception {
        assertEquals(Collections.nCopies(3, "done"), world.run(3, Overlap.class));
    }
}
