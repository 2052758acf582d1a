package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Unreceived messages at finish: the rank prints a warning, and no rank fails. */
@Timeout(150)
class UnreceivedTest {
    /** Rank 0 sends a short and a long message to rank 1, and rank 1 one to itself. No rank receives them. */
    static final class Leaving {
        private Leaving() {}

        public static void main(String[] args) {
            Comm.init(args);
            Comm world = Comm.WORLD;
            try (WriteBuffer out = new WriteBuffer(1 << 20)) {
                out.write(new long[1], 0, 1);
                if (world.id() == 0) {
                    world.isend(out, 1, 7);
                    out.write(new byte[1_000_000], 0, 1_000_000);
                    world.isend(out, 1, 9);
                } else {
                    world.isend(out, 1, 1);
                    world.probe(0, 7);
                    world.probe(0, 9);
                    world.probe(1, 1);
                }
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
}
