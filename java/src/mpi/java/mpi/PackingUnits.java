package mpi;

import java.lang.ref.Reference;
import mpjdev.core.Native;

/** Packing units in arrays of bytes (MPI-1.1, section 3.13). */
final class PackingUnits {
    private PackingUnits() {}

    /** Returns the octets that items take at most, without the stream of objects. */
    static int size(int count, Datatype datatype) {
        try {
            if (count < 0) {
                throw new IllegalArgumentException("the count " + count + " is negative");
            }
            long octets = Native.sectionCapacity(datatype.element, Math.multiplyExact(count, datatype.Size()));
            return Math.toIntExact(octets);
        } catch (ArithmeticException e) {
            throw new MPIException(MPI.ERR_COUNT, count + " items of " + datatype + " are too many", e);
        } catch (RuntimeException e) {
            throw Failures.ofMessage(e, datatype, count, 0);
        }
    }

    /** Appends items. Returns the position behind them. */
    static int pack(Object buf, int offset, int count, Datatype datatype, byte[] unit, int position) {
        try {
            byte[] into = Failures.present(unit, "the packed array");
            Object array = datatype.arrayOf(buf, count);
            int off = buf == null ? 0 : offset;
            int length = datatype.lengthOf(array);
            if (datatype.hasObjects()) {
                return packObjects((Object[]) array, off, count, datatype, into, position);
            }
            return Native.pack(datatype.handle(), array, length, datatype.element, off, count, into, into.length, position);
        } catch (RuntimeException e) {
            throw Failures.ofMessage(e, datatype, count, 0);
        } finally {
            Reference.reachabilityFence(datatype);
        }
    }

    private static int packObjects(Object[] source, int off, int count, Datatype datatype, byte[] unit, int position) {
        long writer = ObjectMessages.write(source, off, count, datatype);
        try {
            return Native.packObjects(writer, unit, unit.length, position);
        } finally {
            ObjectMessages.release(writer);
        }
    }

    /** Stores packed items. Returns the position behind them. */
    static int unpack(byte[] unit, int position, Object buf, int offset, int count, Datatype datatype) {
        try {
            byte[] from = Failures.present(unit, "the packed array");
            Object array = datatype.arrayOf(buf, count);
            int off = buf == null ? 0 : offset;
            int length = datatype.lengthOf(array);
            if (datatype.hasObjects()) {
                return unpackObjects(from, position, (Object[]) array, off, count, datatype);
            }
            return Native.unpack(from, from.length, position, datatype.handle(), array, length, datatype.element, off, count);
        } catch (RuntimeException e) {
            throw Failures.ofMessage(e, datatype, count, 0);
        } finally {
            Reference.reachabilityFence(datatype);
        }
    }

    /** Stores packed objects. Returns the position behind them. */
    static int unpackObjects(byte[] unit, int position, Object[] dest, int off, int count, Datatype datatype) {
        ObjectMessages.check(dest, off, count, datatype);
        long reader = ObjectMessages.newReader();
        try {
            int next = Native.unpackObjects(unit, unit.length, position, reader);
            ObjectMessages.read(reader, dest, off, count, datatype);
            return next;
        } finally {
            Native.close(reader);
        }
    }
}
