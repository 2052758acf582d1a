package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Jobs of JVMs in which any process is killed: nothing of them remains. The tests of the launcher have more
 * cases.
 */
@Tag("soak")
class KillsTest {
    private static final int JOBS = 24;
    private static final int RANKS = 3;
    private static final int ROUNDS = 40;

    /**
     * Exchanges objects and arrays of all sizes with all other ranks, and continues without ranks that fail.
     */
    static final class Traffic {
        private Traffic() {}

        public static void main(String[] args) throws Exception {
            try {
                Comm.init(args);
            } catch (PeerFailedException e) {
                System.out.println("failure: " + e.getMessage());
                return;
            }
            Comm world = Comm.WORLD;
            List<Integer> others = new ArrayList<>(List.of(0, 1, 2));
            others.remove((Integer) world.id());
            System.out.println("joined");
            for (int round = 0; round < ROUNDS; round++) {
                int size = new int[] {1, 100, 5000, 200_000}[round % 4];
                others.removeIf(other -> !exchange(world, other, size));
                System.out.println("round");
            }
            try {
                Comm.finish();
            } catch (UndeliveredException | PeerFailedException e) {
                System.out.println("failure: " + e.getMessage());
            }
        }

        private static boolean exchange(Comm world, int other, int size) {
            try (ObjectWriteBuffer out = new ObjectWriteBuffer(64); ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                out.write(new Object[] {new int[size]}, 0, 1);
                Request sent = world.isend(out, other, 1);
                world.recv(in, other, 1);
                Object[] got = new Object[1];
                in.read(got, 0, 1);
                assertEquals(size, ((int[]) got[0]).length);
                sent.iwait();
                int[] array = new int[size];
                Request direct = world.isend(array, 0, size, other, 2);
                assertEquals(size, world.recv(array, 0, size, other, 2).count());
                direct.iwait();
                return true;
            } catch (PeerFailedException e) {
                assertEquals(other, e.rank());
                System.out.println("failure: " + e.getMessage());
                return false;
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }
    }

    @Test
    void shouldLeaveNothingAfterAnyProcessIsKilled() throws Exception {
        Path folder = Files.createTempDirectory("mpjdev-kills");
        for (int seed = 0; seed < JOBS; seed++) {
            kill(new Random(seed), folder, "seed " + seed);
        }
        // The deletion fails unless the folder is empty.
        Files.delete(folder);
    }

    private static void kill(Random random, Path folder, String what) throws Exception {
        boolean byShell = random.nextBoolean();
        Mpjrun job = new Mpjrun(RANKS).jvm("-Djava.io.tmpdir=" + folder, "-XX:-UsePerfData");
        if (random.nextBoolean()) {
            job.with("--keep-going");
        }
        if (byShell) {
            job.by("\"$@\"; exit $?");
        }
        Path errors = Files.createTempFile("mpjdev-test", ".err");
        Process launcher = new ProcessBuilder(job.command(Traffic.class)).redirectInput(new File("/dev/null"))
                .redirectError(errors.toFile()).start();
        List<ProcessHandle> all = new ArrayList<>(List.of(launcher.toHandle()));
        int lines = random.nextInt(RANKS * (ROUNDS + 1));
        boolean isRank;
        List<String> text = new ArrayList<>();
        try (BufferedReader out = launcher.inputReader()) {
            // Some processes are killed at their start, before any output.
            for (int i = random.nextInt(4) == 0 ? lines : 0; i < lines; i++) {
                text.add(out.readLine());
            }
            Wait.until("the processes have started", () -> launcher.descendants().count() > 1 || !launcher.isAlive());
            launcher.descendants().forEach(all::add);
            ProcessHandle victim = all.get(random.nextInt(all.size()));
            isRank = all.indexOf(victim) > 1;
            victim.destroyForcibly();
            out.lines().forEach(text::add);
        }
        String said = what + ": " + Files.readString(errors) + text;
        assertTrue(launcher.waitFor(30, TimeUnit.SECONDS), said);
        Wait.until("all processes have ended, " + said, () -> all.stream().noneMatch(ProcessHandle::isAlive));
        if (isRank && launcher.exitValue() != 0) {
            assertEquals(137, launcher.exitValue(), said);
            assertTrue(said.contains("mpjrun: rank "), said);
        }
        Files.delete(errors);
        try (Stream<Path> shared = Files.list(Path.of("/dev/shm"))) {
            assertTrue(shared.noneMatch(file -> file.getFileName().toString().contains("mpjdev")), said);
        }
    }
}
