package mpi;

import java.util.Arrays;
import mpjdev.core.Native;

/**
 * Collective calls with objects. Each block is serialised once at the rank that sends it. Its octets travel
 * unread, after their number.
 */
final class ObjectCollectives {
    /** The number of octets of a block that could not be serialised. */
    private static final int FAILED = -1;
    private static final int PAIR = 2;
    private static final byte[] NO_OCTETS = {};
    private static final int[] NO_NUMBERS = {};

    private ObjectCollectives() {}

    /** Sends objects of the root to all. */
    static void bcast(CommCore comm, Object[] array, int off, int items, Datatype datatype, int root) {
        boolean isRoot = Collectives.isRoot(comm, root);
        Outgoing own = new Outgoing(1);
        if (isRoot) {
            own.add(0, array, off, items, datatype);
        } else {
            ObjectMessages.check(array, off, items, datatype);
        }
        int[] length = own.lengths;
        Native.bcast(comm.handle(), MPI.INT.handle(), length, 1, MPI.INT.element, 0, 1, root);
        byte[] octets = isRoot ? own.octets() : new byte[Math.max(0, length[0])];
        Native.bcast(comm.handle(), MPI.BYTE.handle(), octets, octets.length, MPI.BYTE.element, 0, octets.length, root);
        own.check();
        if (!isRoot) {
            store(octets, 0, length[0], array, off, items, datatype, root);
        }
    }

    /** Moves blocks of objects as the call says. */
    static void move(CommCore comm, int how, int root, Blocks sent, Blocks received) {
        int size = Native.size(comm.handle());
        boolean isToEach = how == Native.ALLTOALL || how == Native.ALLTOALLV;
        boolean isScatter = how == Native.SCATTER || how == Native.SCATTERV;
        int blocks = isToEach || isScatter ? size : 1;
        boolean sends = sent.datatype != null;
        boolean receives = received.datatype != null;
        if (sends != sent.hasObjects() || receives != received.hasObjects()) {
            throw new MPIException(MPI.ERR_TYPE, "one side of the call has objects, and the other one has not", null);
        }
        Outgoing own = new Outgoing(sends ? blocks : 0);
        for (int block = 0; block < own.lengths.length; block++) {
            own.add(block, (Object[]) sent.array, sent.offset(block), sent.count(block), sent.datatype);
        }
        int sources = !receives ? 0 : isScatter ? 1 : size;
        int[] lengths = exchange(comm, how & ~1, root, own.lengths, sources);
        int[] places = places(lengths);
        byte[] octets = new byte[sources == 0 ? 0 : places[PAIR * sources - PAIR] + places[PAIR * sources - 1]];
        byte[] from = own.octets();
        int[] fromPlaces = sends && (isToEach || isScatter) ? places(own.lengths) : sends ? new int[] {0, from.length} : NO_NUMBERS;
        int[] toPlaces = isScatter ? new int[] {0, octets.length} : places;
        Native.moveBlocks(comm.handle(), how | 1, root, MPI.BYTE.handle(), from, from.length, MPI.BYTE.element, fromPlaces,
                fromPlaces.length, MPI.BYTE.handle(), octets, octets.length, MPI.BYTE.element, toPlaces, toPlaces.length);
        own.check();
        for (int block = 0; block < sources; block++) {
            store(octets, places[PAIR * block], lengths[block], (Object[]) received.array, received.offset(block),
                    received.count(block), received.datatype, isScatter ? root : block);
        }
    }

