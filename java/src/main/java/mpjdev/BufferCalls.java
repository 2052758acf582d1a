package mpjdev;

import java.lang.ref.Reference;
import mpjdev.core.Backoff;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;

/**
 * The native calls of messages in buffers, and of probes.
 *
 * <p>They are apart from {@link Comm}, which each rank loads when it joins its job.
 */
final class BufferCalls {
    private BufferCalls() {}

    static void send(Comm comm, Buffer buf, int dest, int tag, boolean synchronous) {
        if (Backoff.isVirtual()) {
            isend(comm, buf, dest, tag, synchronous).iwait();
            return;
        }
        try {
            Native.send(comm.handle(), buf.handle(), dest, tag, synchronous, buf.flags);
            buf.flagsApplied();
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(buf);
            Reference.reachabilityFence(comm);
        }
    }

    static Request isend(Comm comm, Buffer buf, int dest, int tag, boolean synchronous) {
        try {
            long request = Native.isend(comm.handle(), buf.handle(), dest, tag, synchronous, buf.flags);
            buf.flagsApplied();
            return Request.of(request, null);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(buf);
            Reference.reachabilityFence(comm);
        }
    }

    static Status recv(Comm comm, Buffer buf, int src, int tag) {
        if (Backoff.isVirtual()) {
            return irecv(comm, buf, src, tag).iwaitOrWithdraw();
        }
        Status status = new Status();
        try {
            if (src >= 0 && tag >= 0) {
                long detail = Native.recvFrom(comm.handle(), buf.handle(), src, tag);
                buf.contentReplaced();
                return status.received(src, tag, detail, buf);
            }
            long result = Native.recv(comm.handle(), buf.handle(), src, tag, status);
            buf.contentReplaced();
            return status.received(result, buf);
        } catch (NativeFailure f) {
            if (!wasRefused(f, buf)) {
                buf.contentReplaced();
            }
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(buf);
            Reference.reachabilityFence(comm);
        }
    }

    /** Returns whether a receive was refused and left its buffer unchanged; otherwise the buffer is empty. */
    private static boolean wasRefused(NativeFailure f, Buffer buf) {
        return f.code() == NativeFailure.BAD_ARGUMENT || f.code() == NativeFailure.NOT_INITIALIZED && buf.hasContent();
    }

    static Request irecv(Comm comm, Buffer buf, int src, int tag) {
        try {
            Request request = Request.of(Native.irecv(comm.handle(), buf.handle(), src, tag), buf);
            buf.contentReplaced();
            return request;
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(buf);
            Reference.reachabilityFence(comm);
        }
    }

    static Status probe(Comm comm, int src, int tag) {
        if (Backoff.isVirtual()) {
            Backoff backoff = new Backoff();
            Status status = iprobe(comm, src, tag);
            while (status == null) {
                if (Thread.currentThread().isInterrupted()) {
                    throw new InterruptedOperationException("interrupted in a probe");
                }
                backoff.pause();
                status = iprobe(comm, src, tag);
            }
            return status;
        }
        Status status = new Status();
        try {
            return status.probed(Native.probe(comm.handle(), src, tag, status), comm.handle());
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    static Status iprobe(Comm comm, int src, int tag) {
        Status status = new Status();
        try {
            long found = Native.iprobe(comm.handle(), src, tag, status);
            return found == Native.PENDING ? null : status.probed(found, comm.handle());
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }
}
