package mpjdev.tools;

import java.util.ArrayDeque;
import java.util.Deque;
import mpjdev.Comm;
import mpjdev.core.Native;

/** A rank that executes commands. It keeps the works of its latest commands for repetitions. */
final class Rank implements AutoCloseable {
    /** Limit of the kept works: the contestants' cases of one comparison. */
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
     * Executes a command. Some repetitions are not measured, since caches are cold after a sleep. The ranks
     * answer behind a barrier, since an answer takes a processor from ranks that are not done.
     */
    Answer run(RunCommand command) throws Exception {
        Work work = work(command);
        world.barrier();
        work.run(command.times() / 8 + 1);
        Native.markCounts();
        long begin = System.nanoTime();
        work.run(command.times());
        long end = System.nanoTime();
        String counted = Native.counts();
        world.barrier();
        return new Answer(Double.isNaN(work.nanos) ? end - begin : work.nanos, work.extra, counted);
    }

    private Work work(RunCommand command) throws Exception {
        Case what = Case.of(command.word());
        Kept found = null;
        for (Kept k : kept) {
            if (k.what == what && k.octets == command.octets()) {
                found = k;
                break;
            }
        }
        if (found == null) {
            found = new Kept(what, command.octets(), carrier.work(what, command.octets()));
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
