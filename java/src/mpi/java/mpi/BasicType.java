package mpi;

import mpjdev.core.Types;

/** A datatype whose item is one element of a primitive type. */
final class BasicType extends ElementType {
    private final String name;
    /** An empty array. */
    private final Object none;

    BasicType(int baseType, String name, int elementSize, Object none) {
        super(baseType, baseType - 1, elementSize, 1);
        this.name = name;
        this.none = none;
    }

    @Override
    long handle() {
        return -1L - element;
    }

    @Override
    int lengthOf(Object buf) {
        if (buf.getClass() != none.getClass()) {
            throw Failures.wrongBuffer(buf, this);
        }
        switch (element) {
            case Types.BYTE:
                return ((byte[]) buf).length;
            case Types.CHAR:
                return ((char[]) buf).length;
            case Types.SHORT:
                return ((short[]) buf).length;
            case Types.BOOLEAN:
                return ((boolean[]) buf).length;
            case Types.INT:
                return ((int[]) buf).length;
            case Types.LONG:
                return ((long[]) buf).length;
            case Types.FLOAT:
                return ((float[]) buf).length;
            default:
                return ((double[]) buf).length;
        }
    }

    @Override
    Object none(int count) {
        if (count != 0) {
            throw Failures.noBuffer(count);
        }
        return none;
    }

    @Override
    String component() {
        return none.getClass().getComponentType().getName();
    }

    @Override
    public String toString() {
        return "MPI." + name;
    }
}
