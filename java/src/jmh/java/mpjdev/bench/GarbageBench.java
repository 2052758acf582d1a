package mpjdev.bench;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import mpjdev.Buffer;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.Request;
import mpjdev.RequestObjects;
import mpjdev.Status;
import mpjdev.Type;
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
import org.openjdk.jmh.infra.Blackhole;

/**
 * Garbage of an operation in octets of Java heap. The result is {@code gc.alloc.rate.norm} of the GC
 * profiler.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class GarbageBench {
    private static final int TAG = 1;
    /** Tag of the message that ends an exchange. */
    private static final int LAST = 2;
    /** Capacity for the largest message. */
    private static final int CAPACITY = 1 << 17;

    @Param({"8", "65536"})
    int octets;

    private double[] array;
    private int[] ints;
    private byte[] bytes;
    private ByteBuffer direct;
    private int[] indexes;
    /** An array of twice the length, and the indices of every other element. */
    private double[] wide;
    private int[] patch;
    private WriteBuffer writer;
    private ReadBuffer reader;
    private ReadBuffer intReader;
    private ReadBuffer byteReader;

    @Setup(Level.Trial)
    public void open() throws Exception {
        Comm.init(new String[0]);
        array = new double[octets / Double.BYTES];
        ints = new int[octets / Integer.BYTES];
        bytes = new byte[octets];
        direct = ByteBuffer.allocateDirect(octets).order(ByteOrder.nativeOrder());
        indexes = new int[array.length];
        wide = new double[2 * array.length];
        patch = new int[] {array.length, 2};
        int capacity = Buffer.SECTION_OVERHEAD + octets;
        writer = new WriteBuffer(capacity);
        writeInts();
        intReader = loaded();
        writeBytes();
        byteReader = loaded();
        write();
        reader = loaded();
    }

    private ReadBuffer loaded() throws Exception {
        ReadBuffer loaded = new ReadBuffer(writer.capacity());
        loaded.load(writer.toByteArray());
        return loaded;
    }

    @TearDown(Level.Trial)
    public void close() {
        Comm.finish();
    }

    // ---- Buffers

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
    public void writeInts() {
        writer.clear();
        writer.write(ints, 0, ints.length);
    }

    @Benchmark
    public void readInts() throws Exception {
        intReader.reset();
        intReader.read(ints, 0, ints.length);
    }

    @Benchmark
    public void writeBytes() {
        writer.clear();
        writer.write(bytes, 0, bytes.length);
    }

    @Benchmark
    public void readBytes() throws Exception {
        byteReader.reset();
        byteReader.read(bytes, 0, bytes.length);
    }

    @Benchmark
    public void writeDirect() {
        writer.clear();
        writer.write(direct, Type.DOUBLE, 0, array.length);
    }

    @Benchmark
    public void readDirect() throws Exception {
        reader.reset();
        reader.read(direct, Type.DOUBLE, 0, array.length);
    }

    @Benchmark
    public void gather() {
        writer.clear();
        writer.gather(array, array.length, 0, indexes);
    }

    @Benchmark
    public void scatter() throws Exception {
        reader.reset();
        reader.scatter(array, array.length, 0, indexes);
    }

    @Benchmark
    public void strGather() {
        writer.clear();
        writer.strGather(wide, 0, 1, 0, 1, patch);
    }

    @Benchmark
    public void strScatter() throws Exception {
        reader.reset();
        reader.strScatter(wide, 0, 1, 0, 1, patch);
    }

    // ---- Communication

    /** A message to this rank itself: a send, and a receive that makes a Status. */
    @Benchmark
    public Status sendRecv() {
        Comm.WORLD.send(writer, 0, TAG);
        return Comm.WORLD.recv(reader, 0, TAG);
    }

    /** The same with requests: a posted receive, a send that is done at once, two waits. */
    @Benchmark
    public void isendIrecv(Blackhole hole) {
        Request receive = Comm.WORLD.irecv(reader, 0, TAG);
        hole.consume(Comm.WORLD.isend(writer, 0, TAG).iwait());
        hole.consume(receive.iwait());
    }

    /** To another rank and back: two messages, two Statuses. */
    @Benchmark
    public void exchange(Pair pair, Blackhole hole) {
        pair.world.send(writer, 1, TAG);
        hole.consume(pair.world.recv(reader, 1, TAG));
    }

    /**
     * Two ranks that are threads. One returns each message; the thread of the benchmark works for the other.
     */
    @State(Scope.Thread)
    public static class Pair {
        private final CountDownLatch over = new CountDownLatch(1);
        private Comm world;
        private Thread job;

        /** Starts both ranks. */
        @Setup(Level.Trial)
        public void start() throws Exception {
            CountDownLatch started = new CountDownLatch(1);
            job = new Thread(() -> Comm.runThreads(2, each -> {
                if (each.id() == 1) {
                    sendBack(each);
                    return;
                }
                world = each;
                started.countDown();
                awaitOver();
            }), "job");
            job.start();
            started.await();
        }

        private static void sendBack(Comm world) {
            try (ReadBuffer both = new ReadBuffer(CAPACITY)) {
                while (world.recv(both, 0, Comm.ANY_TAG).tag != LAST) {
                    world.send(both, 0, TAG);
                }
            }
        }

        private void awaitOver() {
            try {
                over.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        /** Ends both ranks. */
        @TearDown(Level.Trial)
        public void end() throws Exception {
            try (WriteBuffer last = new WriteBuffer(0)) {
                world.send(last, 1, LAST);
            }
            over.countDown();
            job.join();
        }
    }

    // ---- Intended garbage of communication, without communication

    /** A probe that finds no message makes one Status. */
    @Benchmark
    public Status status() {
        return Comm.WORLD.iprobe(0, TAG);
    }

    /** The objects of a send and of a receive. */
    @Benchmark
    public void requests(Blackhole hole) {
        hole.consume(RequestObjects.ofSend());
        hole.consume(RequestObjects.ofReceive());
    }
}
