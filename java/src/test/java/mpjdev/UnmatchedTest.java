package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.stream.IntStream;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Many unmatched messages: a barrier completes, and receives take them from the last tag to the first. The
 * counts but the last are above what the credit holds, 190 000 messages of 16 octets. The long tests send a
 * million.
 */
@Timeout(170)
class UnmatchedTest {
    private static final int MILLION = 1_000_000;

    @ParameterizedTest
    @CsvSource({"isend, 270000", "issend, 270000"})
    void shouldReceiveManyUnmatchedMessagesOfThreads(String mode, int count) throws Exception {
        Comm.<Exception>runThreads(2, world -> Flood.run(world, count, mode));
    }

    @ParameterizedTest
    @CsvSource({"shm, isend, 270000", "shm, issend, 270000", "tcp, issend, 270000", "udp, isend, 210000", "udp, issend, 20000"})
    void shouldReceiveManyUnmatchedMessagesOfProcesses(String transport, String mode, int count) throws Exception {
        flood(new Mpjrun(2).with("--transport", transport), mode, count);
    }

    @ParameterizedTest
    @Tag("soak")
    @Timeout(1800)
    @CsvSource({"shm, isend", "shm, issend", "tcp, isend", "tcp, issend", "udp, isend", "udp, issend"})
    void shouldReceiveAMillionUnmatchedMessages(String transport, String mode) throws Exception {
        flood(new Mpjrun(2).with("--transport", transport).within(900), mode, MILLION);
    }

    /** The messages go between the sites, whose ranks share memory with a second rank each. */
    @ParameterizedTest
    @Tag("soak")
    @Timeout(1800)
    @CsvSource({"auto, isend", "auto, issend", "udp, isend", "udp, issend"})
    void shouldReceiveAMillionUnmatchedMessagesOfAnotherSite(String transport, String mode) throws Exception {
        flood(new Mpjrun(2).with("--sites", "2", "--transport", transport).within(900), 4, mode, MILLION);
    }

    @ParameterizedTest
    @Tag("soak")
    @Timeout(1800)
    @ValueSource(strings = {"isend", "issend"})
    void shouldReceiveAMillionUnmatchedMessagesOfAThread(String mode) throws Exception {
        Comm.<Exception>runThreads(2, world -> Flood.run(world, MILLION, mode));
    }

    static void flood(Mpjrun mpjrun, String mode, int count) throws Exception {
        flood(mpjrun, 2, mode, count);
    }

    private static void flood(Mpjrun mpjrun, int ranks, String mode, int count) throws Exception {
        Job job = mpjrun.run(Flood.class, mode, "" + count);
        assertEquals(0, job.status, job::toString);
        List<String> lines = IntStream.range(0, ranks).mapToObj(rank -> "rank " + rank + ": " + count).toList();
        assertEquals(lines, job.lines(), job::toString);
    }

    /**
     * Rank 0 starts sends of 8 octets with {@code count} tags, all ranks pass a barrier, and the last rank
     * receives.
     */
    static final class Flood {
        private Flood() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            int count = Integer.parseInt(args[1]);
            run(Comm.WORLD, count, args[0]);
            System.out.println("rank " + Comm.WORLD.id() + ": " + count);
            Comm.finish();
        }

        static void run(Comm world, int count, String mode) throws BufferReadException {
            if (world.id() == 0) {
                send(world, count, mode.equals("issend"));
            } else {
                world.barrier();
                if (world.id() == world.size() - 1) {
                    receive(world, count);
                }
            }
        }

        private static void send(Comm world, int count, boolean isSynchronous) {
            long[] value = new long[1];
            int last = world.size() - 1;
            Request[] sends = new Request[count];
            try (WriteBuffer out = new WriteBuffer(16)) {
                for (int tag = 0; tag < count; tag++) {
                    value[0] = tag;
                    out.clear();
                    out.write(value, 0, 1);
                    sends[tag] = isSynchronous ? world.issend(out, last, tag) : world.isend(out, last, tag);
                }
            }
            world.barrier();
            Request.iwaitall(sends);
        }

        private static void receive(Comm world, int count) throws BufferReadException {
            long[] value = new long[1];
            try (ReadBuffer in = new ReadBuffer(16)) {
                for (int tag = count - 1; tag >= 0; tag--) {
                    if (tag % 1000 == 0) {
                        assertTrue(world.iprobe(0, tag) != null, "message " + tag + " is not here");
                    }
                    world.recv(in, 0, tag);
                    in.read(value, 0, 1);
                    assertEquals(tag, value[0]);
                }
            }
        }
    }
}
