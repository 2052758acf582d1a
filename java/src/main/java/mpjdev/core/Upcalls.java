package mpjdev.core;

/** What native code asks of Java, all of it on threads that Java gave it and outside any hot path. */
final class Upcalls {
    private Upcalls() {}

    /** Whether the calling thread has been interrupted; its flag stays set. */
    static boolean isInterrupted() {
        return Thread.currentThread().isInterrupted();
    }

    /** Has unreachable buffers close, as far as a collection and a short wait can. */
    static boolean reclaimMemory() {
        return Collections.MEMORY.run();
    }

    /** Has unreachable files and sockets close, as far as a collection and a short wait can. */
    static boolean reclaimDescriptors() {
        return Collections.DESCRIPTORS.run();
    }

    /** Made at the first collection: the lambdas would add 10 ms to the start of each rank. */
    private static final class Collections {
        static final Reclaimer MEMORY = new Reclaimer(System::nanoTime, Native::usedMemory, System::gc, 0);

        /** Joining a job takes many descriptors, so it is worth waiting for the last one. */
        static final Reclaimer DESCRIPTORS =
                new Reclaimer(System::nanoTime, Upcalls::openDescriptors, System::gc, 100_000_000);
    }

    /** Descriptors of this process; the most there can be where none is left to count them with. */
    private static long openDescriptors() {
        String[] open = new java.io.File("/proc/self/fd").list();
        return open == null ? Long.MAX_VALUE : open.length;
    }
}
