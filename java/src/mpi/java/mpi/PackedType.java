package mpi;

import mpjdev.core.Native;
import mpjdev.core.Types;

/** The datatype whose item is an octet that {@link Comm#Pack} has written. */
final class PackedType extends ElementType {
    PackedType() {
        // No unit: only the typed calls know packed octets.
        super(Native.PACKED, Types.BYTE, 1, 0);
    }

    @Override
    long handle() {
        return -1L - Native.PACKED;
    }

    @Override
    int lengthOf(Object buf) {
        if (!(buf instanceof byte[])) {
            throw Failures.wrongBuffer(buf, this);
        }
        return ((byte[]) buf).length;
    }

    @Override
    Object none(int count) {
        return MPI.BYTE.arrayOf(null, count);
    }

    @Override
    String component() {
        return "byte";
    }

    @Override
    public String toString() {
        return "MPI.PACKED";
    }
}
