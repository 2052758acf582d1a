package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** A killed rank: the errors of the other ranks and the report of the launcher. */
@Timeout(180)
class DyingRanksTest {
    /** Rank 0 kills rank 1 while the other ranks wait for it, each in another operation. */
    static final class Waiting {
        private static final int VICTIM = 1;
        /** More octets than the credit of unmatched messages. */
        private static final int LARGE = 17 << 20;
        private static final int WAITS = 1;
        private static final int TOLD = 2;

        private Waiting() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            Comm world = Comm.WORLD;
            Comm pair = world.split(world.id() <= 2 && world.id() > 0 ? 0 : 1, world.id());
            long[] time = {ProcessHandle.current().pid()};
            try (WriteBuffer out = new WriteBuffer(16); ReadBuffer in = new ReadBuffer(16)) {
                if (world.id() == 0) {
                    kill(world, in);
                } else {
                    Executable wait = waits(world, pair);
                    out.write(time, 0, 1);
                    world.send(out, 0, WAITS);
                    if (world.id() == VICTIM) {
                        world.recv(in, 0, 99);
                    }
                    PeerFailedException e = assertThrows(PeerFailedException.class, wait);
                    time[0] = System.currentTimeMillis();
                    String by = "rank 1 has failed: its process was killed by signal 9";
                    String text = world.id() == 2 ? "all other ranks of this communicator have finished or failed" : by;
                    assertTrue(e.getMessage().startsWith(text), world.id() + ": " + e);
                    assertEquals(world.id() == 2 ? -1 : VICTIM, e.rank());
                    out.clear();
                    out.write(time, 0, 1);
                    world.send(out, 0, TOLD);
                }
            }
            Comm.finish();
            System.out.println("done");
        }

        /** The operation that a rank waits in. Only rank 1 could complete it. */
        private static Executable waits(Comm world, Comm pair) {
            ReadBuffer in = new ReadBuffer(64);
            WriteBuffer out = new WriteBuffer(LARGE);
            if (world.id() == 4 || world.id() == 5) {
                out.write(new byte[LARGE - 16], 0, LARGE - 16);
            }
            switch (world.id()) {
                case 2:
                    return () -> pair.recv(in, Comm.ANY_SOURCE, 0);
                case 3:
                    return () -> world.recv(in, VICTIM, 0);
                case 4:
                    return () -> world.ssend(out, VICTIM, 0);
                case 5:
                    return () -> {
                        // Some messages may leave; the last one exceeds the credit.
                        for (int i = 0; i < 9; i++) {
                            world.send(out, VICTIM, 0);
                        }
                    };
                case 6:
                    return () -> world.probe(VICTIM, 0);
                default:
                    return world::barrier;
            }
        }

        private static void kill(Comm world, ReadBuffer in) throws Exception {
            long victim = receive(world, in, VICTIM, WAITS);
            for (int rank = 2; rank < world.size(); rank++) {
                receive(world, in, rank, WAITS);
            }
            // Rank 1 may be killed before or after this rank waits.
            assertTrue(ProcessHandle.of(victim).orElseThrow().destroyForcibly());
            long killed = System.currentTimeMillis();
            for (int rank = 2; rank < world.size(); rank++) {
                long took = receive(world, in, rank, TOLD) - killed;
                assertTrue(took < 20_000, "rank " + rank + " noticed it after " + took + " ms");
            }
        }

        private static long receive(Comm world, ReadBuffer in, int rank, int tag) throws Exception {
            long[] number = new long[1];
            world.recv(in, rank, tag);
            in.read(number, 0, 1);
            return number[0];
        }
    }

    @Test
    void shouldFailEveryOperationThatWaitsForAKilledRank() throws Exception {
        Job job = new Mpjrun(8).with("--keep-going").run(Waiting.class);
        assertEquals(137, job.status, job::toString);
        assertEquals(List.of("done", "done", "done", "done", "done", "done", "done"), job.lines(), job.err);
        assertTrue(job.err.matches("mpjrun: rank 1 \\(process \\d+\\) was killed by signal 9 \\(SIGKILL\\), "
                + "\\d+\\.\\d s after the start, without Comm.finish\n"), job.err);
    }

    /** Rank 0 sends messages that rank 1 does not receive. */
    static final class Undelivered {
        private Undelivered() {}

        public static void main(String[] args) {
            Comm.init(args);
            Comm world = Comm.WORLD;
            if (world.id() == 0) {
                try (WriteBuffer out = new WriteBuffer(64)) {
                    out.write(new int[] {1, 2, 3}, 0, 3);
                    world.issend(out, 1, 7);
                    world.issend(out, 1, 8);
                }
                world.barrier();
                UndeliveredException e = assertThrows(UndeliveredException.class, Comm::finish);
                assertEquals(1, e.rank());
                System.out.println(e.getMessage());
            } else {
                world.barrier();
                Comm.finish();
            }
        }
    }

    @Test
    void shouldNameUndeliveredMessagesAtFinish() throws Exception {
        Job job = new Mpjrun(2).run(Undelivered.class);
        assertEquals(0, job.status, job::toString);
        assertEquals("2 messages were not delivered, the first to rank 1 with tag 7, 40 octets\n", job.out);
    }
}
