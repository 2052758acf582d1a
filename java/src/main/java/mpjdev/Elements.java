package mpjdev;

import mpjdev.core.Native;

/** Which elements of an object array a call is about; the arithmetic is the engine's. */
final class Elements {
    private Elements() {}

    /** Gives the object at a place of a section. */
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

    /** A copy of the indices, checked: what is checked is what is used. */
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

    /** The element numbers of a strided patch. */
    static int[] patch(int length, int off, int rank, int exts, int strs, int[] indexes) {
        int[] own = indexes.clone();
        int[] elements = new int[Native.patchCount(length, off, rank, exts, strs, own, own.length)];
        Native.patchElements(length, off, rank, exts, strs, own, own.length, elements, elements.length);
        return elements;
    }
}
