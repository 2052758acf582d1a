package mpi;

import mpjdev.core.Types;

/** The datatype whose item is one element of an array of references, which travels serialised. */
final class ObjectType extends ElementType {
    private static final int CODE = 12;
    private static final Object[] NONE = {};

    ObjectType() {
        super(CODE, Types.OBJECT, 0, 1);
    }

    @Override
    long handle() {
        throw new MPIException(MPI.ERR_TYPE, "a derived datatype cannot have objects", null);
    }

    @Override
    int lengthOf(Object buf) {
        if (!(buf instanceof Object[])) {
            throw Failures.wrongBuffer(buf, this);
        }
        return ((Object[]) buf).length;
    }

    @Override
    Object arrayOf(Object buf, int count) {
        if (buf == null && count != 0) {
            throw Failures.noBuffer(count);
        }
        return buf == null ? NONE : buf;
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
