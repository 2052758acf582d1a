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

/** Message rate from one thread to another, with a short answer after every 64 messages. */
public class LocalRateBench extends ContestBench {
    private static final int WINDOW = 64;
    private static final long TURN_NANOS = 2_000_000;
    private static final int TAG = 1;

    @Param({"8", "1024", "8192"})
    int octets;

    private final int[] windows = {1, 1};
    private final ArrayBlockingQueue<double[]> there = new ArrayBlockingQueue<>(WINDOW);
    private final ArrayBlockingQueue<double[]> back = new ArrayBlockingQueue<>(1);

    /** Nanoseconds for one message. */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Nanos extends Medians {
        /** From array to array. */
        public double ours() {
            return median(0);
        }

        /** Clones through an {@code ArrayBlockingQueue}. */
        public double queue() {
            return median(1);
        }
    }

    @Setup(Level.Trial)
    public void open() {
        contest = new Contest(windows.length);
    }

    @Benchmark
    public void rate(Nanos nanos) throws Exception {
        nanos.of(contest);
        double[] results = new double[windows.length];
        Comm.<Exception>runThreads(2, world -> {
            int capacity = Buffer.SECTION_OVERHEAD + octets;
            double[] array = new double[octets / Double.BYTES];
            try (WriteBuffer out = new WriteBuffer(capacity); ReadBuffer in = new ReadBuffer(capacity)) {
                messages(world, out, in, array, 1);
                time(world.id(), 0, results, () -> messages(world, out, in, array, windows[0]));
            }
            handOver(world.id(), array, 1);
            time(world.id(), 1, results, () -> handOver(world.id(), array, windows[1]));
        });
        for (int way = 0; way < windows.length; way++) {
            windows[way] = Contest.adapted(windows[way], WINDOW * results[way], TURN_NANOS);
        }
        contest.record(results);
    }

    /** Runs both ranks. */
    @FunctionalInterface
    private interface Work {
        void run() throws Exception;
    }

    private void time(int me, int way, double[] results, Work work) throws Exception {
        long start = System.nanoTime();
        work.run();
        if (me == 0) {
            results[way] = (System.nanoTime() - start) / ((double) WINDOW * windows[way]);
        }
    }

    private static void messages(Comm world, WriteBuffer out, ReadBuffer in, double[] array, int windows)
            throws Exception {
        for (int i = 0; i < windows; i++) {
            if (world.id() == 0) {
                for (int k = 0; k < WINDOW; k++) {
                    out.clear();
                    out.write(array, 0, array.length);
                    world.send(out, 1, TAG);
                }
                world.recv(in, 1, TAG);
            } else {
                for (int k = 0; k < WINDOW; k++) {
                    world.recv(in, 0, TAG);
                    in.read(array, 0, array.length);
                }
                out.clear();
                world.send(out, 0, TAG);
            }
        }
    }

    private void handOver(int me, double[] array, int windows) throws Exception {
        for (int i = 0; i < windows; i++) {
            if (me == 0) {
                for (int k = 0; k < WINDOW; k++) {
                    there.put(array.clone());
                }
                back.take();
            } else {
                for (int k = 0; k < WINDOW; k++) {
                    there.take();
                }
                back.put(array);
            }
        }
    }
}
