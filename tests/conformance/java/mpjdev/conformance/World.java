package mpjdev.conformance;

import mpjdev.Comm;

/** A job of ranks on some transport. */
enum World {
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
            runThreads(ranks, task);
        }
    }

    private <E extends Exception> void runThreads(int ranks, Comm.Task<E> task) throws E {
        String before = System.getProperty("mpjdev.messageOriented");
        System.setProperty("mpjdev.messageOriented", Boolean.toString(this == LOCAL_MESSAGE_ORIENTED));
        try {
            Comm.runThreads(ranks, task);
        } finally {
            if (before == null) {
                System.clearProperty("mpjdev.messageOriented");
            } else {
                System.setProperty("mpjdev.messageOriented", before);
            }
        }
    }
}
