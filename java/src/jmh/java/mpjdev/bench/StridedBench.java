package mpjdev.bench;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.IntBuffer;
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

/**
 * Strided patches: rows, every second element, and a column, compared with loops of a Java programmer. The
 * loops are equal for both types, because Java cannot express them once.
 */
public class StridedBench extends ContestBench {
    /** Elements of a row of the patch, and of a row of the array. */
    private static final int ROW = 16;
    private static final int PITCH = 32;
    /** Stride of a column in elements. */
    private static final int COLUMN = 512;

    @Param({"DOUBLE", "INT"})
    String type;

    /** Rows of 16, 64 KiB; every second element, 1 MiB; a column of a matrix of 512 x 512. */
    @Param({"rows", "second", "column"})
    String shape;

    @Param({"strGather", "strScatter"})
    String direction;

    private WriteBuffer writer;
    private ReadBuffer reader;
    private ByteBuffer direct;
    private int rank;
    private int[] patch;

    /** Nanoseconds for one section. */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Nanos extends Medians {
        /** {@code strGather} and {@code strScatter}. */
        public double ours() {
            return median(0);
        }

        /**
         * Java on a direct buffer in native order: bulk put or get for each row, or a loop with a constant
         * stride.
         */
        public double loop() {
            return median(1);
        }
    }

    @Setup(Level.Trial)
    public void open() throws Exception {
        int size = type.equals("DOUBLE") ? Double.BYTES : Integer.BYTES;
        int octets = shape.equals("rows") ? 1 << 16 : shape.equals("second") ? 1 << 20 : COLUMN * size;
        int n = octets / size;
        // Extents first, then strides.
        patch = shape.equals("rows") ? new int[] {n / ROW, ROW, PITCH, 1}
                : new int[] {n, shape.equals("second") ? 2 : COLUMN};
        rank = patch.length / 2;
        writer = new WriteBuffer(Buffer.SECTION_OVERHEAD + octets);
        reader = new ReadBuffer(Buffer.SECTION_OVERHEAD + octets);
        direct = ByteBuffer.allocateDirect(octets).order(ByteOrder.nativeOrder());
        Contest.Loop[] loops = type.equals("DOUBLE") ? doubles(n) : ints(n);
        loops[0].run(1);
        loops[1].run(1);
        reader.load(writer.toByteArray());
        contest = direction.equals("strGather") ? new Contest(loops[0], loops[1]) : new Contest(loops[2], loops[3]);
    }

    /** Loops: strGather of mpjdev, of Java, strScatter of mpjdev, of Java. */
    private Contest.Loop[] doubles(int n) {
        double[] array = new double[n * (rank == 2 ? PITCH / ROW : patch[1])];
        DoubleBuffer view = direct.asDoubleBuffer();
        return new Contest.Loop[] {
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    writer.clear();
                    writer.strGather(array, 0, rank, 0, rank, patch);
                }
            },
            javaGather(array, view, n),
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    reader.reset();
                    reader.strScatter(array, 0, rank, 0, rank, patch);
                }
            },
            javaScatter(array, view, n),
        };
    }

    private Contest.Loop javaGather(double[] array, DoubleBuffer view, int n) {
        switch (shape) {
            case "rows":
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        for (int row = 0; row < n / ROW; row++) {
                            view.put(row * ROW, array, row * PITCH, ROW);
                        }
                    }
                };
            case "second":
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        for (int k = 0; k < n; k++) {
                            view.put(k, array[2 * k]);
                        }
                    }
                };
            default:
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        for (int k = 0; k < n; k++) {
                            view.put(k, array[COLUMN * k]);
                        }
                    }
                };
        }
    }

    private Contest.Loop javaScatter(double[] array, DoubleBuffer view, int n) {
        switch (shape) {
            case "rows":
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        for (int row = 0; row < n / ROW; row++) {
                            view.get(row * ROW, array, row * PITCH, ROW);
                        }
                    }
                };
            case "second":
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        for (int k = 0; k < n; k++) {
                            array[2 * k] = view.get(k);
                        }
                    }
                };
            default:
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        for (int k = 0; k < n; k++) {
                            array[COLUMN * k] = view.get(k);
                        }
                    }
                };
        }
    }

    /** Loops: strGather of mpjdev, of Java, strScatter of mpjdev, of Java. */
    private Contest.Loop[] ints(int n) {
        int[] array = new int[n * (rank == 2 ? PITCH / ROW : patch[1])];
        IntBuffer view = direct.asIntBuffer();
        return new Contest.Loop[] {
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    writer.clear();
                    writer.strGather(array, 0, rank, 0, rank, patch);
                }
            },
            javaGather(array, view, n),
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    reader.reset();
                    reader.strScatter(array, 0, rank, 0, rank, patch);
                }
            },
            javaScatter(array, view, n),
        };
    }

    private Contest.Loop javaGather(int[] array, IntBuffer view, int n) {
        switch (shape) {
            case "rows":
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        for (int row = 0; row < n / ROW; row++) {
                            view.put(row * ROW, array, row * PITCH, ROW);
                        }
                    }
                };
            case "second":
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        for (int k = 0; k < n; k++) {
                            view.put(k, array[2 * k]);
                        }
                    }
                };
            default:
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        for (int k = 0; k < n; k++) {
                            view.put(k, array[COLUMN * k]);
                        }
                    }
                };
        }
    }

    private Contest.Loop javaScatter(int[] array, IntBuffer view, int n) {
        switch (shape) {
            case "rows":
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        for (int row = 0; row < n / ROW; row++) {
                            view.get(row * ROW, array, row * PITCH, ROW);
                        }
                    }
                };
            case "second":
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        for (int k = 0; k < n; k++) {
                            array[2 * k] = view.get(k);
                        }
                    }
                };
            default:
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        for (int k = 0; k < n; k++) {
                            array[COLUMN * k] = view.get(k);
                        }
                    }
                };
        }
    }

    @Benchmark
    public void strided(Nanos nanos) throws Exception {
        nanos.of(contest);
        contest.round();
    }
}
