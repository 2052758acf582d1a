package mpi;

import java.lang.ref.Reference;
import java.lang.reflect.Array;
import mpjdev.core.Backoff;
import mpjdev.core.Combiner;
import mpjdev.core.Native;
import mpjdev.core.PlatformThread;
import mpjdev.core.ShortCollectives;
import mpjdev.core.Types;

/** Reductions of a communicator, after the checks of their arguments. */
final class Reductions {
    static final int[] NO_COUNTS = {};
    /** An offset at which an item of any datatype lies inside an array of the largest length. */
    private static final int MIDDLE = 1 << 30;

    private Reductions() {}

    /** Reduces vectors as the call says. */
    static void reduce(CommCore comm, int how, int root, Object sendbuf, int sendoffset, Object recvbuf, int recvoffset,
            int count, int[] counts, Datatype datatype, Op op) {
        if (Backoff.isVirtual()) {
            PlatformThread.run(() -> reduceHere(comm, how, root, sendbuf, sendoffset, recvbuf, recvoffset, count, counts,
                    datatype, op));
        } else {
            reduceHere(comm, how, root, sendbuf, sendoffset, recvbuf, recvoffset, count, counts, datatype, op);
        }
    }

    private static void reduceHere(CommCore comm, int how, int root, Object sendbuf, int sendoffset, Object recvbuf,
            int recvoffset, int count, int[] counts, Datatype datatype, Op op) {
        try {
            if (op == null) {
                throw new MPIException(MPI.ERR_OP, "the operation is null", null);
            }
            Object from = datatype.arrayOf(sendbuf, count);
            int fromOff = sendbuf == null ? 0 : sendoffset;
            boolean hasResult = how != Native.REDUCE || Collectives.isRoot(comm, root);
            Object to = hasResult ? datatype.arrayOf(recvbuf, count) : MPI.BYTE.arrayOf(null, 0);
            int toOff = recvbuf == null ? 0 : recvoffset;
            int fromLength = datatype.lengthOf(from);
            int toLength = hasResult ? datatype.lengthOf(to) : 0;
            int toElement = hasResult ? datatype.element : Types.BYTE;
            if (datatype.hasObjects()) {
                ObjectCollectives.reduce(comm, how, root, (Object[]) from, fromOff, hasResult ? (Object[]) to : null, toOff,
                        count, counts, datatype, op);
            } else if (op.isUser()) {
                Function function = new Function(op, datatype, count);
                Native.reduceWith(comm.handle(), how, root, op.isCommutative, datatype.handle(), from, fromLength,
                        datatype.element, fromOff, to, toLength, toElement, toOff, count, counts, counts.length, function,
                        function.low, function.length, datatype.element, function.high, function.length, datatype.element,
                        function.base);
            } else if (!reduceShort(comm, how, hasResult, root, from, fromLength, fromOff, to, toLength, toOff, count,
                    counts, datatype, op)) {
                Native.reduce(comm.handle(), how, root, op.nativeCode(), datatype.handle(), from, fromLength,
                        datatype.element, fromOff, to, toLength, toElement, toOff, count, counts, counts.length);
            }
        } catch (RuntimeException e) {
            throw comm.raised(Failures.ofReduction(e, datatype, count));
        } finally {
            Reference.reachabilityFence(comm);
            Reference.reachabilityFence(datatype);
        }
    }

    /** Makes a call whose arrays are short, by a predefined operation. Returns whether it was made. */
    private static boolean reduceShort(CommCore comm, int how, boolean hasResult, int root, Object from, int fromLength,
            int fromOff, Object to, int toLength, int toOff, int count, int[] counts, Datatype datatype, Op op) {
        if (datatype.unit == 0) {
            return false;
        }
        if (how == Native.REDUCE_SCATTER) {
            return areEqual(counts, comm.ranks()) && ShortCollectives.reduceScatter(comm.handle(), counts.length,
                    op.nativeCode(), datatype.element, from, fromLength, fromOff, to, toLength, toOff,
                    datatype.elements(counts[0]));
        }
        return ShortCollectives.reduce(comm.handle(), how, hasResult, root, op.nativeCode(), datatype.element, from,
                fromLength, fromOff, to, toLength, toOff, datatype.elements(count));
    }

    /** Returns whether there is the same count for each rank. */
    private static boolean areEqual(int[] counts, int ranks) {
        for (int count : counts) {
            if (count != counts[0]) {
                return false;
            }
        }
        return counts.length == ranks;
    }

    /** Returns the sum of the items of all parts, the first of which belong to the ranks. */
    static int sum(int[] counts) {
        long sum = 0;
        for (int count : counts) {
            if (count < 0) {
                throw new MPIException(MPI.ERR_COUNT, "the count " + count + " is negative", null);
            }
            sum += count;
        }
        if ((int) sum != sum) {
            throw new MPIException(MPI.ERR_COUNT, sum + " items are too many", null);
        }
        return (int) sum;
    }

    /** A function of the program, with the arrays that it gets. */
    private static final class Function extends Combiner {
        private final Op op;
        private final Datatype datatype;
        private final int count;
        /** Elements of an array, and the index of its first item. */
        private final int length;
        private final int base;
        private final Object low;
        private final Object high;

        Function(Op op, Datatype datatype, int count) {
            this.op = op;
            this.datatype = datatype;
            this.count = count;
            int[] places = datatype.unit != 0 || count <= 0 ? null : datatype.places(MIDDLE, 1, Integer.MAX_VALUE);
            int first = 0;
            long end = datatype.unit == 0 ? 0 : (long) count * datatype.unit;
            if (places != null) {
                int last = 0;
                for (int place : places) {
                    first = Math.min(first, place - MIDDLE);
                    last = Math.max(last, place - MIDDLE);
                }
                end = (count - 1L) * datatype.Extent() + last + 1;
            }
            this.base = -first;
            this.length = Math.toIntExact(Math.max(0, base + end));
            Class<?> component = ElementType.of(datatype.element).arrayOf(null, 0).getClass().getComponentType();
            this.low = Array.newInstance(component, length);
            this.high = Array.newInstance(component, length);
        }

        @Override
        protected void combine() {
            op.function.Call(low, base, high, base, count, datatype);
        }
    }
}
