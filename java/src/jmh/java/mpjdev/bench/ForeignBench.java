package mpjdev.bench;

import java.nio.ByteOrder;
import mpjdev.Buffer;
import mpjdev.ReadBuffer;
import mpjdev.Type;
import mpjdev.WriteBuffer;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** Sections in the other byte order, which the reader converts. */
public class ForeignBench extends ContestBench {
    private static final ByteOrder FOREIGN =
            ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN;

    @Param({"DOUBLE", "INT", "SHORT"})
    String type;

    @Param({"1024", "65536", "1048576"})
    int octets;

    /** Nanoseconds for one section. */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Nanos extends Medians {
        /** Reads a section in the other byte order. */
        public double ours() {
            return median(0);
        }

        /** Reads a section in this machine's byte order. */
        public double nativeOrder() {
            return median(1);
        }

        /** Writes a section in the other byte order. */
        public double foreignWrite() {
            return median(2);
        }

        /** Writes a section in this machine's byte order. */
        public double nativeWrite() {
            return median(3);
        }
    }

    @Setup(Level.Trial)
    public void open() throws Exception {
        WriteBuffer plain = writer(ByteOrder.nativeOrder());
        WriteBuffer foreign = writer(FOREIGN);
        Contest.Loop nativeWrite = write(plain);
        Contest.Loop foreignWrite = write(foreign);
        nativeWrite.run(1);
        foreignWrite.run(1);
        contest = new Contest(read(reader(foreign)), read(reader(plain)), foreignWrite, nativeWrite);
    }

    private WriteBuffer writer(ByteOrder order) {
        return new WriteBuffer(Buffer.SECTION_OVERHEAD + octets, order);
    }

    private ReadBuffer reader(WriteBuffer from) throws Exception {
        ReadBuffer reader = new ReadBuffer(Buffer.SECTION_OVERHEAD + octets);
        reader.load(from.toByteArray());
        return reader;
    }

    private Contest.Loop write(WriteBuffer writer) {
        switch (Type.valueOf(type)) {
            case DOUBLE: {
                double[] array = new double[octets / 8];
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        writer.clear();
                        writer.write(array, 0, array.length);
                    }
                };
            }
            case INT: {
                int[] array = new int[octets / 4];
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        writer.clear();
                        writer.write(array, 0, array.length);
                    }
                };
            }
            default: {
                short[] array = new short[octets / 2];
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        writer.clear();
                        writer.write(array, 0, array.length);
                    }
                };
            }
        }
    }

    private Contest.Loop read(ReadBuffer reader) {
        switch (Type.valueOf(type)) {
            case DOUBLE: {
                double[] array = new double[octets / 8];
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        reader.reset();
                        reader.read(array, 0, array.length);
                    }
                };
            }
            case INT: {
                int[] array = new int[octets / 4];
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        reader.reset();
                        reader.read(array, 0, array.length);
                    }
                };
            }
            default: {
                short[] array = new short[octets / 2];
                return times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        reader.reset();
                        reader.read(array, 0, array.length);
                    }
                };
            }
        }
    }

    @Benchmark
    public void foreign(Nanos nanos) throws Exception {
        nanos.of(contest);
        contest.round();
    }
}