    /** Reduces vectors of objects by a function, in rank order. */
    static void reduce(CommCore comm, int how, int root, Object[] from, int fromOff, Object[] to, int toOff, int count,
            int[] counts, Datatype datatype, Op op) {
        if (!op.isUser()) {
            throw new MPIException(MPI.ERR_OP, op + " does not combine objects", null);
        }
        if (datatype.unit == 0) {
            throw new MPIException(MPI.ERR_TYPE, "a reduction of objects has a datatype with gaps", null);
        }
        int size = Native.size(comm.handle());
        int rank = Native.rank(comm.handle());
        int items = datatype.elements(count);
        Class<?> component = (to == null ? from : to).getClass().getComponentType();
        Object[] all = to == null ? null : (Object[]) java.lang.reflect.Array.newInstance(component, Math.multiplyExact(size, items));
        Blocks sent = Blocks.equal(from, fromOff, count, datatype);
        Blocks received = to == null ? Blocks.none() : Blocks.equal(all, 0, count, datatype);
        boolean isRooted = how == Native.REDUCE;
        move(comm, isRooted ? Native.GATHER : Native.ALLGATHER, isRooted ? root : 0, sent, received);
        if (to == null) {
            return;
        }
        int last = how == Native.SCAN ? rank : size - 1;
        Object[] result = Arrays.copyOfRange(all, last * items, (last + 1) * items);
        for (int lower = last - 1; lower >= 0 && count > 0; lower--) {
            Object[] in = Arrays.copyOfRange(all, lower * items, (lower + 1) * items);
            op.function.Call(in, 0, result, 0, count, datatype);
        }
        int begin = 0;
        int stored = items;
        if (how == Native.REDUCE_SCATTER) {
            for (int before = 0; before < rank; before++) {
                begin += datatype.elements(counts[before]);
            }
            stored = datatype.elements(counts[rank]);
        }
        System.arraycopy(result, begin, to, toOff, stored);
    }

    /** Moves one number of each block as the call says. Returns those of the blocks that arrive. */
    private static int[] exchange(CommCore comm, int how, int root, int[] own, int sources) {
        int[] numbers = new int[sources];
        int[] from = own.length == 0 ? NO_NUMBERS : new int[] {0, 1};
        int[] to = sources == 0 ? NO_NUMBERS : new int[] {0, 1};
        Native.moveBlocks(comm.handle(), how, root, MPI.INT.handle(), own, own.length, MPI.INT.element, from, from.length,
                MPI.INT.handle(), numbers, sources, MPI.INT.element, to, to.length);
        return numbers;
    }

    /** Returns offset and count of blocks of these lengths behind each other. */
    private static int[] places(int[] lengths) {
        int[] places = new int[PAIR * lengths.length];
        int at = 0;
        for (int block = 0; block < lengths.length; block++) {
            places[PAIR * block] = at;
            places[PAIR * block + 1] = Math.max(0, lengths[block]);
            at = Math.addExact(at, places[PAIR * block + 1]);
        }
        return places;
    }

    private static void store(byte[] octets, int at, int length, Object[] array, int off, int items, Datatype datatype,
            int source) {
        if (length == FAILED) {
            throw new MPIException(MPI.ERR_OTHER, "rank " + source + " could not serialise its objects", null);
        }
        PackingUnits.unpackObjects(octets, at, array, off, items, datatype);
    }

    /** The serialised blocks of this rank. A block that fails still has its place, so that no rank waits. */
    private static final class Outgoing {
        private final byte[][] units;
        private final int[] lengths;
        private RuntimeException failure;

        Outgoing(int blocks) {
            units = new byte[blocks][];
            lengths = new int[blocks];
            Arrays.fill(units, NO_OCTETS);
        }

        void add(int block, Object[] array, int off, int items, Datatype datatype) {
            try {
                units[block] = ObjectMessages.octets(array, off, items, datatype);
                lengths[block] = units[block].length;
            } catch (RuntimeException e) {
                failure = failure == null ? e : failure;
                lengths[block] = FAILED;
            }
        }

        byte[] octets() {
            int length = 0;
            for (byte[] unit : units) {
                length = Math.addExact(length, unit.length);
            }
            byte[] octets = new byte[length];
            int at = 0;
            for (byte[] unit : units) {
                System.arraycopy(unit, 0, octets, at, unit.length);
                at += unit.length;
            }
            return octets;
        }

        /** Throws the failure of a block. */
        void check() {
            if (failure != null) {
                throw failure;
            }
        }
    }
}
