package mpjbuf;

/**
 * A message buffer of MPJ Express: sections of elements of one type each.
 *
 * <p>A new buffer is writable: {@link #putSectionHeader} begins a section, and any number of writes append
 * elements to it. {@link #commit} makes it readable: {@link #getSectionHeader} begins the next section, and
 * any number of reads take its elements. {@link #clear} empties it and makes it writable. A received buffer
 * is readable from its first section. One thread at a time uses a buffer.
 *
 * <p>There is a method of each kind for arrays of each primitive type and of objects.
 */
public class Buffer extends Sections {
    /** Octets of capacity that a section takes beside its elements. */
    public static final int SECTION_OVERHEAD = 8;
    /** Octets whose multiples sections take of the capacity. */
    public static final int ALIGNMENT_UNIT = 8;

    /**
     * Makes an empty buffer.
     *
     * @param capacity octets of all sections, rounded up to a multiple of 8; objects take none
     */
    public Buffer(int capacity) {
        this(BufferFactory.create(capacity), 0, capacity);
    }

    /**
     * Makes an empty buffer.
     *
     * @param buffer its memory
     * @param bufoffset octets before the first section
     * @param capacity octets of these and of all sections, rounded up to a multiple of 8
     */
    public Buffer(RawBuffer buffer, int bufoffset, int capacity) {
        super(buffer, bufoffset, capacity);
    }

    /**
     * Appends elements to the section.
     *
     * @param source array of the elements
     * @param srcOff index of the first one
     * @param numEls their number
     * @throws BufferException if the buffer is not writable, the section has another type, the elements do
     *     not fit or are outside the array, or an object cannot be serialised
     */
    public void write(byte[] source, int srcOff, int numEls) throws BufferException {
        put(Type.BYTE, source, srcOff, numEls);
    }

    public void write(char[] source, int srcOff, int numEls) throws BufferException {
        put(Type.CHAR, source, srcOff, numEls);
    }

    public void write(short[] source, int srcOff, int numEls) throws BufferException {
        put(Type.SHORT, source, srcOff, numEls);
    }

    public void write(boolean[] source, int srcOff, int numEls) throws BufferException {
        put(Type.BOOLEAN, source, srcOff, numEls);
    }

    public void write(int[] source, int srcOff, int numEls) throws BufferException {
        put(Type.INT, source, srcOff, numEls);
    }

    public void write(long[] source, int srcOff, int numEls) throws BufferException {
        put(Type.LONG, source, srcOff, numEls);
    }

    public void write(float[] source, int srcOff, int numEls) throws BufferException {
        put(Type.FLOAT, source, srcOff, numEls);
    }

    public void write(double[] source, int srcOff, int numEls) throws BufferException {
        put(Type.DOUBLE, source, srcOff, numEls);
    }

    public void write(Object[] source, int srcOff, int numEls) throws BufferException {
        put(Type.OBJECT, source, srcOff, numEls);
    }

    /**
     * Takes elements of the section.
     *
     * @param dest array for the elements
     * @param dstOff index of the first one
     * @param numEls their number
     * @throws BufferException if the buffer is not readable, the section has another type or fewer elements,
     *     they do not fit into the array, or an object cannot be deserialised
     */
    public void read(byte[] dest, int dstOff, int numEls) throws BufferException {
        take(Type.BYTE, dest, dstOff, numEls);
    }

    public void read(char[] dest, int dstOff, int numEls) throws BufferException {
        take(Type.CHAR, dest, dstOff, numEls);
    }

    public void read(short[] dest, int dstOff, int numEls) throws BufferException {
        take(Type.SHORT, dest, dstOff, numEls);
    }

    public void read(boolean[] dest, int dstOff, int numEls) throws BufferException {
        take(Type.BOOLEAN, dest, dstOff, numEls);
    }

    public void read(int[] dest, int dstOff, int numEls) throws BufferException {
        take(Type.INT, dest, dstOff, numEls);
    }

    public void read(long[] dest, int dstOff, int numEls) throws BufferException {
        take(Type.LONG, dest, dstOff, numEls);
    }

    public void read(float[] dest, int dstOff, int numEls) throws BufferException {
        take(Type.FLOAT, dest, dstOff, numEls);
    }

    public void read(double[] dest, int dstOff, int numEls) throws BufferException {
        take(Type.DOUBLE, dest, dstOff, numEls);
    }

    public void read(Object[] dest, int dstOff, int numEls) throws BufferException {
        take(Type.OBJECT, dest, dstOff, numEls);
    }

    /**
     * Appends the elements {@code source[idxs[offs + k]]} to the section.
     *
     * @param source array of the elements
     * @param numEls their number
     * @param offs index of the first index
     * @param idxs the indexes
     * @throws BufferException as {@link #write(byte[], int, int)}
     */
    public void gather(byte[] source, int numEls, int offs, int[] idxs) throws BufferException {
        putIndexed(Type.BYTE, source, numEls, offs, idxs);
    }

    public void gather(char[] source, int numEls, int offs, int[] idxs) throws BufferException {
        putIndexed(Type.CHAR, source, numEls, offs, idxs);
    }

    public void gather(short[] source, int numEls, int offs, int[] idxs) throws BufferException {
        putIndexed(Type.SHORT, source, numEls, offs, idxs);
    }

    public void gather(boolean[] source, int numEls, int offs, int[] idxs) throws BufferException {
        putIndexed(Type.BOOLEAN, source, numEls, offs, idxs);
    }

    public void gather(int[] source, int numEls, int offs, int[] idxs) throws BufferException {
        putIndexed(Type.INT, source, numEls, offs, idxs);
    }

    public void gather(long[] source, int numEls, int offs, int[] idxs) throws BufferException {
        putIndexed(Type.LONG, source, numEls, offs, idxs);
    }

