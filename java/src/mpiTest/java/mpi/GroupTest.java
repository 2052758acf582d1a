package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** Groups of a process that is rank 5 of the world. */
class GroupTest {
    private static final int OWN = 5;
    private static final Group A = new Group(new int[] {7, 5, 1, 3}, OWN);
    private static final Group B = new Group(new int[] {3, 2, 7}, OWN);

    private static void assertMembers(Group group, int... members) {
        assertArrayEquals(members, group.members);
        assertEquals(members.length, group.Size());
    }

    @Test
    void shouldKnowItsOwnRank() {
        assertEquals(1, A.Rank());
        assertEquals(MPI.UNDEFINED, B.Rank());
        assertEquals(MPI.UNDEFINED, MPI.GROUP_EMPTY.Rank());
    }

    @Test
    void shouldCombineInTheOrderOfTheFirstGroup() {
        assertMembers(Group.Union(A, B), 7, 5, 1, 3, 2);
        assertMembers(Group.Intersection(A, B), 7, 3);
        assertMembers(Group.Difference(A, B), 5, 1);
        assertMembers(Group.Difference(A, A));
        assertEquals(3, Group.Union(B, A).Rank());
        assertEquals(1, Group.Union(MPI.GROUP_EMPTY, A).Rank());
    }

    @Test
    void shouldIncludeAndExcludeRanks() {
        assertMembers(A.Incl(new int[] {3, 0}), 3, 7);
        assertMembers(A.Incl(new int[0]));
        assertMembers(A.Excl(new int[] {3, 0}), 5, 1);
        assertMembers(A.Excl(new int[0]), A.members);
        fails(MPI.ERR_RANK, () -> A.Incl(new int[] {4}));
        fails(MPI.ERR_RANK, () -> A.Excl(new int[] {0, 0}));
        fails(MPI.ERR_ARG, () -> A.Incl(null));
    }

    @Test
    void shouldIncludeRangesWhoseLastRankIsNotHit() {
        Group eight = new Group(new int[] {0, 1, 2, 3, 4, 5, 6, 7}, OWN);
        assertMembers(eight.Range_incl(new int[][] {{5, 8, 2}, {1, 1, 1}}), 5, 7, 1);
        assertMembers(eight.Range_incl(new int[][] {{6, 0, -3}}), 6, 3, 0);
        assertMembers(eight.Range_excl(new int[][] {{6, 0, -3}, {1, 2, 1}}), 4, 5, 7);
        fails(MPI.ERR_RANK, () -> eight.Range_incl(new int[][] {{0, 1, 0}}));
        fails(MPI.ERR_RANK, () -> eight.Range_incl(new int[][] {{7, 8, 1}}));
        fails(MPI.ERR_ARG, () -> eight.Range_incl(new int[][] {{7, 8}}));
        fails(MPI.ERR_ARG, () -> eight.Range_excl(new int[][] {null}));
        fails(MPI.ERR_ARG, () -> eight.Range_excl(null));
    }

    @Test
    void shouldTranslateRanks() {
        int[] ranks = Group.Translate_ranks(A, new int[] {0, 1, 3, MPI.PROC_NULL}, B);
        assertArrayEquals(new int[] {2, MPI.UNDEFINED, 0, MPI.PROC_NULL}, ranks);
        fails(MPI.ERR_RANK, () -> Group.Translate_ranks(A, new int[] {4}, B));
        fails(MPI.ERR_GROUP, () -> Group.Translate_ranks(A, new int[0], null));
    }

    @Test
    void shouldCompareMembersAndOrder() {
        assertEquals(MPI.IDENT, Group.Compare(A, new Group(A.members.clone(), OWN)));
        assertEquals(MPI.SIMILAR, Group.Compare(A, new Group(new int[] {1, 3, 5, 7}, OWN)));
        assertEquals(MPI.UNEQUAL, Group.Compare(A, B));
        assertEquals(MPI.UNEQUAL, Group.Compare(A, new Group(new int[] {1, 3, 5, 8}, OWN)));
        assertEquals(MPI.IDENT, Group.Compare(MPI.GROUP_EMPTY, B.Incl(new int[0])));
        fails(MPI.ERR_GROUP, () -> Group.Compare(A, null));
    }
}
