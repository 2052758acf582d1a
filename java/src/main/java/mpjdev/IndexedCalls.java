package mpjdev;

import java.lang.ref.Reference;
import mpjdev.core.Backoff;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;

/**
 * The native calls of messages between elements that an index list selects.
 *
 * <p>They are apart from {@link IndexedArrayMessages}, which each rank loads when it joins its job.
 */
final class IndexedCalls {
    private IndexedCalls() {}

    static Request isendGathered(ArrayMessages comm, Object array, int length, int type, int count, int offs,
            int[] indexes, int dest, int tag) {
        try {
            long request = Native.isendGathered(comm.handle(), array, length, type, count, offs, indexes,
                    indexes.length, dest, tag);
            return Request.of(request, null);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static void sendGathered(ArrayMessages comm, Object array, int length, int type, int count, int offs,
            int[] indexes, int dest, int tag) {
        if (Backoff.isVirtual()) {
            isendGathered(comm, array, length, type, count, offs, indexes, dest, tag).iwait();
            return;
        }
        try {
            Native.sendGathered(comm.handle(), array, length, type, count, offs, indexes, indexes.length, dest, tag);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static Status recvScattered(ArrayMessages comm, Object array, int length, int type, int count, int offs,
            int[] indexes, int src, int tag) {
        if (Backoff.isVirtual()) {
            return irecvScattered(comm, array, length, type, count, offs, indexes, src, tag).iwaitOrWithdraw();
        }
        Status status = new Status();
        try {
            long result = Native.recvScattered(comm.handle(), array, length, type, count, offs, indexes,
                    indexes.length, src, tag, status);
            return status.receivedArray(type, result);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static Request irecvScattered(ArrayMessages comm, Object array, int length, int type, int count, int offs,
            int[] indexes, int src, int tag) {
        try {
            long request = Native.irecvScattered(comm.handle(), array, length, type, count, offs, indexes,
                    indexes.length, src, tag);
            return Request.of(request, array, length, type);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static Status sendrecvIndexed(ArrayMessages comm, Object from, int fromLength, int type, int sendCount,
            int fromOffs, int[] fromIndexes, int dest, int sendTag, Object to, int toLength, int recvCount,
            int toOffs, int[] toIndexes, int src, int recvTag) {
        if (Backoff.isVirtual()) {
            Request received = irecvScattered(comm, to, toLength, type, recvCount, toOffs, toIndexes, src, recvTag);
            Request sent;
            try {
                sent = isendGathered(comm, from, fromLength, type, sendCount, fromOffs, fromIndexes, dest, sendTag);
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
            long result = Native.sendrecvIndexed(comm.handle(), from, fromLength, type, sendCount, fromOffs,
                    fromIndexes, fromIndexes.length, dest, sendTag, to, toLength, type, recvCount, toOffs,
                    toIndexes, toIndexes.length, src, recvTag, status);
            return status.receivedArray(type, result);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }
}
