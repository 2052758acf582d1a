package mpjdev;

import java.lang.ref.Reference;
import mpjdev.core.NativeFailure;
import mpjdev.core.Waits;

/** The native calls that complete a collective operation. */
final class CollectiveCalls {
    private CollectiveCalls() {}

    /** Waits until all ranks have entered. */
    static void barrier(Comm comm) {
        try {
            Waits.barrier(comm.handle());
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    /** Returns the communicator that the operation makes, or null. */
    static Comm complete(Comm comm, long operation) {
        try {
            long made = Waits.complete(operation);
            return made == 0 ? null : new Comm(made);
        } catch (NativeFailure f) {
            throw Errors.comm(f);
        } finally {
            Reference.reachabilityFence(comm);
        }
    }
}
