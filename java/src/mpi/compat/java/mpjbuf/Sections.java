package mpjbuf;

import java.lang.reflect.Array;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import mpjdev.core.Native;
import mpjdev.core.Types;

/** The sections of a {@link Buffer}. */
abstract class Sections {
    /** Largest capacity of a message. */
    private static final int ROOM_MAX = 2147483624;

    private final int offset;
    private final int capacity;
    private RawBuffer memory;
    private ByteOrder encoding = ByteOrder.nativeOrder();
    private final List<Section> sections = new ArrayList<>();
    private final ObjectPart objects = new ObjectPart();
    /** Octets of all sections but the one that is being written. */
    private long closed;
    /** The section that is being written or read; null for none. */
    private Section current;
    /** Index of the section behind the one that is being read. */
    private int next;
    private boolean isWritable = true;
    /** A message was sent, and the next call of {@code Pack} begins another one. */
    private boolean isSent;

    Sections(RawBuffer buffer, int bufoffset, int capacity) {
        memory = buffer;
        offset = bufoffset;
        this.capacity = capacity;
    }

    // ---- State

    /** Does nothing: the garbage collector frees buffers. */
    public void free() {}

    /**
     * Makes the buffer readable from its first section. A readable one returns to it.
     *
     * @throws BufferException if objects cannot be serialised
     */
    public void commit() throws BufferException {
        closeSection();
        isWritable = false;
        objects.rewind();
        next = 0;
        for (Section section : sections) {
            section.taken = 0;
            section.first = null;
            if (section.type.isDynamic()) {
                section.elements = null;
            }
        }
    }

    /**
     * Empties the buffer and makes it writable.
     *
     * @throws BufferException never
     */
    public void clear() throws BufferException {
        sections.clear();
        objects.set(new byte[0]);
        closed = 0;
        current = null;
        next = 0;
        isWritable = true;
        isSent = false;
    }

    /**
     * Returns whether the buffer is writable.
     *
     * @return false if it is readable
     */
    public boolean isWritable() {
        return isWritable;
    }

    /**
     * Begins a section to write.
     *
     * @param type type of its elements
     * @throws BufferException if the buffer is not writable, or has no room for it
     */
    public void putSectionHeader(Type type) throws BufferException {
        mustBe(true);
        if (type == null || type == Type.UNDEFINED) {
            throw new IllegalArgumentException("a section cannot be of type " + type);
        }
        closeSection();
        Section section = new Section(type);
        mustFit(section, 0);
        current = section;
        sections.add(section);
    }

    /**
     * Begins the next section to read. Elements of the one before that were not read are skipped.
     *
     * @return type of its elements
     * @throws BufferException if the buffer is not readable, there is no further section, or its objects
     *     cannot be deserialised
     */
    public Type getSectionHeader() throws BufferException {
        mustBe(false);
        while (current != null && isStreamed(current) && current.taken < current.count) {
            nextObject();
            current.taken++;
        }
        if (next == sections.size()) {
            throw new BufferUnderflowException("the buffer has " + next + " sections");
        }
        current = sections.get(next++);
        look();
        return current.type;
    }

    private static boolean isStreamed(Section section) {
        return section.type == Type.OBJECT;
    }

    /** Reads the first object of a section: it may be the elements of a section of a dynamic type. */
    private void look() throws BufferException {
        if (current.type.isDynamic()) {
            current.elements = ((DynamicArray) objects.read()).elements;
        } else if (isStreamed(current) && current.count == 1) {
            Object first = objects.read();
            if (first instanceof DynamicArray) {
                DynamicArray array = (DynamicArray) first;
                current.type = Type.getType(array.element).dynamic();
                current.elements = array.elements;
                current.count = Array.getLength(array.elements);
            } else {
                current.first = new Object[] {first};
            }
        }
    }

    private Object nextObject() throws BufferException {
        if (current.first == null) {
            return objects.read();
        }
        Object first = ((Object[]) current.first)[0];
        current.first = null;
        return first;
    }

    /**
     * Returns the size of the section.
     *
     * @return number of its elements, so far if the buffer is writable
     * @throws BufferException if no section was begun
     */
    public int getSectionSize() throws BufferException {
        return begun().count;
    }

