package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Messages in freed communicators: they keep neither memory nor credit of their sender. */
@Timeout(150)
class FreedCommTest {
    /**
     * Rank 0 sends 400 messages of 100 KB, each in another communicator, and the last rank receives none of
     * them.
     */
    static final class Leaving {
        private Leaving() {}

        public static void main(String[] args) {
            Comm.init(args);
            Comm world = Comm.WORLD;
            int last = world.size() - 1;
            byte[] octets = new byte[100_000];
            try (WriteBuffer out = new WriteBuffer(8 + 8 + octets.length); ReadBuffer in = new ReadBuffer(8)) {
                for (int round = 0; round < 400; round++) {
                    Comm made = world.dup();
                    if (world.id() == 0) {
                        out.clear();
                        out.write(octets, 0, octets.length);
                        Request sent = made.isend(out, last, 1);
                        out.clear();
                        world.send(out, last, round);
                        world.recv(in, last, round);
                        sent.iwait();
                    } else if (world.id() == last) {
                        world.recv(in, 0, round);
                        made.free();
                        out.clear();
                        world.send(out, 0, round);
                    }
                    made.free();
                }
            }
            System.out.println("rank " + world.id() + " is done");
            Comm.finish();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp"})
    void shouldReleaseMessagesOfFreedCommunicators(String transport) throws Exception {
        Mpjrun.Job job = new Mpjrun(2).with("--transport", transport).jvm("-Dmpjdev.memory=16m").run(Leaving.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("rank 0 is done", "rank 1 is done"), job.lines(), job::toString);
    }

    @ParameterizedTest
    @ValueSource(strings = {"auto", "udp"})
    void shouldReleaseMessagesOfAnotherSite(String transport) throws Exception {
        Mpjrun mpjrun = new Mpjrun(2).with("--sites", "2", "--transport", transport).jvm("-Dmpjdev.memory=16m");
        Mpjrun.Job job = mpjrun.run(Leaving.class);
        assertEquals(0, job.status, job::toString);
        List<String> lines = List.of("rank 0 is done", "rank 1 is done", "rank 2 is done", "rank 3 is done");
        assertEquals(lines, job.lines(), job::toString);
    }
}
