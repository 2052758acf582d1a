package mpjdev.conformance;

import mpjdev.Comm;
import mpjdev.Wait;

/** A job of ranks on some transport. */
enum TransportFixture {
    /** Ranks as threads. */
    LOCAL,
    /** The same, with messages of objects split as on a transport that only knows lengths. */
    LOCAL_MESSAGE_ORIENTED,
    /** Ranks as processes, over shared memory. */
    PROCESSES;

    /** Runs a job; throws what one of its ranks has thrown. */
    <E extends Exception> void run(int ranks, Comm.Task<E> task) throws E {
        if (this == PROCESSES) {
            Processes.run(ranks, task);
        } else {
            Wait.job(this == LOCAL_MESSAGE_ORIENTED, ranks, task);
        }
    }
}