    /**
     * Returns what is left of the section.
     *
     * @return number of its elements that were not read
     * @throws BufferException if the buffer is not readable, or no section was begun
     */
    public int getRemaining() throws BufferException {
        mustBe(false);
        return begun().count - current.taken;
    }

    private Section begun() throws BufferException {
        if (current == null) {
            throw new WrongStateException("no section was begun");
        }
        return current;
    }

    private void mustBe(boolean writable) throws BufferException {
        if (isWritable != writable) {
            throw new WrongStateException(writable ? "the buffer is readable: clear it first"
                    : "the buffer is writable: commit it first");
        }
    }

    /** Ends the section that is being written. */
    private void closeSection() throws BufferException {
        if (isWritable && current != null) {
            if (current.type.isDynamic()) {
                objects.write(new DynamicArray(current.type.element().getCode(), current.exactly()));
                current.elements = null;
            }
            closed += current.octets();
        }
        current = null;
    }

    private void mustFit(Section section, int more) throws BufferException {
        long needed = closed + section.type.octets((long) section.count + more);
        if (needed > room()) {
            throw new BufferOverflowException("the sections need " + needed + " octets, the buffer has " + room());
        }
    }

    /** Octets of capacity for sections. */
    private int room() {
        long octets = Math.max(0, (long) capacity - offset);
        final int unit = Buffer.ALIGNMENT_UNIT;
        return (int) Math.min((octets + unit - 1) / unit * unit, ROOM_MAX);
    }

    // ---- Elements

    private static void mustHold(Object array, int off, int n) throws BufferException {
        if (off < 0 || n < 0 || off > Array.getLength(array) - n) {
            throw new IllegalArgumentException("offset " + off + " and count " + n + " reach outside an array of length "
                    + Array.getLength(array));
        }
    }

    private Section of(Type type) throws BufferException {
        if (begun().type.element() != type) {
            throw new TypeMismatchException("the section is one of " + current.type + ", not of " + type);
        }
        return current;
    }

    /** Appends elements to the section. */
    final void put(Type type, Object source, int off, int n) throws BufferException {
        mustBe(true);
        Section section = of(type);
        mustHold(source, off, n);
        mustFit(section, n);
        if (type == Type.OBJECT) {
            for (int k = 0; k < n; k++) {
                objects.write(((Object[]) source)[off + k]);
                section.count++;
            }
        } else {
            section.append(source, off, n);
        }
    }

    /** Takes elements of the section. */
    final void take(Type type, Object dest, int off, int n) throws BufferException {
        mustBe(false);
        Section section = of(type);
        mustHold(dest, off, n);
        if (n > section.count - section.taken) {
            throw new SectionSizeMismatchException(n + " elements were asked for, the section has "
                    + (section.count - section.taken));
        }
        if (type == Type.OBJECT) {
            for (int k = 0; k < n; k++) {
                ((Object[]) dest)[off + k] = nextObject();
                section.taken++;
            }
        } else if (n > 0) {
            System.arraycopy(section.elements, section.taken, dest, off, n);
            section.taken += n;
        }
    }

    /** Appends the elements at these indexes. */
    final void putIndexed(Type type, Object source, int n, int at, int[] indexes) throws BufferException {
        mustHold(indexes, at, n);
        Object picked = type.array(n);
        for (int k = 0; k < n; k++) {
            mustHold(source, indexes[at + k], 1);
            System.arraycopy(source, indexes[at + k], picked, k, 1);
        }
        put(type, picked, 0, n);
    }

    /** Takes elements to these indexes. */
    final void takeIndexed(Type type, Object dest, int n, int at, int[] indexes) throws BufferException {
        mustHold(indexes, at, n);
        for (int k = 0; k < n; k++) {
            mustHold(dest, indexes[at + k], 1);
        }
        Object taken = type.array(n);
        take(type, taken, 0, n);
        for (int k = 0; k < n; k++) {
            System.arraycopy(taken, k, dest, indexes[at + k], 1);
        }
    }

