package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import mpjdev.Mpjrun;
import mpjdev.Mpjrun.Job;
import mpjdev.core.Native;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Defect X28 of MPJ Express: Free does nothing, so contexts and memory of communicators are never given back.
 * A C MPI has two thousand contexts, and a communicator takes two of them.
 */
class FreedContextsTest {
    private static final String ROUNDS = "2000";
    private static final String SOAK_ROUNDS = "100000";

    /** Clones and frees as often as the argument says. */
    static final class Rounds {
        /** Growth that the JVM may cause outside its heap: 450 octets for each of 100 000 communicators. */
        private static final long GROWTH_MAX_KB = 44 * 1024;

        private Rounds() {}

        public static void main(String[] args) throws IOException {
            MPI.Init(args);
            int rounds = Integer.parseInt(args[args.length - 1]);
            Intracomm world = MPI.COMM_WORLD;
            long used = 0;
            long resident = 0;
            for (int round = 0; round < rounds; round++) {
                Comm copy = (Comm) world.clone();
                if (round % 100 == 0) {
                    use(copy);
                }
                copy.Free();
                if (round == rounds / 10) {
                    world.Barrier();
                    used = Native.usedMemory();
                    resident = residentKb();
                }
            }
            world.Barrier();
            long last = Native.usedMemory();
            assertTrue(last <= used + (1 << 20), used + " octets of messages, then " + last);
            long grown = residentKb() - resident;
            assertTrue(grown <= GROWTH_MAX_KB, grown + " KiB more after " + rounds + " rounds");
            MPI.Finalize();
            System.out.println("done");
        }

        private static void use(Comm copy) {
            int[] got = new int[1];
            int other = 1 - copy.Rank();
            copy.Sendrecv(new int[] {copy.Rank()}, 0, 1, MPI.INT, other, 0, got, 0, 1, MPI.INT, other, 0);
            assertEquals(other, got[0]);
            // No receive takes this one.
            copy.Send(got, 0, 1, MPI.INT, other, 1);
        }

        private static long residentKb() throws IOException {
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                if (line.startsWith("VmRSS:")) {
                    return Long.parseLong(line.replaceAll("\\D", ""));
                }
            }
            throw new IOException("no VmRSS");
        }
    }

    /** Makes a job whose heap is in memory from the beginning, so that garbage does not count as growth. */
    private static Mpjrun job(World world) {
        return world.job(2).jvm("-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch");
    }

    @ParameterizedTest
    @EnumSource
    @Timeout(180)
    void shouldGiveBackContextsAndMemory(World world) throws Exception {
        Job job = job(world).run(Rounds.class, ROUNDS);
        assertEquals(List.of("done", "done"), job.lines(), job::toString);
    }

    @ParameterizedTest
    @EnumSource
    @Tag("soak")
    void shouldGiveThemBackAHundredThousandTimes(World world) throws Exception {
        Job job = job(world).within(1200).run(Rounds.class, SOAK_ROUNDS);
        assertEquals(List.of("done", "done"), job.lines(), job::toString);
    }
}