    public void gather(float[] source, int numEls, int offs, int[] idxs) throws BufferException {
        putIndexed(Type.FLOAT, source, numEls, offs, idxs);
    }

    public void gather(double[] source, int numEls, int offs, int[] idxs) throws BufferException {
        putIndexed(Type.DOUBLE, source, numEls, offs, idxs);
    }

    public void gather(Object[] source, int numEls, int offs, int[] idxs) throws BufferException {
        putIndexed(Type.OBJECT, source, numEls, offs, idxs);
    }

    /**
     * Takes elements of the section to {@code dest[idxs[offs + k]]}.
     *
     * @param dest array for the elements
     * @param numEls their number
     * @param offs index of the first index
     * @param idxs the indexes
     * @throws BufferException as {@link #read(byte[], int, int)}
     */
    public void scatter(byte[] dest, int numEls, int offs, int[] idxs) throws BufferException {
        takeIndexed(Type.BYTE, dest, numEls, offs, idxs);
    }

    public void scatter(char[] dest, int numEls, int offs, int[] idxs) throws BufferException {
        takeIndexed(Type.CHAR, dest, numEls, offs, idxs);
    }

    public void scatter(short[] dest, int numEls, int offs, int[] idxs) throws BufferException {
        takeIndexed(Type.SHORT, dest, numEls, offs, idxs);
    }

    public void scatter(boolean[] dest, int numEls, int offs, int[] idxs) throws BufferException {
        takeIndexed(Type.BOOLEAN, dest, numEls, offs, idxs);
    }

    public void scatter(int[] dest, int numEls, int offs, int[] idxs) throws BufferException {
        takeIndexed(Type.INT, dest, numEls, offs, idxs);
    }

    public void scatter(long[] dest, int numEls, int offs, int[] idxs) throws BufferException {
        takeIndexed(Type.LONG, dest, numEls, offs, idxs);
    }

    public void scatter(float[] dest, int numEls, int offs, int[] idxs) throws BufferException {
        takeIndexed(Type.FLOAT, dest, numEls, offs, idxs);
    }

    public void scatter(double[] dest, int numEls, int offs, int[] idxs) throws BufferException {
        takeIndexed(Type.DOUBLE, dest, numEls, offs, idxs);
    }

    public void scatter(Object[] dest, int numEls, int offs, int[] idxs) throws BufferException {
        takeIndexed(Type.OBJECT, dest, numEls, offs, idxs);
    }

    /**
     * Appends a strided patch of an array to the section.
     *
     * @param source array of the elements
     * @param srcOff index of the first one
     * @param rank number of dimensions
     * @param exts index of the first extent in {@code indexes}
     * @param strs index of the first stride in {@code indexes}
     * @param indexes extents and strides, the last dimension fastest
     * @throws BufferException as {@link #write(byte[], int, int)}
     */
    public void strGather(byte[] source, int srcOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        putPatch(Type.BYTE, source, srcOff, rank, exts, strs, indexes);
    }

    public void strGather(char[] source, int srcOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        putPatch(Type.CHAR, source, srcOff, rank, exts, strs, indexes);
    }

    public void strGather(short[] source, int srcOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        putPatch(Type.SHORT, source, srcOff, rank, exts, strs, indexes);
    }

    public void strGather(boolean[] source, int srcOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        putPatch(Type.BOOLEAN, source, srcOff, rank, exts, strs, indexes);
    }

    public void strGather(int[] source, int srcOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        putPatch(Type.INT, source, srcOff, rank, exts, strs, indexes);
    }

    public void strGather(long[] source, int srcOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        putPatch(Type.LONG, source, srcOff, rank, exts, strs, indexes);
    }

    public void strGather(float[] source, int srcOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        putPatch(Type.FLOAT, source, srcOff, rank, exts, strs, indexes);
    }

    public void strGather(double[] source, int srcOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        putPatch(Type.DOUBLE, source, srcOff, rank, exts, strs, indexes);
    }

    public void strGather(Object[] source, int srcOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        putPatch(Type.OBJECT, source, srcOff, rank, exts, strs, indexes);
    }

    /**
     * Takes elements of the section to a strided patch of an array.
     *
     * @param dest array for the elements
     * @param dstOff index of the first one
     * @param rank number of dimensions
     * @param exts index of the first extent in {@code indexes}
     * @param strs index of the first stride in {@code indexes}
     * @param indexes extents and strides, the last dimension fastest
     * @throws BufferException as {@link #read(byte[], int, int)}
     */
    public void strScatter(byte[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        takePatch(Type.BYTE, dest, dstOff, rank, exts, strs, indexes);
    }

    public void strScatter(char[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        takePatch(Type.CHAR, dest, dstOff, rank, exts, strs, indexes);
    }

    public void strScatter(short[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        takePatch(Type.SHORT, dest, dstOff, rank, exts, strs, indexes);
    }

    public void strScatter(boolean[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        takePatch(Type.BOOLEAN, dest, dstOff, rank, exts, strs, indexes);
    }

    public void strScatter(int[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        takePatch(Type.INT, dest, dstOff, rank, exts, strs, indexes);
    }

    public void strScatter(long[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        takePatch(Type.LONG, dest, dstOff, rank, exts, strs, indexes);
    }

    public void strScatter(float[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        takePatch(Type.FLOAT, dest, dstOff, rank, exts, strs, indexes);
    }

    public void strScatter(double[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        takePatch(Type.DOUBLE, dest, dstOff, rank, exts, strs, indexes);
    }

    public void strScatter(Object[] dest, int dstOff, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        takePatch(Type.OBJECT, dest, dstOff, rank, exts, strs, indexes);
    }
}