    /** Returns the indexes of a strided patch, the last dimension fastest. */
    private static int[] patch(Object array, int off, int rank, int exts, int strs, int[] indexes) throws BufferException {
        int length = Array.getLength(array);
        try {
            int n = Native.patchCount(length, off, rank, exts, strs, indexes, indexes.length);
            int[] elements = new int[n];
            Native.patchElements(length, off, rank, exts, strs, indexes, indexes.length, elements, n);
            return elements;
        } catch (ArrayIndexOutOfBoundsException | java.lang.IllegalArgumentException e) {
            throw new IllegalArgumentException(e.getMessage());
        }
    }

    final void putPatch(Type type, Object source, int off, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        int[] elements = patch(source, off, rank, exts, strs, indexes);
        putIndexed(type, source, elements.length, 0, elements);
    }

    final void takePatch(Type type, Object dest, int off, int rank, int exts, int strs, int[] indexes)
            throws BufferException {
        int[] elements = patch(dest, off, rank, exts, strs, indexes);
        takeIndexed(type, dest, elements.length, 0, elements);
    }

    // ---- Memory and messages

    /**
     * Returns the memory.
     *
     * @return what the constructor or {@link #setStaticBuffer} was given
     */
    public RawBuffer getStaticBuffer() {
        return memory;
    }

    /**
     * Replaces the memory. The contents stay.
     *
     * @param staticBuffer the memory
     */
    public void setStaticBuffer(RawBuffer staticBuffer) {
        memory = staticBuffer;
    }

    /**
     * Returns the octets before the first section.
     *
     * @return what the constructor was given
     */
    public int offset() {
        return offset;
    }

    /**
     * Returns the capacity.
     *
     * @return what the constructor was given
     */
    public int getCapacity() {
        return capacity;
    }

    /**
     * Returns the size of the contents.
     *
     * @return octets of all sections; objects count nothing
     */
    public int getSize() {
        return (int) (closed + (isWritable && current != null ? current.octets() : 0));
    }

    /**
     * Drops the last sections.
     *
     * @param size octets of the sections that stay
     * @throws java.lang.IllegalArgumentException if no section ends there
     */
    public void setSize(int size) {
        long octets = 0;
        int kept = 0;
        while (octets < size && kept < sections.size()) {
            octets += sections.get(kept++).octets();
        }
        if (octets != size) {
            throw new java.lang.IllegalArgumentException("no section of the buffer ends at octet " + size);
        }
        sections.subList(kept, sections.size()).clear();
        closed = octets;
        current = null;
        next = Math.min(next, kept);
    }

    /**
     * Returns the stream of the objects.
     *
     * @return its octets, or null if there are no objects
     * @throws IllegalStateException if an object cannot be serialised
     */
    public byte[] getDynamicBuffer() {
        try {
            byte[] stream = objects.octets();
            return stream.length == 0 ? null : stream;
        } catch (BufferException e) {
            throw new IllegalStateException(e.getMessage(), e);
        }
    }

    /**
     * Replaces the stream of the objects.
     *
     * @param dynamicBuffer its octets, or null
     */
    public void setDynamicBuffer(byte[] dynamicBuffer) {
        objects.set(dynamicBuffer == null ? new byte[0] : dynamicBuffer);
    }

    /**
     * Returns the byte order of the messages of this buffer.
     *
     * @return the byte order
     */
    public ByteOrder getEncoding() {
        return encoding;
    }

    /**
     * Sets the byte order of the messages of this buffer.
     *
     * @param encoding the byte order
     */
    public void setEncoding(ByteOrder encoding) {
        this.encoding = encoding;
    }

    /** Empties the buffer if its message was sent. */
    final void begin() throws BufferException {
        if (isSent) {
            clear();
        }
    }

    /** Returns the octets of the sections up to the one that is being read, with it. */
    final int position() {
        long octets = 0;
        for (Section section : sections.subList(0, next)) {
            octets += section.octets();
        }
        return (int) octets;
    }

