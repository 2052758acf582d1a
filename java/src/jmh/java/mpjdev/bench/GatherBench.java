package mpjdev.bench;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.IntBuffer;
import java.util.Random;
import mpjdev.Buffer;
import mpjdev.ReadBuffer;
import mpjdev.WriteBuffer;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** Gathers and scatters by an index array, a random permutation. The engine checks every index. */
public class GatherBench extends ContestBench {
    @Param({"DOUBLE", "INT"})
    String type;

    @Param({"8", "1024", "65536", "1048576"})
    int octets;

    @Param({"gather", "scatter"})
    String direction;

    private WriteBuffer writer;
    private ReadBuffer reader;
    private ByteBuffer direct;

    /** Nanoseconds for one section. */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Nanos extends Medians {
        /** {@code gather} and {@code scatter}. */
        public double ours() {
            return median(0);
        }

        /** A Java loop with absolute puts or gets on a direct buffer in native order. */
        public double loop() {
            return median(1);
        }
    }

    @Setup(Level.Trial)
    public void open() throws Exception {
        int capacity = Buffer.SECTION_OVERHEAD + octets;
        writer = new WriteBuffer(capacity);
        reader = new ReadBuffer(capacity);
        direct = ByteBuffer.allocateDirect(octets).order(ByteOrder.nativeOrder());
        Contest.Loop[] loops = type.equals("DOUBLE") ? doubles(octets / 8) : ints(octets / 4);
        loops[0].run(1);
        loops[1].run(1);
        reader.load(writer.toByteArray());
        loops[2].run(1);
        contest = direction.equals("gather") ? new Contest(loops[0], loops[1]) : new Contest(loops[2], loops[3]);
    }

    /** Loops: gather of mpjdev, of Java, scatter of mpjdev, of Java. */
    private Contest.Loop[] doubles(int n) {
        DoubleBuffer view = direct.asDoubleBuffer();
        double[] array = new double[n];
        int[] indexes = permutation(n);
        return new Contest.Loop[] {
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    writer.clear();
                    writer.gather(array, n, 0, indexes);
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    for (int k = 0; k < n; k++) {
                        view.put(k, array[indexes[k]]);
                    }
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    reader.reset();
                    reader.scatter(array, n, 0, indexes);
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    for (int k = 0; k < n; k++) {
                        array[indexes[k]] = view.get(k);
                    }
                }
            },
        };
    }

    private Contest.Loop[] ints(int n) {
        IntBuffer view = direct.asIntBuffer();
        int[] array = new int[n];
        int[] indexes = permutation(n);
        return new Contest.Loop[] {
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    writer.clear();
                    writer.gather(array, n, 0, indexes);
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    for (int k = 0; k < n; k++) {
                        view.put(k, array[indexes[k]]);
                    }
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    reader.reset();
                    reader.scatter(array, n, 0, indexes);
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    for (int k = 0; k < n; k++) {
                        array[indexes[k]] = view.get(k);
                    }
                }
            },
        };
    }

    private static int[] permutation(int n) {
        int[] numbers = new int[n];
        for (int i = 0; i < n; i++) {
            numbers[i] = i;
        }
        Random random = new Random(1);
        for (int i = n - 1; i > 0; i--) {
            int other = random.nextInt(i + 1);
            int number = numbers[i];
            numbers[i] = numbers[other];
            numbers[other] = number;
        }
        return numbers;
    }

    @Benchmark
    public void indexed(Nanos nanos) throws Exception {
        nanos.of(contest);
        contest.round();
    }
}
