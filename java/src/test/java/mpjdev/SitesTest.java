package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import java.util.List;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Ranks over TCP and UDP: of one launcher, and of a job of several sites. Other process tests use the same
 * programs.
 */
@Timeout(180)
class SitesTest {
    @Test
    void shouldRunAProgramAcrossSites() throws Exception {
        Job job = new Mpjrun(2).with("--sites", "2").run(ProcessesTest.Ring.class);
        assertEquals(0, job.status, job.err);
        assertEquals(List.of("0 of 4 in 2", "1 of 4 in 2", "2 of 4 in 2", "3 of 4 in 2"), job.lines(), job.err);
    }

    @Test
    void shouldRunAProgramOverTcpOrUdpOnly() throws Exception {
        for (String transport : List.of("tcp", "udp")) {
            Job job = new Mpjrun(3).with("--transport", transport).run(ProcessesTest.Ring.class);
            assertEquals(0, job.status, job.err);
            assertEquals(List.of("0 of 3 in 2", "1 of 3 in 1", "2 of 3 in 2"), job.lines(), job.err);
        }
    }

    @Test
    void shouldRunAProgramAcrossSitesOverDatagrams() throws Exception {
        Job job = new Mpjrun(2).with("--sites", "2", "--transport", "udp").run(ProcessesTest.Ring.class);
        assertEquals(0, job.status, job.err);
        assertEquals(List.of("0 of 4 in 2", "1 of 4 in 2", "2 of 4 in 2", "3 of 4 in 2"), job.lines(), job.err);
    }

    /** One rank ends by an uncaught exception, and the other one fails because of it. */
    @Test
    void shouldPrintStatisticsOfEachRankAfterAnyEnd() throws Exception {
        Job job = new Mpjrun(2).with("--transport", "udp", "-x", "MPJDEV_STATS=1").run(Throwing.class);
        assertEquals(1, job.status, job.err);
        for (int rank = 0; rank < 2; rank++) {
            String line = "mpjdev: rank " + rank + ": system calls ";
            assertEquals(1, job.err.lines().filter(l -> l.contains(line)).count(), job.err);
        }
        Job silent = new Mpjrun(2).with("--transport", "udp").run(ProcessesTest.Ring.class);
        assertEquals("", silent.err);
    }

    /** Rank 1 throws an uncaught exception. */
    static final class Throwing {
        private Throwing() {}

        public static void main(String[] args) {
            Comm.init(args);
            Comm.WORLD.barrier();
            if (Comm.WORLD.id() == 1) {
                throw new IllegalStateException("as it should");
            }
            Comm.WORLD.barrier();
            Comm.finish();
        }
    }

    @Test
    void shouldJoinAgainOverTcp() throws Exception {
        Job job = new Mpjrun(2).with("--transport", "tcp").run(Again.class);
        assertEquals(0, job.status, job.err);
        assertEquals(List.of("0 of 2, again", "1 of 2, again"), job.lines(), job.err);
    }

    /** Joins a second time. */
    static final class Again {
        private Again() {}

        public static void main(String[] args) throws Exception {
            for (int round = 0; round < 2; round++) {
                Comm.init(args);
                Comm.WORLD.barrier();
                if (round > 0) {
                    System.out.println(Comm.WORLD.id() + " of " + Comm.WORLD.size() + ", again");
                }
                Comm.finish();
            }
        }
    }

    /** Tries to join a second time. */
    static final class Once {
        private Once() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            Comm.WORLD.barrier();
            Comm.finish();
            IllegalStateException e = assertThrows(IllegalStateException.class, () -> Comm.init(args));
            System.out.println(e.getMessage().replaceFirst("rank \\d", "a rank"));
        }
    }

    @Test
    void shouldRejectASecondInitInAJobOfSites() throws Exception {
        Job job = new Mpjrun(2).with("--sites", "2").run(Once.class);
        assertEquals(0, job.status, job.err);
        String line = "the launcher refuses this process as a rank: a site joins its job once: "
                + "Comm.init cannot be called again after Comm.finish here";
        assertEquals(Collections.nCopies(4, line), job.lines(), job.err);
    }

    /** Rank 1 exits while a rank of the other site waits for it. */
    @Test
    void shouldFailWaitsForARankOfAnotherSiteThatExits() throws Exception {
        Job job = new Mpjrun(2).with("--sites", "2", "--keep-going").run(Needing.class);
        assertTrue(job.status == 7 || job.status == 3, job::toString);
        assertTrue(job.err.contains("mpjrun: rank 1 (process "), job::toString);
        assertEquals(3, job.lines().size(), job::toString);
        job.lines().forEach(line -> assertTrue(line.startsWith("1: rank 1 has failed: "), job::toString));
    }

    /** Waits for rank 1, which exits without finish. */
    static final class Needing {
        private Needing() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            Comm.WORLD.barrier();
            if (Comm.WORLD.id() == 1) {
                Runtime.getRuntime().halt(7);
            }
            try (ReadBuffer in = new ReadBuffer(8)) {
                PeerFailedException e = assertThrows(PeerFailedException.class, () -> Comm.WORLD.recv(in, 1, 0));
                System.out.println(e.rank() + ": " + e.getMessage());
            }
            System.exit(3);
        }
    }
}
