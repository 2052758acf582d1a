package mpjdev.bench;

import java.util.SplittableRandom;
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
import org.openjdk.jmh.annotations.TearDown;

/**
 * Ping-pong between two ranks that are threads, under oversubscription: beside them compute twice as many
 * threads as processors exist. A rank that waits by spins or yields costs a time slice of the scheduler for
 * each message, which is milliseconds. The baseline is a pair of threads that pass clones through queues.
 */
public class CrowdedBench extends ContestBench {
    private static final int WAYS = 2;
    private static final long TURN_NANOS = 20_000_000;
    private static final int TAG = 1;

    @Param("8")
    int octets;

    private final int[] trips = {1, 1};
    private final ArrayBlockingQueue<double[]> there = new ArrayBlockingQueue<>(1);
    private final ArrayBlockingQueue<double[]> back = new ArrayBlockingQueue<>(1);
    private final Thread[] crowd = new Thread[2 * Runtime.getRuntime().availableProcessors()];
    private int jobs;

    /** The busy threads write it, so that the compiler keeps their work. */
    private volatile long sink;
    private volatile boolean busy = true;

    /** Nanoseconds for one way. */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Nanos extends Medians {
        /** From array to array: write and send, receive and read. */
        public double ours() {
            return median(0);
        }

        /** {@code ArrayBlockingQueue.put} of a clone, {@code take}. */
        public double queue() {
            return median(1);
        }
    }

    @Setup(Level.Trial)
    public void open() {
        contest = new Contest(WAYS);
        for (int i = 0; i < crowd.length; i++) {
            crowd[i] = new Thread(this::compute, "busy-" + i);
            crowd[i].setDaemon(true);
            crowd[i].start();
        }
    }

    private void compute() {
        SplittableRandom random = new SplittableRandom(1);
        while (busy) {
            long sum = 0;
            for (int i = 0; i < 1000; i++) {
                sum += random.nextLong();
            }
            sink = sum;
        }
    }

    @TearDown(Level.Trial)
    public void close() throws Exception {
        busy = false;
        for (Thread thread : crowd) {
            thread.join();
        }
    }

    @Benchmark
    public void pingPong(Nanos nanos) throws Exception {
        nanos.of(contest);
        double[] results = new double[WAYS];
        int first = jobs++;
        Comm.<Exception>runThreads(2, world -> {
            double[] array = new double[octets / Double.BYTES];
            int capacity = Buffer.SECTION_OVERHEAD + octets;
            try (WriteBuffer out = new WriteBuffer(capacity); ReadBuffer in = new ReadBuffer(capacity)) {
                for (int turn = 0; turn < WAYS; turn++) {
                    int way = (turn + first) % WAYS;
                    // Both threads have started before the clock starts.
                    world.barrier();
                    long start = System.nanoTime();
                    if (way == 0) {
                        messages(world, out, in, array, trips[way]);
                    } else {
                        handOver(world.id(), array, trips[way]);
                    }
                    if (world.id() == 0) {
                        results[way] = (System.nanoTime() - start) / (2.0 * trips[way]);
                    }
                }
            }
        });
        for (int way = 0; way < WAYS; way++) {
            trips[way] = Contest.adapted(trips[way], 2 * results[way], TURN_NANOS);
        }
        contest.record(results);
    }

    private static void messages(Comm world, WriteBuffer out, ReadBuffer in, double[] array, int trips)
            throws Exception {
        int other = 1 - world.id();
        for (int i = 0; i < 2 * trips; i++) {
            if (i % 2 == world.id()) {
                out.clear();
                out.write(array, 0, array.length);
                world.send(out, other, TAG);
            } else {
                world.recv(in, other, TAG);
                in.read(array, 0, array.length);
            }
        }
    }

    private void handOver(int me, double[] array, int trips) throws Exception {
        double[] got = array;
        for (int i = 0; i < trips; i++) {
            if (me == 0) {
                there.put(got.clone());
                got = back.take();
            } else {
                got = there.take();
                back.put(got.clone());
            }
        }
    }
}
