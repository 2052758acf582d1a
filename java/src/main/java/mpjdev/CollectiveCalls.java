package mpjdev;

import java.lang.ref.Reference;
import mpjdev.core.Backoff;
import mpjdev.core.Native;
import mpjdev.core.NativeFailure;

/** The native calls that complete a collective operation. */
final class CollectiveCalls {
    private CollectiveCalls() {}

    /** Returns the communicator that the operation makes, or null. */
    static Comm complete(Comm comm, long operation) {
        try {
            long made;
            if (Backoff.isVirtual()) {
                Backoff backoff = new Backoff();
                made = Native.advance(operation, false);
                while (made == Native.PENDING) {
                    if (Thread.currentThread().isInterrupted()) {
                        throw new InterruptedOperationException("interrupted in a collective operation");
                    }
                    backoff.pause();
                    made = Native.advance(operation, false);
                }
            } else {
                made = Native.advance(operation, true);
            }
            return made == 0 ? null : new Comm(made);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Native.freeOperation(operation);
            Reference.reachabilityFence(comm);
        }
    }
}
