package mpjdev.bench;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import mpjdev.Buffer;
import mpjdev.WriteBuffer;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * Delay of an allocating thread by a collection while another thread copies 16 MiB repeatedly. A collection
 * waits for threads that hold an array critically. The young generation is small, so that many collections
 * happen. One thread collects, because a second one would only wait for the processor of the copying thread.
 */
@Fork(jvmArgsPrepend = {"-Xmn32m", "-XX:ParallelGCThreads=1"})
public class CollectorBench extends ContestBench {
    private static final int OCTETS = 16 << 20;
    private static final int PIECE = 256 << 10;
    private static final long TURN_NANOS = 60_000_000;
    private static final int ALLOCATED = 4096;
    /** An allocation that takes this long may have met a collection. */
    private static final long HELD_UP_NANOS = 20_000;

    private static final int[] TYPICAL = {0, 1, 2, 3};
    private static final int[] WORST = {4, 5, 6, 7};
    private static final int COPY = 8;

    /** Prevents the removal of the allocations by the compiler. */
    static volatile Object sink;

    private final double[] array = new double[OCTETS / Double.BYTES];
    private final double[] copy = new double[array.length];
    private Contest.Loop[] loops;
    private Contest.Loop piece;

    /** Nanoseconds: the medians over turns of the typical and of the worst delay of a turn. */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Nanos extends Medians {
        /** Delay while {@code WriteBuffer.write} copies the array. */
        public double ours() {
            return median(TYPICAL[0]);
        }

        /** Delay while {@code memcpy} copies memory outside the heap: the time of the collection itself. */
        public double memcpy() {
            return median(TYPICAL[1]);
        }

        /** Delay while a bare critical pair copies the whole array at once. */
        public double critical() {
            return median(TYPICAL[2]);
        }

        /** Delay while {@code System.arraycopy} copies the array. */
        public double arraycopy() {
            return median(TYPICAL[3]);
        }

        /** Worst delay of a turn of {@link #ours}. */
        public double oursWorst() {
            return median(WORST[0]);
        }

        /** Worst delay of a turn of {@link #memcpy}. */
        public double memcpyWorst() {
            return median(WORST[1]);
        }

        /** Worst delay of a turn of {@link #critical}. */
        public double criticalWorst() {
            return median(WORST[2]);
        }

        /** Worst delay of a turn of {@link #arraycopy}. */
        public double arraycopyWorst() {
            return median(WORST[3]);
        }

        /** Time of a bare critical copy of 256 KiB. */
        public double piece() {
            return median(COPY);
        }
    }

    @Setup(Level.Trial)
    public void open() {
        contest = new Contest(COPY + 1);
        WriteBuffer writer = new WriteBuffer(Buffer.SECTION_OVERHEAD + OCTETS);
        ByteBuffer memory = ByteBuffer.allocateDirect(OCTETS);
        ByteBuffer source = ByteBuffer.allocateDirect(OCTETS);
        long to = Baseline.address(memory);
        long from = Baseline.address(source);
        double[] small = new double[PIECE / Double.BYTES];
        loops = new Contest.Loop[] {
            times -> {
                writer.clear();
                writer.write(array, 0, array.length);
            },
            times -> Baseline.copy(from, to, source.capacity()),
            times -> Baseline.criticalOut(array, array.length, to),
            times -> System.arraycopy(array, 0, copy, 0, array.length),
        };
        piece = times -> {
            for (int i = 0; i < times; i++) {
                Baseline.criticalOut(small, small.length, to);
            }
            memory.limit(memory.capacity());
        };
    }

    @Benchmark
    public void collector(Nanos nanos) throws Exception {
        nanos.of(contest);
        double[] results = new double[COPY + 1];
        for (int way = 0; way < loops.length; way++) {
            long[] delays = delays(loops[way]);
            results[TYPICAL[way]] = delays[delays.length / 2];
            results[WORST[way]] = delays[delays.length - 1];
        }
        int times = 32;
        long start = System.nanoTime();
        piece.run(times);
        results[COPY] = (System.nanoTime() - start) / (double) times;
        contest.record(results);
    }

    /** Returns the sorted delays of allocations that met a collection in one turn, or a single 0. */
    private static long[] delays(Contest.Loop copying) throws InterruptedException {
        CountDownLatch started = new CountDownLatch(1);
        Thread copier = new Thread(() -> {
            try {
                while (!Thread.currentThread().isInterrupted()) {
                    copying.run(1);
                    started.countDown();
                }
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, "copier");
        copier.start();
        started.await();
        long[] delays = new long[1 << 16];
        int n = 0;
        long seen = collections();
        long now = System.nanoTime();
        long end = now + TURN_NANOS;
        while (now < end && n < delays.length) {
            sink = new byte[ALLOCATED];
            long after = System.nanoTime();
            if (after - now >= HELD_UP_NANOS && collections() > seen) {
                delays[n++] = after - now;
                seen = collections();
                after = System.nanoTime();
            }
            now = after;
        }
        copier.interrupt();
        copier.join();
        Arrays.sort(delays, 0, n);
        return n == 0 ? new long[1] : Arrays.copyOf(delays, n);
    }

    private static long collections() {
        long sum = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            sum += collector.getCollectionCount();
        }
        return sum;
    }
}
