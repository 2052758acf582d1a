package mpjdev.tools;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import mpjdev.Buffer;
import mpjdev.BufferReadException;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.Request;
import mpjdev.WriteBuffer;
import org.agrona.concurrent.AgentInvoker;

/**
 * Aeron between the first two ranks, without additional threads: a rank that polls without success runs the
 * embedded media driver.
 *
 * <p>On two processors a driver's thread would take a processor from a rank, and from other contestants in
 * their turns. Over IPC rank 0 has the driver and runs it when a sender has filled its window; messages do
 * not pass through it. Over UDP each rank has a driver, as on two machines.
 */
final class AeronCarrier implements Carrier {
    /** Timeout of drivers and clients, which nothing runs between turns. */
    private static final long TIMEOUT_HOURS = 24;
    /** The longest datagram over IPv4 without its headers, in whole frames. */
    private static final int MTU = 65_504;
    /** Octets of a fragment over IPC. A receiver reads one while the next is written. */
    private static final int IPC_MTU = 8192;
    /** Octets of the sockets' buffers: the default limit of Linux. */
    private static final int SOCKET_BUFFER = 212_992;
    /** Octets in flight to a receiver, which fit its socket's buffer. */
    private static final int WINDOW = 128 << 10;
    private static final int TAG = 3;
    private static final int TEXT_MAX = 256;
    private static final Path MEMORY = Path.of("/dev/shm");
    private static final String NAME = "mpjdev-bench-aeron";

    private final Comm world;
    private final boolean isUdp;
    private final int me;
    private final Path folder;
    private final MediaDriver driver;
    private final AgentInvoker driverInvoker;
    private final Aeron aeron;
    private final WriteBuffer out = new WriteBuffer(Buffer.SECTION_OVERHEAD + TEXT_MAX);
    private final ReadBuffer in = new ReadBuffer(Buffer.SECTION_OVERHEAD + TEXT_MAX);
    /** Number of works, which have streams of their own. */
    private int works;

    AeronCarrier(Comm world, boolean isUdp) throws Exception {
        this.world = world;
        this.isUdp = isUdp;
        me = world.id();
        if (me > 1) {
            folder = null;
            driver = null;
            driverInvoker = null;
            aeron = null;
            return;
        }
        boolean hasDriver = isUdp || me == 0;
        folder = hasDriver ? memoryFolder() : null;
        driver = hasDriver ? MediaDriver.launch(driverContext(folder.resolve("driver").toString())) : null;
        driverInvoker = hasDriver ? driver.sharedAgentInvoker() : null;
        String name = hasDriver ? driver.aeronDirectoryName() : null;
        String theirs = isUdp || world.size() < 2 ? null : exchange(hasDriver ? name : "");
        Aeron.Context context = new Aeron.Context()
                .aeronDirectoryName(hasDriver ? name : theirs)
                .driverTimeoutMs(TimeUnit.HOURS.toMillis(TIMEOUT_HOURS))
                .useConductorAgentInvoker(true)
                .driverAgentInvoker(driverInvoker);
        aeron = Aeron.connect(context);
    }

    private static MediaDriver.Context driverContext(String name) {
        long timeout = TimeUnit.HOURS.toNanos(TIMEOUT_HOURS);
        return new MediaDriver.Context()
                .aeronDirectoryName(name)
                .threadingMode(ThreadingMode.INVOKER)
                .driverTimeoutMs(TimeUnit.HOURS.toMillis(TIMEOUT_HOURS))
                .clientLivenessTimeoutNs(timeout)
                .publicationUnblockTimeoutNs(2 * timeout)
                .publicationConnectionTimeoutNs(timeout)
                .imageLivenessTimeoutNs(timeout)
                .mtuLength(MTU)
                .ipcMtuLength(IPC_MTU)
                .initialWindowLength(WINDOW)
                .socketRcvbufLength(SOCKET_BUFFER)
                .socketSndbufLength(SOCKET_BUFFER)
                .errorHandler(Throwable::printStackTrace)
                .dirDeleteOnShutdown(true);
    }

    /** Makes a folder in shared memory, if the system has it. */
    private static Path memoryFolder() throws IOException {
        Path folder = Files.isDirectory(MEMORY) ? Files.createTempDirectory(MEMORY, NAME) : Files.createTempDirectory(NAME);
        // The hook removes the folder unless the rank is killed by SIGKILL.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> delete(folder.toFile())));
        return folder;
    }

    private static void delete(File file) {
        File[] files = file.listFiles();
        if (files != null) {
            Arrays.stream(files).forEach(AeronCarrier::delete);
        }
        file.delete();
    }

    @Override
    public Work work(Case what, int octets) throws Exception {
        if (me > 1) {
            return new Idle(world);
        }
        int first = 2 * works++;
        int termLength = AeronWork.termLength(octets);
        String channel = "aeron:ipc?term-length=" + termLength;
        Subscription subscription;
        if (isUdp) {
            subscription = aeron.addSubscription("aeron:udp?endpoint=127.0.0.1:0", first + 1 - me);
            String endpoint = subscription.tryResolveChannelEndpointPort();
            while (endpoint == null) {
                idle();
                endpoint = subscription.tryResolveChannelEndpointPort();
            }
            channel = exchange(endpoint) + "|term-length=" + termLength;
        } else {
            subscription = aeron.addSubscription(channel, first + 1 - me);
        }
        ExclusivePublication publication = aeron.addExclusivePublication(channel, first + me);
        while (!publication.isConnected() || subscription.imageCount() == 0) {
            idle();
        }
        // The peer may need this rank's driver until it is connected.
        exchange("");
        return AeronWork.of(world, this, new AeronWork.Task(what, octets, publication, subscription));
    }

    /** Runs driver and conductor between polls. */
    void idle() {
        if (driverInvoker != null) {
            driverInvoker.invoke();
        }
        aeron.conductorAgentInvoker().invoke();
    }

    /** Runs the driver over UDP, where messages pass through it. */
    void poll() {
        if (isUdp) {
            driverInvoker.invoke();
        } else {
            Thread.onSpinWait();
        }
    }

    /** Runs the driver until the peer has received all messages. */
    void settle() throws BufferReadException {
        if (isUdp) {
            exchange("");
        }
    }

    /** Sends a text to the other rank and returns the text of that rank. */
    private String exchange(String text) throws BufferReadException {
        byte[] octets = Arrays.copyOf(text.getBytes(StandardCharsets.UTF_8), TEXT_MAX);
        out.clear();
        out.write(octets, 0, TEXT_MAX);
        Request received = world.irecv(in, 1 - me, TAG);
        Request sent = world.isend(out, 1 - me, TAG);
        while (received.itest() == null) {
            if (aeron != null) {
                idle();
            }
        }
        sent.iwait();
        in.read(octets, 0, TEXT_MAX);
        return new String(octets, StandardCharsets.UTF_8).trim();
    }

    @Override
    public void close() {
        out.close();
        in.close();
        if (aeron != null) {
            aeron.close();
        }
        // A client must not outlive its driver.
        world.barrier();
        if (driver != null) {
            driver.close();
        }
        if (folder != null) {
            delete(folder.toFile());
        }
    }

    /** Work of an idle rank. */
    private static final class Idle extends Work {
        Idle(Comm world) {
            super(world);
        }

        @Override
        void run(long times) {}
    }
}
