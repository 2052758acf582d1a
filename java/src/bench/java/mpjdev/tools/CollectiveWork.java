package mpjdev.tools;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import mpjdev.Comm;

/** A collective call of package mpi, as the work of a rank. */
class CollectiveWork extends Work {
    final CollectiveCalls calls;

    /** Work with the call of a case, of this number of octets. */
    CollectiveWork(Case what, Comm world, int octets) {
        super(world);
        calls = CollectiveCalls.of(what.word, MpiTrips.same(world), octets);
    }

    @Override
    void run(long times) {
        calls.run(times);
        nanos = calls.nanos();
        extra = calls.extra();
    }

    /** Octets of Java heap that each rank allocates for a call. The second result is theirs. */
    static final class Garbage extends CollectiveWork {
        private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();

        Garbage(Case what, Comm world, int octets) {
            super(what, world, octets);
        }

        @Override
        void run(long times) {
            long before = threads.getCurrentThreadAllocatedBytes();
            calls.runPlainly(times);
            extra = threads.getCurrentThreadAllocatedBytes() - before;
        }
    }
}
