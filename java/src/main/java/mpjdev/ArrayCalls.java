package mpjdev;

import java.lang.ref.Reference;
import mpjdev.core.Backoff;
import mpjdev.core.BounceBuffer;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;

/**
 * The native calls of messages between arrays. An array is passed with its length and type code.
 *
 * <p>They are apart from {@link ArrayMessages}, which each rank loads when it joins its job.
 */
final class ArrayCalls {
    private ArrayCalls() {}

    static void send(ArrayMessages comm, Object array, int length, int type, int off, int count, int dest, int tag,
            boolean synchronous) {
        if (Backoff.isVirtual()) {
            isend(comm, array, length, type, off, count, dest, tag, synchronous).iwait();
            return;
        }
        BounceBuffer bounce = BounceBuffer.of(type, length, off, count);
        try {
            if (bounce != null) {
                bounce.put(array, type, off, count);
                Native.sendBounced(comm.handle(), bounce.address, count, type, dest, tag, synchronous);
                return;
            }
            Native.sendArray(comm.handle(), array, length, type, off, count, dest, tag, synchronous);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static Request isend(ArrayMessages comm, Object array, int length, int type, int off, int count, int dest,
            int tag, boolean synchronous) {
        BounceBuffer bounce = BounceBuffer.of(type, length, off, count);
        try {
            if (bounce != null) {
                bounce.put(array, type, off, count);
                long request = Native.isendBounced(comm.handle(), bounce.address, count, type, dest, tag, synchronous);
                return Request.of(request, null);
            }
            long request = Native.isendArray(comm.handle(), array, length, type, off, count, dest, tag, synchronous);
            return Request.of(request, null);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static Status recv(ArrayMessages comm, Object array, int length, int type, int off, int count, int src, int tag) {
        if (Backoff.isVirtual()) {
            return irecv(comm, array, length, type, off, count, src, tag).iwaitOrWithdraw();
        }
        BounceBuffer bounce = BounceBuffer.of(type, length, off, count);
        Status status = new Status();
        try {
            if (bounce != null) {
                if (src >= 0 && tag >= 0) {
                    long detail = Native.recvBouncedFrom(comm.handle(), bounce.address, count, type, src, tag);
                    bounce.get(array, type, off, (int) detail);
                    return status.receivedArray(type, src, tag, detail);
                }
                long result = Native.recvBounced(comm.handle(), bounce.address, count, type, src, tag, status);
                status.receivedArray(type, result);
                bounce.get(array, type, off, status.count());
                return status;
            }
            if (src >= 0 && tag >= 0) {
                long detail = Native.recvArrayFrom(comm.handle(), array, length, type, off, count, src, tag);
                return status.receivedArray(type, src, tag, detail);
            }
            long result = Native.recvArray(comm.handle(), array, length, type, off, count, src, tag, status);
            return status.receivedArray(type, result);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static Request irecv(ArrayMessages comm, Object array, int length, int type, int off, int count, int src,
            int tag) {
        boolean isSelected = src >= 0 && tag >= 0;
        BounceBuffer bounce = isSelected ? BounceBuffer.of(type, length, off, count) : null;
        try {
            Status status = new Status();
            if (bounce == null) {
                long started = Native.irecvArray(comm.handle(), array, length, type, off, count, src, tag, status);
                return Request.of(started, array, length, type, status);
            }
            long started = Native.irecvBouncedFrom(comm.handle(), bounce.address, count, type, length, off, src, tag);
            if (started >= 0) {
                return Request.of(started, array, length, type, status);
            }
            bounce.get(array, type, off, (int) ~started);
            return Request.received(status.receivedArray(type, src, tag, ~started));
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static Status sendrecv(ArrayMessages comm, Object from, int fromLength, int type, int fromOff, int sendCount,
            int dest, int sendTag, Object to, int toLength, int toOff, int recvCount, int src, int recvTag) {
        if (Backoff.isVirtual()) {
            Request received = irecv(comm, to, toLength, type, toOff, recvCount, src, recvTag);
            Request sent;
            try {
                sent = isend(comm, from, fromLength, type, fromOff, sendCount, dest, sendTag, false);
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
            long result = Native.sendrecvArray(comm.handle(), from, fromLength, type, fromOff, sendCount, dest,
                    sendTag, to, toLength, type, toOff, recvCount, src, recvTag, status);
            return status.receivedArray(type, result);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }
}