    /** Returns a native buffer with the message, which the caller closes. */
    final long message() throws BufferException {
        closeSection();
        long writer = Native.newWriter((int) closed, encoding == ByteOrder.BIG_ENDIAN ? 0 : 1);
        boolean isWritten = false;
        try {
            byte[] stream = objects.octets();
            if (stream.length > 0) {
                Native.beginObjects(writer, 0);
                Native.appendSecondary(writer, stream, stream.length, 0, stream.length);
            }
            for (Section section : sections) {
                if (section.type.isDynamic()) {
                    Native.writeObjects(writer, 1, 0);
                } else if (isStreamed(section)) {
                    Native.writeObjects(writer, section.count, 0);
                } else {
                    Object elements = section.elements == null ? section.type.array(0) : section.elements;
                    Native.write(writer, elements, Array.getLength(elements), section.type.getCode(), 0, section.count, 0);
                }
            }
            isWritten = true;
            isSent = true;
            return writer;
        } finally {
            if (!isWritten) {
                Native.close(writer);
            }
        }
    }

    /** Returns an empty native buffer for a message, which the caller closes. */
    final long reader() {
        // A packing unit in bytes takes a section header more than its sections do.
        return Native.newReader(Math.min(room() + Buffer.SECTION_OVERHEAD, ROOM_MAX));
    }

    /** Takes over the message of a native buffer, if there is room for it. */
    final void received(long reader) throws BufferException {
        ObjectPart streamed = new ObjectPart();
        List<Section> arrived = Native.isUnit(reader) ? unpacked(reader, streamed) : read(reader, streamed);
        long octets = arrived.stream().mapToLong(Section::octets).sum();
        if (octets > room()) {
            throw new BufferOverflowException("the message has " + octets + " octets of sections, the buffer has " + room());
        }
        clear();
        sections.addAll(arrived);
        closed = octets;
        objects.set(streamed.octets());
        isWritable = false;
    }

    private static Section section(long header) {
        Section section = new Section(Type.getType((int) (header >> Integer.SIZE)));
        section.count = (int) header;
        return section;
    }

    /** Reads the sections of a message. */
    private static List<Section> read(long reader, ObjectPart streamed) {
        List<Section> arrived = new ArrayList<>();
        for (long header = Native.peek(reader, 0); header >= 0; header = Native.peek(reader, 0)) {
            Section section = section(header);
            if (section.type.getCode() == Types.OBJECT) {
                Native.readObjects(reader, section.count, 0);
            } else {
                section.elements = section.type.array(section.count);
                Native.read(reader, section.elements, section.count, section.type.getCode(), 0, section.count, 0);
            }
            arrived.add(section);
        }
        streamed.set(stream(reader));
        return arrived;
    }

    /** Reads the sections of a packing unit in bytes. Octets behind the last one are none of it. */
    private static List<Section> unpacked(long reader, ObjectPart streamed) throws BufferException {
        byte[] unit = new byte[(int) Native.peek(reader, 0)];
        Native.read(reader, unit, unit.length, Types.BYTE, 0, unit.length, 0);
        List<Section> arrived = new ArrayList<>();
        for (int at = 0; at <= unit.length - Buffer.SECTION_OVERHEAD;) {
            Section section = section(Native.unitSection(unit, unit.length, at));
            int code = section.type.getCode();
            if (code == Types.OBJECT) {
                at = unpackObjects(unit, at, section.count, streamed);
            } else {
                section.elements = section.type.array(section.count);
                at = Native.unpack(unit, unit.length, at, -1L - code, section.elements, section.count, code, 0,
                        section.count);
            }
            arrived.add(section);
        }
        return arrived;
    }

    /** Appends objects to a stream: a packing unit has one for each section, a buffer one for all. */
    private static int unpackObjects(byte[] unit, int at, int count, ObjectPart streamed) throws BufferException {
        long part = Native.newReader(Buffer.SECTION_OVERHEAD);
        try {
            int behind = Native.unpackObjects(unit, unit.length, at, part);
            ObjectPart objects = new ObjectPart();
            objects.set(stream(part));
            for (int k = 0; k < count; k++) {
                streamed.write(objects.read());
            }
            return behind;
        } finally {
            Native.close(part);
        }
    }

    /** Returns the stream of the objects of a message. */
    private static byte[] stream(long reader) {
        int length = Math.toIntExact(Native.secondaryLength(reader, 0));
        byte[] stream = new byte[length];
        for (int at = 0; at < length;) {
            at += Native.readSecondary(reader, at, stream, length, at, length - at);
        }
        return stream;
    }
}
