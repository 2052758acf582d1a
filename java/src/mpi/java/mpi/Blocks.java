package mpi;

/** The blocks of an array that a collective call sends or receives. */
final class Blocks {
    private static final int PAIR = 2;
    private static final int[] NONE = {};

    /** The datatype; null on a side that this rank has no part in. */
    final Datatype datatype;
    /** The array, empty in the place of null. */
    final Object array;
    /** Its number of elements. */
    final int length;
    /** Offset in elements and count in items: of the first of equal blocks, or of each block in turn. */
    final int[] numbers;
    /** Whether each block has an offset and a count of its own. */
    private final boolean areListed;

    private Blocks(Datatype datatype, Object array, int[] numbers, boolean areListed) {
        this.datatype = datatype;
        this.array = array;
        this.length = datatype == null ? 0 : datatype.lengthOf(array);
        this.numbers = numbers;
        this.areListed = areListed;
    }

    /** Returns the blocks of a side that this rank has no part in. */
    static Blocks none() {
        return new Blocks(null, MPI.BYTE.arrayOf(null, 0), NONE, false);
    }

    /** Returns one block, or equal ones behind each other. */
    static Blocks equal(Object buf, int offset, int count, Datatype datatype) {
        Object array = present(datatype).arrayOf(buf, count);
        return new Blocks(datatype, array, new int[] {buf == null ? 0 : offset, count}, false);
    }

    /** Returns a block for each rank, at a displacement in extents. */
    static Blocks listed(Object buf, int offset, int[] counts, int[] displs, Datatype datatype, int size) {
        int[] lengths = atLeast(size, counts, "the array of counts");
        int[] at = atLeast(size, displs, "the array of displacements");
        int extent = present(datatype).Extent();
        int[] numbers = new int[PAIR * size];
        int longest = 0;
        for (int rank = 0; rank < size; rank++) {
            int count = lengths[rank];
            if (count < 0) {
                throw new MPIException(MPI.ERR_COUNT, "the count " + count + " of rank " + rank + " is negative", null);
            }
            longest = Math.max(longest, count);
            // A block without items may be anywhere.
            if (count > 0) {
                numbers[PAIR * rank] = element(offset + (long) at[rank] * extent, rank);
                numbers[PAIR * rank + 1] = count;
            }
        }
        return new Blocks(datatype, datatype.arrayOf(buf, longest), numbers, true);
    }

    /** Returns the code of the base type. */
    int element() {
        return datatype == null ? MPI.BYTE.element : datatype.element;
    }

    /** Returns the native datatype. */
    long handle() {
        return datatype == null ? MPI.BYTE.handle() : datatype.handle();
    }

    /** Returns the elements of each of equal blocks of items without gaps; -1 for others. */
    int elements() {
        if (areListed || datatype == null || datatype.unit == 0) {
            return -1;
        }
        return datatype.unit == 1 ? numbers[1] : datatype.elements(numbers[1]);
    }

    /** Returns the offset of the first of equal blocks in elements. */
    int offset() {
        return numbers.length == 0 ? 0 : numbers[0];
    }

    /** Returns whether the elements are objects. */
    boolean hasObjects() {
        return datatype != null && datatype.hasObjects();
    }

    /** Returns the offset of a rank's block in elements. */
    int offset(int rank) {
        if (areListed) {
            return numbers[PAIR * rank];
        }
        return element(numbers[0] + (long) rank * datatype.Extent() * numbers[1], rank);
    }

    /** Returns the items of a rank's block. */
    int count(int rank) {
        return areListed ? numbers[PAIR * rank + 1] : numbers[1];
    }

    private static Datatype present(Datatype datatype) {
        if (datatype == null) {
            throw new MPIException(MPI.ERR_TYPE, "the datatype is null", null);
        }
        return datatype;
    }

    private static int[] atLeast(int size, int[] numbers, String what) {
        int[] present = Failures.present(numbers, what);
        if (present.length < size) {
            throw new MPIException(MPI.ERR_ARG, what + " has " + present.length + " elements for " + size + " ranks", null);
        }
        return present;
    }

    private static int element(long index, int rank) {
        if ((int) index != index) {
            throw new MPIException(MPI.ERR_BUFFER, "the block of rank " + rank + " begins at element " + index, null);
        }
        return (int) index;
    }
}
