package mpjdev.core;

/** Methods that native code calls when it has no memory or no descriptors left. No hot path calls them. */
final class Upcalls {
    private Upcalls() {}

    /**
     * Runs a collection and waits briefly, so that unreachable buffers close. Returns whether memory was
     * freed.
     */
    static boolean reclaimMemory() {
        return Collections.MEMORY.run();
    }

    /**
     * Runs a collection and waits briefly, so that unreachable files and sockets close. Returns whether one
     * closed.
     */
    static boolean reclaimDescriptors() {
        return Collections.DESCRIPTORS.run();
    }

    /** Loaded at the first collection, because lambdas delay the start of each rank (decision 0030). */
    private static final class Collections {
        static final Reclaimer MEMORY = new Reclaimer(System::nanoTime, Native::usedMemory, System::gc, 0);

        /** A rank that joins a job needs many descriptors, so it waits for the last one. */
        static final Reclaimer DESCRIPTORS =
                new Reclaimer(System::nanoTime, Upcalls::openDescriptors, System::gc, 100_000_000);
    }

    /**
     * Returns the open descriptors of this process. If no descriptor is left to list them with, returns the
     * maximum.
     */
    private static long openDescriptors() {
        String[] open = new java.io.File("/proc/self/fd").list();
        return open == null ? Long.MAX_VALUE : open.length;
    }
}
