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
}
