package mpjdev.tools;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import mpjdev.Comm;

/** Octets of Java heap that rank 0 takes for a send and a receive, from array to array. */
final class Garbage extends Work {
    private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private final ArrayTrips trips;

    Garbage(Comm world, int octets) {
        super(world);
        trips = new ArrayTrips(world, octets);
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
