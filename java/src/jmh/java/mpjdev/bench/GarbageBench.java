package mpjdev.bench;

import java.util.concurrent.TimeUnit;
import mpjdev.Buffer;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.Status;
import mpjdev.WriteBuffer;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** Octets of Java heap that an operation leaves behind: the result is {@code gc.alloc.rate.norm} of the collector profile. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class GarbageBench {
    private static final int TAG = 1;

    @Param({"8", "65536"})
    int octets;

    private double[] array;
    private int[] indexes;
    private WriteBuffer writer;
    private ReadBuffer reader;

    @Setup(Level.Trial)
    public void open() throws Exception {
        Comm.init(new String[0]);
        array = new double[octets / Double.BYTES];
        indexes = new int[array.length];
        int capacity = Buffer.SECTION_OVERHEAD + octets;
        writer = new WriteBuffer(capacity);
        reader = new ReadBuffer(capacity);
        write();
        reader.load(writer.toByteArray());
    }

    @TearDown(Level.Trial)
    public void close() {
        Comm.finish();
    }

    @Benchmark
    public void write() {
        writer.clear();
        writer.write(array, 0, array.length);
    }

    @Benchmark
    public void read() throws Exception {
        reader.reset();
        reader.read(array, 0, array.length);
    }

    @Benchmark
    public void gather() {
        writer.clear();
        writer.gather(array, array.length, 0, indexes);
    }

    /** A message to this rank itself: a send and a receive, which makes a Status. */
    @Benchmark
    public Status sendRecv() {
        Comm.WORLD.send(writer, 0, TAG);
        return Comm.WORLD.recv(reader, 0, TAG);
    }

    /** A probe that finds nothing makes a Status and nothing else: the size of one. */
    @Benchmark
    public Status status() {
        return Comm.WORLD.iprobe(0, TAG);
    }
}
