package mpjdev;

import java.lang.ref.Reference;
import java.lang.reflect.Array;
import mpjdev.core.Backoff;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.PlatformThread;
import mpjdev.core.ShortCollectives;

/**
 * The native calls of collective operations on arrays. They wait in native code, where a virtual thread would
 * keep its carrier.
 *
 * <p>They are apart from {@link ArrayCollectives}, which each rank loads when it joins its job.
 */
final class ArrayCollectiveCalls {
    private static final int[] NONE = {};

    private ArrayCollectiveCalls() {}

    static void bcast(ArrayCollectives comm, int type, Object array, int off, int count, int root) {
        if (Backoff.isVirtual()) {
            PlatformThread.run(() -> bcastHere(comm, type, array, off, count, root));
        } else {
            bcastHere(comm, type, array, off, count, root);
        }
    }

    private static void bcastHere(ArrayCollectives comm, int type, Object array, int off, int count, int root) {
        try {
            int length = Array.getLength(array);
            if (!ShortCollectives.bcast(comm.handle(), isRoot(comm, root), root, type, array, length, off, count)) {
                Native.bcast(comm.handle(), datatype(type), array, length, type, off, count, root);
            }
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static void move(ArrayCollectives comm, int how, int root, int type, Object from, int fromOff, Object to, int toOff,
            int count) {
        if (Backoff.isVirtual()) {
            PlatformThread.run(() -> moveHere(comm, how, root, type, from, fromOff, to, toOff, count));
        } else {
            moveHere(comm, how, root, type, from, fromOff, to, toOff, count);
        }
    }

    private static void moveHere(ArrayCollectives comm, int how, int root, int type, Object from, int fromOff, Object to,
            int toOff, int count) {
        try {
            boolean isRoot = isRoot(comm, root);
            // An array that only the root uses may be null elsewhere.
            Object sent = how == Native.SCATTER && !isRoot ? to : from;
            Object received = how == Native.GATHER && !isRoot ? from : to;
            int sentLength = Array.getLength(sent);
            int receivedLength = Array.getLength(received);
            if (ShortCollectives.move(comm.handle(), how, Native.size(comm.handle()), isRoot, root, type, sent, sentLength,
                    fromOff, received, receivedLength, toOff, count)) {
                return;
            }
            int[] sends = {fromOff, count};
            int[] receives = {toOff, count};
            Native.moveBlocks(comm.handle(), how, root, datatype(type), sent, sentLength, type, sends, sends.length,
                    datatype(type), received, receivedLength, type, receives, receives.length);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static void reduce(ArrayCollectives comm, int how, int root, Op op, int type, Object from, int fromOff, Object to,
            int toOff, int count) {
        if (Backoff.isVirtual()) {
            PlatformThread.run(() -> reduceHere(comm, how, root, op, type, from, fromOff, to, toOff, count));
        } else {
            reduceHere(comm, how, root, op, type, from, fromOff, to, toOff, count);
        }
    }

    private static void reduceHere(ArrayCollectives comm, int how, int root, Op op, int type, Object from, int fromOff,
            Object to, int toOff, int count) {
        try {
            boolean hasResult = how != Native.REDUCE || isRoot(comm, root);
            Object result = hasResult ? to : from;
            int fromLength = Array.getLength(from);
            int resultLength = Array.getLength(result);
            if (ShortCollectives.reduce(comm.handle(), how, hasResult, root, op.ordinal(), type, from, fromLength, fromOff,
                    result, resultLength, toOff, count)) {
                return;
            }
            Native.reduce(comm.handle(), how, root, op.ordinal(), datatype(type), from, fromLength, type, fromOff,
                    result, resultLength, type, toOff, count, NONE, 0);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    /** Returns the datatype of elements of this type. */
    private static long datatype(int type) {
        return -1 - type;
    }

    private static boolean isRoot(ArrayCollectives comm, int root) {
        return Native.rank(comm.handle()) == root;
    }
}
