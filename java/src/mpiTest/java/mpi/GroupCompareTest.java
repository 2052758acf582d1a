package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/**
 * Defect X7 of MPJ Express: Group.Compare returns SIMILAR for other members in the same number, and throws
 * for two empty groups.
 */
class GroupCompareTest {
    private static Group group(int... members) {
        return new Group(members, 0);
    }

    @Test
    void shouldTellOtherMembersInTheSameNumberApart() {
        assertEquals(MPI.UNEQUAL, Group.Compare(group(0, 1), group(2, 3)));
        assertEquals(MPI.UNEQUAL, Group.Compare(group(0, 1), group(1, 2)));
        assertEquals(MPI.SIMILAR, Group.Compare(group(0, 1), group(1, 0)));
        assertEquals(MPI.IDENT, Group.Compare(group(0, 1), group(0, 1)));
    }

    @Test
    void shouldCompareEmptyGroups() {
        assertEquals(MPI.IDENT, Group.Compare(MPI.GROUP_EMPTY, MPI.GROUP_EMPTY));
        assertEquals(MPI.IDENT, Group.Compare(MPI.GROUP_EMPTY, group(3).Excl(new int[] {0})));
        assertEquals(MPI.UNEQUAL, Group.Compare(MPI.GROUP_EMPTY, group(3)));
    }
}
