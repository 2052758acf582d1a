package mpjdev.tools;

import java.util.ArrayDeque;
import java.util.Deque;
import mpjdev.Comm;
import mpjdev.core.Native;

/** One rank, which follows orders. What it has made for one order stays for others of the same kind. */
final class Rank implements AutoCloseable {
    /** Kinds that are kept: as many as are compared with one another. */
    private static final int KEPT_MAX = 8;

    private final Comm world;
    private final Carrier carrier;
    /** The latest first. */
    private final Deque<Kept> kept = new ArrayDeque<>();

    Rank(Comm world) {
        this(world, (what, octets) -> what.work(world, octets));
    }

    Rank(Comm world, Carrier carrier) {
        this.world = world;
        this.carrier = carrier;
    }

    private record Kept(Case what, int octets, Work work) {}

    /**
     * Time of an order.
     *
     * @param nanos nanoseconds for all times
     * @param extra what else there is to tell, for all times
     * @param counted what ranks over datagrams have counted meanwhile; empty over other transports
     */
    record Answer(double nanos, double extra, String counted) {}

    /** Some times that do not count, since a rank that has slept is not where it was, then those that do. */
    Answer follow(Order order) throws Exception {
        Work work = work(order);
        world.barrier();
        work.run(order.times() / 8 + 1);
        Native.markCounts();
        long begin = System.nanoTime();
        work.run(order.times());
        long end = System.nanoTime();
        return new Answer(Double.isNaN(work.nanos) ? end - begin : work.nanos, work.extra, Native.counts());
    }

    private Work work(Order order) throws Exception {
        Kept found = null;
        for (Kept k : kept) {
            if (k.what == order.what() && k.octets == order.octets()) {
                found = k;
                break;
            }
        }
        if (found == null) {
            found = new Kept(order.what(), order.octets(), carrier.work(order.what(), order.octets()));
        } else {
            kept.remove(found);
        }
        kept.addFirst(found);
        if (kept.size() > KEPT_MAX) {
            kept.removeLast().work.close();
        }
        return found.work;
    }

    @Override
    public void close() {
        kept.forEach(k -> k.work.close());
        kept.clear();
    }
}
