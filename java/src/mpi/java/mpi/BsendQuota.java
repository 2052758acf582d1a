package mpi;

import java.util.ArrayDeque;
import java.util.function.LongSupplier;
import mpjdev.core.Backoff;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;
import mpjdev.core.Waits;

/**
 * An attached buffer (MPI-1.1, section 3.6). Nothing is stored in it: its length limits the octets of
 * buffered sends that are not done. The core captures messages in its own memory.
 */
final class BsendQuota {
    /** Sends that are kept before those that are done are looked for. */
    private static final int SWEPT_FROM = 16;

    private static volatile BsendQuota attached;

    /** The buffer as it was attached; null for one that is no array. */
    private final byte[] buffer;
    private final long limit;
    private final ArrayDeque<Pending> pending = new ArrayDeque<>();
    private long used;
    private int sweptFrom = SWEPT_FROM;

    /** A send that was not done when it was started. */
    private static final class Pending {
        final long request;
        final long octets;

        Pending(long request, long octets) {
            this.request = request;
            this.octets = octets;
        }
    }

    private BsendQuota(byte[] buffer, long limit) {
        this.buffer = buffer;
        this.limit = limit;
    }

    /** Attaches a buffer, after the attached one is detached. Blocks as {@link #detach}. */
    static void attach(byte[] buffer, long octets) {
        detach();
        attached = new BsendQuota(buffer, octets);
    }

    /** Waits until all buffered sends are done. Returns the buffer if it is an array. */
    static byte[] detach() {
        BsendQuota quota = attached;
        if (quota == null) {
            return null;
        }
        quota.drain();
        attached = null;
        return quota.buffer;
    }

    /** Detaches the buffer without a wait: the sends continue. */
    static void leave() {
        BsendQuota quota = attached;
        attached = null;
        if (quota != null) {
            synchronized (quota) {
                quota.pending.forEach(send -> Native.freeRequest(send.request));
                quota.pending.clear();
            }
        }
    }

    /**
     * Starts a buffered send.
     *
     * @param octets octets of its elements, or of its serialised objects
     * @param start starts it; returns its request, 0 if it is done
     * @throws MPIException if no buffer is attached, or the octets do not fit
     */
    static void send(long octets, LongSupplier start) {
        BsendQuota quota = attached;
        if (quota == null) {
            throw new MPIException(MPI.ERR_BUFFER, "no buffer is attached: call MPI.Buffer_attach", null);
        }
        quota.charge(octets, start);
    }

    private synchronized void charge(long octets, LongSupplier start) {
        if (used + octets > limit || pending.size() >= sweptFrom) {
            sweep();
        }
        if (used + octets > limit) {
            throw new MPIException(MPI.ERR_BUFFER, "a buffered send of " + octets + " octets does not fit: " + used + " of "
                    + limit + " attached octets are in use", null);
        }
        long request = start.getAsLong();
        if (request != 0) {
            pending.add(new Pending(request, octets));
            used += octets;
        }
    }

    /** Releases the octets of sends that are done. */
    private void sweep() {
        Status ignored = new Status();
        pending.removeIf(send -> isDone(send, ignored));
        sweptFrom = SWEPT_FROM + 2 * pending.size();
    }

    private boolean isDone(Pending send, Status ignored) {
        try {
            if (Native.test(send.request, ignored) == Native.PENDING) {
                return false;
            }
        } catch (RuntimeException e) {
            // Its destination has failed, which other calls report.
        }
        used -= send.octets;
        return true;
    }

    private void drain() {
        for (Pending send = first(); send != null; send = first()) {
            await(send.request);
            synchronized (this) {
                if (pending.remove(send)) {
                    used -= send.octets;
                }
            }
        }
    }

    private synchronized Pending first() {
        return pending.peek();
    }

    /** Waits for a send. A failed one is done; so is one that another thread has seen done. */
    private static void await(long request) {
        Status ignored = new Status();
        try {
            if (Backoff.isVirtual()) {
                Waits.await(request, ignored);
            } else {
                Native.await(request, -1, ignored);
            }
        } catch (NativeFailure e) {
            if (e.code() == NativeFailure.INTERRUPTED) {
                throw Failures.of(e);
            }
        } catch (IllegalStateException e) {
            // The request is freed.
        }
    }
}
