package mpi;

import java.util.Arrays;
import mpjdev.core.Native;

/**
 * A list of ranks, each once (MPI-1.1, section 5.3). Immutable.
 *
 * <p>A rank of a group is a position in the list. Calls on groups are local.
 */
public class Group {
    /** World ranks of the members. */
    final int[] members;
    /** World rank of this process; negative if it is unknown. */
    private final int own;

    Group(int[] members, int own) {
        this.members = members;
        this.own = own;
    }

    /**
     * Returns the number of members.
     *
     * @return the number
     */
    public int Size() {
        return members.length;
    }

    /**
     * Returns the rank of this process.
     *
     * @return the rank, or {@link MPI#UNDEFINED} if this process is no member
     */
    public int Rank() {
        for (int rank = 0; rank < members.length; rank++) {
            if (members[rank] == own) {
                return rank;
            }
        }
        return MPI.UNDEFINED;
    }

    /**
     * Returns ranks in a second group of members of a first one.
     *
     * @param group1 the first group
     * @param ranks1 ranks in it, or {@link MPI#PROC_NULL}
     * @param group2 the second group
     * @return for each of the ranks the one in the second group: {@link MPI#UNDEFINED} for no member,
     *     {@link MPI#PROC_NULL} for {@link MPI#PROC_NULL}
     * @throws MPIException if an argument is null, or the first group has no such rank
     */
    public static int[] Translate_ranks(Group group1, int[] ranks1, Group group2) throws MPIException {
        int[] from = membersOf(group1);
        int[] to = membersOf(group2);
        int[] ranks = MPI.present(ranks1, "the array of ranks");
        int[] out = new int[ranks.length];
        try {
            Native.groupTranslate(from, from.length, ranks, ranks.length, to, to.length, out, out.length);
        } catch (IllegalArgumentException e) {
            throw MPI.raised(Failures.of(e, MPI.ERR_RANK));
        }
        return out;
    }

    /**
     * Compares two groups.
     *
     * @param group1 a group
     * @param group2 a group
     * @return {@link MPI#IDENT} for the same members in the same order, {@link MPI#SIMILAR} for another
     *     order, {@link MPI#UNEQUAL} for other members
     * @throws MPIException if a group is null
     */
    public static int Compare(Group group1, Group group2) throws MPIException {
        int[] a = membersOf(group1);
        int[] b = membersOf(group2);
        return Native.groupCompare(a, a.length, b, b.length);
    }

    /**
     * Returns the members of either group: those of the first one in their order, then those of the second
     * one that the first one does not have.
     *
     * @param group1 a group
     * @param group2 a group
     * @return the union
     * @throws MPIException if a group is null
     */
    public static Group Union(Group group1, Group group2) throws MPIException {
        return combined(Native.UNION, group1, membersOf(group2), group2);
    }

    /**
     * Returns the members of both groups, in the order of the first one.
     *
     * @param group1 a group
     * @param group2 a group
     * @return the intersection
     * @throws MPIException if a group is null
     */
    public static Group Intersection(Group group1, Group group2) throws MPIException {
        return combined(Native.INTERSECTION, group1, membersOf(group2), group2);
    }

    /**
     * Returns the members of a group that a second one does not have, in the order of the first one.
     *
     * @param group1 a group
     * @param group2 a group
     * @return the difference
     * @throws MPIException if a group is null
     */
    public static Group Difference(Group group1, Group group2) throws MPIException {
        return combined(Native.DIFFERENCE, group1, membersOf(group2), group2);
    }

    /**
     * Returns the members with these ranks, in the order of the ranks.
     *
     * @param ranks different ranks of this group
     * @return the chosen members
     * @throws MPIException if a rank is not in this group or occurs twice, or the array is null
     */
    public Group Incl(int[] ranks) throws MPIException {
        return combined(Native.INCLUSION, this, MPI.present(ranks, "the array of ranks"), this);
    }

    /**
     * Returns the members with other ranks than these, in the order of this group.
     *
     * @param ranks different ranks of this group
     * @return the other members
     * @throws MPIException as {@link #Incl}
     */
    public Group Excl(int[] ranks) throws MPIException {
        return combined(Native.EXCLUSION, this, MPI.present(ranks, "the array of ranks"), this);
    }

    /**
     * Returns the members whose ranks are in ranges, in the order of the ranges.
     *
     * @param ranges ranges, each of first rank, last rank and stride. The last rank need not be hit, nor be
     *     in this group; the stride may be negative
     * @return the chosen members
     * @throws MPIException if a stride is 0, a range has not three numbers, or a rank is not in this group or
     *     occurs twice
     */
    public Group Range_incl(int[][] ranges) throws MPIException {
        return ranged(ranges, false);
    }

    /**
     * Returns the members whose ranks are in no range, in the order of this group.
     *
     * @param ranges as for {@link #Range_incl}
     * @return the other members
     * @throws MPIException as {@link #Range_incl}
     */
    public Group Range_excl(int[][] ranges) throws MPIException {
        return ranged(ranges, true);
    }

    /** Does nothing: the garbage collector frees groups. */
    public void free() {}

    private static int[] membersOf(Group group) {
        if (group == null) {
            throw MPI.raised(new MPIException(MPI.ERR_GROUP, "the group is null", null));
        }
        return group.members;
    }

    private static Group combined(int how, Group group, int[] with, Group other) {
        int[] a = membersOf(group);
        int[] out = new int[a.length + with.length];
        int own = group.own >= 0 ? group.own : other.own;
        try {
            int size = Native.groupCombine(how, a, a.length, with, with.length, out, out.length);
            return new Group(Arrays.copyOf(out, size), own);
        } catch (IllegalArgumentException e) {
            throw MPI.raised(Failures.of(e, MPI.ERR_RANK));
        }
    }

    private Group ranged(int[][] ranges, boolean isExcluded) {
        final int numbers = 3;
        int[] flat = new int[numbers * MPI.present(ranges, "the array of ranges").length];
        for (int k = 0; k < ranges.length; k++) {
            if (ranges[k] == null || ranges[k].length != numbers) {
                throw MPI.raised(new MPIException(MPI.ERR_ARG, "range " + k + " has not three numbers", null));
            }
            System.arraycopy(ranges[k], 0, flat, numbers * k, numbers);
        }
        int[] out = new int[members.length];
        try {
            int size = Native.groupRanges(members, members.length, flat, flat.length, isExcluded, out, out.length);
            return new Group(Arrays.copyOf(out, size), own);
        } catch (IllegalArgumentException e) {
            throw MPI.raised(Failures.of(e, MPI.ERR_RANK));
        }
    }
}
