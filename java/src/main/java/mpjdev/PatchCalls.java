package mpjdev;

import java.lang.ref.Reference;
import mpjdev.core.Backoff;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;

/**
 * The native calls of messages between elements that a strided patch selects.
 *
 * <p>They are apart from {@link PatchArrayMessages}, which each rank loads when it joins its job.
 */
final class PatchCalls {
    private PatchCalls() {}

    static Request isendPatch(ArrayMessages comm, Object array, int length, int type, int off, int rank, int exts,
            int strs, int[] indexes, int dest, int tag) {
        try {
            long request = Native.isendPatch(comm.handle(), array, length, type, off, rank, exts, strs, indexes,
                    indexes.length, dest, tag);
            return Request.of(request, null);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static void sendPatch(ArrayMessages comm, Object array, int length, int type, int off, int rank, int exts,
            int strs, int[] indexes, int dest, int tag) {
        if (Backoff.isVirtual()) {
            isendPatch(comm, array, length, type, off, rank, exts, strs, indexes, dest, tag).iwait();
            return;
        }
        try {
            Native.sendPatch(comm.handle(), array, length, type, off, rank, exts, strs, indexes, indexes.length,
                    dest, tag);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static Status recvPatch(ArrayMessages comm, Object array, int length, int type, int off, int rank, int exts,
            int strs, int[] indexes, int src, int tag) {
        if (Backoff.isVirtual()) {
            return irecvPatch(comm, array, length, type, off, rank, exts, strs, indexes, src, tag).iwaitOrWithdraw();
        }
        Status status = new Status();
        try {
            long result = Native.recvPatch(comm.handle(), array, length, type, off, rank, exts, strs, indexes,
                    indexes.length, src, tag, status);
            return status.receivedArray(type, result);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static Request irecvPatch(ArrayMessages comm, Object array, int length, int type, int off, int rank, int exts,
            int strs, int[] indexes, int src, int tag) {
        try {
            long request = Native.irecvPatch(comm.handle(), array, length, type, off, rank, exts, strs, indexes,
                    indexes.length, src, tag);
            return Request.of(request, array, length, type);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static Status sendrecvPatch(ArrayMessages comm, Object from, int fromLength, int type, int fromOff,
            int fromRank, int fromExts, int fromStrs, int[] fromIndexes, int dest, int sendTag, Object to,
            int toLength, int toOff, int toRank, int toExts, int toStrs, int[] toIndexes, int src, int recvTag) {
        if (Backoff.isVirtual()) {
            Request received = irecvPatch(comm, to, toLength, type, toOff, toRank, toExts, toStrs, toIndexes, src,
                    recvTag);
            Request sent;
            try {
                sent = isendPatch(comm, from, fromLength, type, fromOff, fromRank, fromExts, fromStrs, fromIndexes,
                        dest, sendTag);
            } catch (RuntimeException | OutOfMemoryError e) {
                received.cancel();
                throw e;
            }
            Status status = received.iwaitOrWithdraw();
            sent.iwait();
            return status;
        }
        Status status = new Status();
        try {
            long result = Native.sendrecvPatch(comm.handle(), from, fromLength, type, fromOff, fromRank, fromExts,
                    fromStrs, fromIndexes, fromIndexes.length, dest, sendTag, to, toLength, type, toOff, toRank,
                    toExts, toStrs, toIndexes, toIndexes.length, src, recvTag, status);
            return status.receivedArray(type, result);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }
}
