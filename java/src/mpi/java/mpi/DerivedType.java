package mpi;

import mpjdev.core.Native;
import mpjdev.core.Resource;
import mpjdev.core.Types;

/** A datatype that a constructor has made, or the mark of a bound. */
final class DerivedType extends Datatype {
    /** Numbers that native code describes a datatype by. */
    private static final int NUMBERS = 5;

    /** Type of the elements; null for a type without any. */
    private final ElementType base;
    private final int size;
    private final int lb;
    private final int ub;
    /** Number of a mark; else 0. */
    private final long mark;
    /** The native datatype; null for a mark, and for a pair until it is needed. */
    private Resource resource;

    private DerivedType(ElementType base, int size, int lb, int ub, boolean isContiguous, long mark) {
        super(base == null ? MPI.UNDEFINED : base.baseType, base == null ? Types.BYTE : base.element,
                base == null ? 0 : base.elementSize, isContiguous ? size : 0);
        this.base = base;
        this.size = size;
        this.lb = lb;
        this.ub = ub;
        this.mark = mark;
    }

    /** Takes ownership of a native datatype. */
    static DerivedType of(long handle) {
        int[] numbers = new int[NUMBERS];
        Native.typeInfo(handle, numbers, NUMBERS);
        int at = 0;
        int element = numbers[at++];
        ElementType base = element == Native.NO_BASE ? null : ElementType.of(element);
        DerivedType made = new DerivedType(base, numbers[at++], numbers[at++], numbers[at++], numbers[at] != 0, 0);
        made.resource = new Resource(made, handle, Resource.TYPE);
        return made;
    }

    /** Returns the mark of a bound. */
    static DerivedType mark(int code) {
        return new DerivedType(null, 0, 0, 0, false, -1L - code);
    }

    /** Returns the type of two elements. Its native datatype is made when it is needed. */
    static DerivedType pair(Datatype base) {
        return new DerivedType((ElementType) base, 2, 0, 2, true, 0);
    }

    /** Returns a type without elements. Its native datatype is made when it is needed. */
    static DerivedType nothing() {
        return new DerivedType(null, 0, 0, 0, false, 0);
    }

    @Override
    long handle() {
        return mark != 0 ? mark : owned().handle();
    }

    private synchronized Resource owned() {
        if (resource == null) {
            ElementType items = base == null ? (ElementType) MPI.BYTE : base;
            resource = new Resource(this, Native.typeContiguous(items.handle(), size), Resource.TYPE);
        }
        return resource;
    }

    @Override
    public int Size() {
        return size;
    }

    @Override
    public int Extent() {
        return ub - lb;
    }

    @Override
    public int Lb() {
        return lb;
    }

    @Override
    public int Ub() {
        return ub;
    }

    @Override
    int lengthOf(Object buf) {
        return base == null ? 0 : base.lengthOf(buf);
    }

    @Override
    Object arrayOf(Object buf, int count) {
        if (base == null) {
            return MPI.BYTE.arrayOf(null, 0);
        }
        return buf == null ? base.none(size == 0 ? 0 : count) : buf;
    }

    @Override
    String component() {
        return base == null ? "byte" : base.component();
    }

    @Override
    public String toString() {
        return "a derived datatype of " + size + " x " + (base == null ? "nothing" : base);
    }
}
