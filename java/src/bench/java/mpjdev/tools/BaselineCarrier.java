package mpjdev.tools;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import mpjdev.Buffer;
import mpjdev.BufferReadException;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.WriteBuffer;

/**
 * The baseline between the first two ranks, which have one thread each and trust each other. Each rank has a
 * segment, a deleted file that both ranks map.
 */
final class BaselineCarrier implements Carrier {
    /** Octets of a segment. Unused ones take no memory. */
    private static final long SEGMENT_LENGTH = 1 << 30;
    private static final int TAG = 3;
    private static final int PATH_MAX = 256;
    private static final Path MEMORY = Path.of("/dev/shm");
    private static final String NAME = "mpjdev-bench-baseline";

    private final Comm world;
    /** Segments, which stay mapped as long as they are reachable. */
    private final ByteBuffer own;
    private final ByteBuffer peer;
    private final long rank;

    BaselineCarrier(Comm world) throws Exception {
        this.world = world;
        if (world.size() < 2 || world.id() > 1) {
            own = null;
            peer = null;
            rank = 0;
            return;
        }
        Path file = Files.isDirectory(MEMORY) ? Files.createTempFile(MEMORY, NAME, null) : Files.createTempFile(NAME, null);
        try {
            own = map(file);
            peer = map(Path.of(exchange(file.toString())));
            // The file may be deleted when the other rank has mapped it.
            exchange("");
        } finally {
            Files.delete(file);
        }
        rank = BaselineNative.open(own, peer);
    }

    private static MappedByteBuffer map(Path path) throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
            return file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, SEGMENT_LENGTH);
        }
    }

    /** Sends a text to the other rank and returns the text of that rank. */
    private String exchange(String text) throws BufferReadException {
        byte[] octets = Arrays.copyOf(text.getBytes(StandardCharsets.UTF_8), PATH_MAX);
        int other = 1 - world.id();
        try (WriteBuffer out = new WriteBuffer(Buffer.SECTION_OVERHEAD + PATH_MAX);
                ReadBuffer in = new ReadBuffer(Buffer.SECTION_OVERHEAD + PATH_MAX)) {
            out.write(octets, 0, PATH_MAX);
            world.send(out, other, TAG);
            world.recv(in, other, TAG);
            in.read(octets, 0, PATH_MAX);
        }
        return new String(octets, StandardCharsets.UTF_8).trim();
    }

    @Override
    public Work work(Case what, int octets) {
        return switch (what) {
            case ARRAYS, DIRECT, BUFFERS -> new Trips(world, rank, octets, what != Case.BUFFERS);
            case RATE_ARRAYS, RATE_DIRECT, RATE_BUFFERS, RATE_REQUESTS ->
                new Window(world, rank, octets, what != Case.RATE_BUFFERS);
            default -> throw new IllegalArgumentException(what.word + " is not measured over the baseline");
        };
    }

    @Override
    public void close() {
        // The peer may still read this rank's segment.
        world.barrier();
        if (rank != 0) {
            BaselineNative.close(rank);
        }
    }

    /** With an array, and a buffer for each direction. */
    private abstract static class BaselineWork extends Work.WithArray {
        final long rank;
        final long sent;
        final long received;
        final boolean isFromArray;

        BaselineWork(Comm world, long rank, int octets, boolean isFromArray) {
            super(world, octets);
            this.rank = rank;
            this.isFromArray = isFromArray;
            int capacity = Buffer.SECTION_OVERHEAD + octets;
            sent = rank == 0 ? 0 : BaselineNative.newBuffer(rank, capacity);
            received = rank == 0 ? 0 : BaselineNative.newBuffer(rank, capacity);
            if (rank != 0) {
                BaselineNative.write(rank, sent, array, array.length);
            }
        }

        final void sendMessage() {
            if (isFromArray) {
                BaselineNative.write(rank, sent, array, array.length);
            }
            BaselineNative.send(rank, sent, TAG);
        }

        final void receiveMessage() {
            BaselineNative.recv(rank, received, TAG);
            if (isFromArray) {
                BaselineNative.read(rank, received, array, array.length);
            }
        }

        @Override
        public void close() {
            super.close();
            if (rank != 0) {
                BaselineNative.freeBuffer(rank, sent);
                BaselineNative.freeBuffer(rank, received);
            }
        }
    }

    /** Round trips. */
    private static final class Trips extends BaselineWork {
        Trips(Comm world, long rank, int octets, boolean isFromArray) {
            super(world, rank, octets, isFromArray);
        }

        @Override
        void run(long times) {
            for (long i = 0; i < times && other >= 0; i++) {
                if (me == 0) {
                    sendMessage();
                }
                receiveMessage();
                if (me == 1) {
                    sendMessage();
                }
            }
        }
    }

    /** Windows of messages from rank 0 to rank 1, each with a short answer. */
    private static final class Window extends BaselineWork {
        private final int window;
        private final double[] answer = new double[1];

        Window(Comm world, long rank, int octets, boolean isFromArray) {
            super(world, rank, octets, isFromArray);
            window = Windows.window(octets);
        }

        @Override
        void run(long times) {
            for (long i = 0; i < times && other >= 0; i++) {
                if (me == 0) {
                    for (int k = 0; k < window; k++) {
                        sendMessage();
                    }
                    BaselineNative.recv(rank, received, TAG);
                } else {
                    for (int k = 0; k < window; k++) {
                        receiveMessage();
                    }
                    BaselineNative.write(rank, sent, answer, answer.length);
                    BaselineNative.send(rank, sent, TAG);
                }
            }
        }
    }
}
