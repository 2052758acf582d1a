package mpi;

import mpjdev.core.Types;

/** The datatype whose item is one element of an array of references. Messages hold the objects serialised. */
final class ObjectType extends ElementType {
    private static final int CODE = 12;
    private static final Object[] NONE = {};

    ObjectType() {
        super(CODE, Types.OBJECT, 0, 1);
    }

    @Override
    long handle() {
        return -1L - Types.OBJECT;
    }

    @Override
    int lengthOf(Object buf) {
        if (!(buf instanceof Object[])) {
            throw Failures.wrongBuffer(buf, this);
        }
        return ((Object[]) buf).length;
    }

    @Override
    Object none(int count) {
        if (count != 0) {
            throw Failures.noBuffer(count);
        }
        return NONE;
    }

    @Override
    String component() {
        return "Object";
    }

    @Override
    public String toString() {
        return "MPI.OBJECT";
    }
}
