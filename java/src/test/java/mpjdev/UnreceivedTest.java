package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Unreceived messages at finish: the rank prints a warning, and no rank fails. */
@Timeout(150)
class UnreceivedTest {
    /**
     * Rank 0 sends a short and a long message to the last rank, each rank between them a short one, and the
     * last rank one to itself. No rank receives them.
     */
    static final class Leaving {
        private Leaving() {}

        public static void main(String[] args) {
            Comm.init(args);
            Comm world = Comm.WORLD;
            int last = world.size() - 1;
            try (WriteBuffer out = new WriteBuffer(1 << 20)) {
                out.write(new long[1], 0, 1);
                world.isend(out, last, world.id() < last ? 7 : 1);
                if (world.id() == 0) {
                    out.write(new byte[1_000_000], 0, 1_000_000);
                    world.isend(out, last, 9);
                }
            }
            if (world.id() == last) {
                for (int from = 0; from < last; from++) {
                    world.probe(from, 7);
                }
                world.probe(0, 9);
                world.probe(last, 1);
            }
            world.barrier();
            Comm.finish();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp"})
    void shouldWarnOfMessagesThatNoReceiveTook(String transport) throws Exception {
        Mpjrun.Job job = new Mpjrun(2).with("--transport", transport).run(Leaving.class);
        assertEquals(0, job.status, job::toString);
        assertEquals("mpjdev: rank 1 finishes with 3 messages that no receive took: 2 from rank 0 (tag 7, 16 octets; tag 9, "
                + "1000024 octets), 1 from itself (tag 1, 16 octets)\n", job.err, job::toString);
        assertTrue(job.out.isEmpty(), job::toString);
    }

    /** The last rank has messages of its own site, of the other one and of itself. */
    @Test
    void shouldWarnOfMessagesOfBothSites() throws Exception {
        Mpjrun.Job job = new Mpjrun(2).with("--sites", "2").run(Leaving.class);
        assertEquals(0, job.status, job::toString);
        assertEquals("mpjdev: rank 3 finishes with 5 messages that no receive took: 2 from rank 0 (tag 7, 16 octets; tag 9, "
                + "1000024 octets), 1 from rank 1 (tag 7, 16 octets), 1 from rank 2 (tag 7, 16 octets), 1 from itself (tag 1, "
                + "16 octets)\n", job.err, job::toString);
        assertTrue(job.out.isEmpty(), job::toString);
    }
}
