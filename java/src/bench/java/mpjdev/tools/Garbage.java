package mpjdev.tools;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import mpjdev.Comm;

/** Octets of Java heap that rank 0 allocates for a send and a receive. */
final class Garbage extends Work {
    private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private final Work trips;

    Garbage(Work trips) {
        super(trips.world);
        this.trips = trips;
    }

    @Override
    void run(long times) throws Exception {
        long before = threads.getCurrentThreadAllocatedBytes();
        trips.run(times);
        extra = me == 0 ? threads.getCurrentThreadAllocatedBytes() - before : 0;
    }

    @Override
    public void close() {
        trips.close();
    }
}
