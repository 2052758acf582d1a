package mpjdev.bench;

import java.util.concurrent.ArrayBlockingQueue;
import mpjdev.Buffer;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.WriteBuffer;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * Ping-pong between two ranks that are threads. The latency is half of a round trip. The baseline is a pair
 * of threads that pass clones of an array through queues.
 */
public class LocalBench extends ContestBench {
    private static final int WAYS = 4;
    /** Turns are long compared with the work of the collector after a way that leaves garbage. */
    private static final long TURN_NANOS = 10_000_000;
    private static final int TAG = 1;

    @Param({"8", "128", "1024", "8192", "65536", "1048576", "8388608", "67108864"})
    int octets;

    private final int[] trips = {1, 1, 1, 1};
    private int jobs;
    private final Rank[] ranks = new Rank[2];

    /** Nanoseconds for half a round trip. */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Nanos extends Medians {
        /** From array to array: write and send, receive and read. */
        public double ours() {
            return median(0);
        }

        /** From buffer to buffer: send and receive of a written message. */
        public double buffer() {
            return median(1);
        }

        /** {@code ArrayBlockingQueue.put} of a clone, {@code take}. */
        public double queue() {
            return median(2);
        }

        /** The same, with threads that spin on {@code poll}. */
        public double spinningQueue() {
            return median(3);
        }
    }

    /** The buffers of one rank. They survive the job, so that memory is touched once. */
    private static final class Rank {
        final double[] array;
        final WriteBuffer out;
        final ReadBuffer in;
        final ArrayBlockingQueue<double[]> inbox = new ArrayBlockingQueue<>(64);

        Rank(int octets) {
            array = new double[octets / Double.BYTES];
            out = new WriteBuffer(Buffer.SECTION_OVERHEAD + octets);
            out.write(array, 0, array.length);
            in = new ReadBuffer(Buffer.SECTION_OVERHEAD + octets);
        }
    }

    @Setup(Level.Trial)
    public void open() {
        contest = new Contest(WAYS);
        ranks[0] = new Rank(octets);
        ranks[1] = new Rank(octets);
    }

    @Benchmark
    public void pingPong(Nanos nanos) throws Exception {
        nanos.of(contest);
        double[] results = new double[WAYS];
        int first = jobs++;
        Comm.<Exception>runThreads(2, world -> {
            for (int turn = 0; turn < WAYS; turn++) {
                int way = (turn + first) % WAYS;
                // This turn is not measured: threads that are new, or slept during a large copy, may begin
                // on one processor and move later.
                trips(world, way, trips[way]);
                long start = System.nanoTime();
                trips(world, way, trips[way]);
                if (world.id() == 0) {
                    results[way] = (System.nanoTime() - start) / (2.0 * trips[way]);
                }
            }
        });
        for (int way = 0; way < WAYS; way++) {
            trips[way] = Contest.adapted(trips[way], 2 * results[way], TURN_NANOS);
        }
        contest.record(results);
    }

    private void trips(Comm world, int way, int trips) throws Exception {
        int me = world.id();
        Rank own = ranks[me];
        Rank other = ranks[1 - me];
        switch (way) {
            case 0:
                arrays(world, me, own, trips);
                break;
            case 1:
                // The last written message.
                buffers(world, me, own, trips);
                break;
            case 2:
                queue(me, own, other, trips);
                break;
            default:
                spinningQueue(me, own, other, trips);
                break;
        }
    }

    private static void arrays(Comm world, int me, Rank own, int trips) throws Exception {
        int n = own.array.length;
        for (int i = 0; i < trips; i++) {
            if (me == 0) {
                own.out.clear();
                own.out.write(own.array, 0, n);
                world.send(own.out, 1, TAG);
            }
            world.recv(own.in, 1 - me, TAG);
            own.in.read(own.array, 0, n);
            if (me == 1) {
                own.out.clear();
                own.out.write(own.array, 0, n);
                world.send(own.out, 0, TAG);
            }
        }
    }

    private static void buffers(Comm world, int me, Rank own, int trips) {
        for (int i = 0; i < trips; i++) {
            if (me == 0) {
                world.send(own.out, 1, TAG);
            }
            world.recv(own.in, 1 - me, TAG);
            if (me == 1) {
                world.send(own.out, 0, TAG);
            }
        }
    }

    private static void queue(int me, Rank own, Rank other, int trips) throws Exception {
        for (int i = 0; i < trips; i++) {
            if (me == 0) {
                other.inbox.put(own.array.clone());
            }
            double[] got = own.inbox.take();
            if (me == 1) {
                other.inbox.put(got.clone());
            }
        }
    }

    private static void spinningQueue(int me, Rank own, Rank other, int trips) throws Exception {
        for (int i = 0; i < trips; i++) {
            if (me == 0) {
                other.inbox.put(own.array.clone());
            }
            double[] got = own.inbox.poll();
            while (got == null) {
                Thread.onSpinWait();
                got = own.inbox.poll();
            }
            if (me == 1) {
                other.inbox.put(got.clone());
            }
        }
    }
}
