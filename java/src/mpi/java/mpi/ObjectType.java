package mpi;

import mpjdev.core.Types;

/** The datatype whose item is one element of an array of references, which travels serialised. */
final class ObjectType extends Datatype {
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
    public int Size() {
        return 1;
    }

    @Override
    public int Extent() {
        return 1;
    }

    @Override
    public int Lb() {
        return 0;
    }

    @Override
    public int Ub() {
        return 1;
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
