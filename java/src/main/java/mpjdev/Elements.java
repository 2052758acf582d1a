package mpjdev;

import mpjdev.core.Native;

/** The elements of an object array that a call selects. The engine computes strided patches. */
final class Elements {
    private Elements() {}

    /** Returns the object at a position of a section. */
    @FunctionalInterface
    interface Source {
        Object get(int k);
    }

    static void checkRange(String what, int off, int count, int length) {
        if (off < 0 || count < 0 || off > length - count) {
            throw new ArrayIndexOutOfBoundsException(what + ": offset " + off + " and count " + count
                    + " reach outside an array of length " + length);
        }
    }

    /** Returns a checked copy of the indices, which other threads cannot change after the check. */
    static int[] indices(int length, int count, int offs, int[] indexes) {
        checkRange("index array", offs, count, indexes.length);
        int[] copy = java.util.Arrays.copyOfRange(indexes, offs, offs + count);
        for (int k = 0; k < count; k++) {
            if (copy[k] < 0 || copy[k] >= length) {
                throw new ArrayIndexOutOfBoundsException("index " + copy[k] + " at position " + k
                        + " is outside an array of length " + length);
            }
        }
        return copy;
    }

    /** Returns the element numbers of a strided patch. */
    static int[] patch(int length, int off, int rank, int exts, int strs, int[] indexes) {
        int[] own = indexes.clone();
        int[] elements = new int[Native.patchCount(length, off, rank, exts, strs, own, own.length)];
        Native.patchElements(length, off, rank, exts, strs, own, own.length, elements, elements.length);
        return elements;
    }
}
