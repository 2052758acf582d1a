package mpjdev;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/** A job of processes under the launcher. Public: the tests of the examples use it too. */
public final class Mpjrun {
    private static final int TIMEOUT_SECONDS = 120;
    private static final int DEADLINE_SECONDS = 150;
    /** Complaints of a JVM about native code that breaks a rule or replaces a signal handler of the JVM. */
    private static final Pattern COMPLAINT = Pattern.compile("in native method|[Hh]andler (was |flags )?modified");

    private final int ranks;
    private final List<String> options = new ArrayList<>();
    /** No files of performance data: JVMs that start at once print a warning when one locks another's. */
    private final List<String> jvm = new ArrayList<>(List.of("-ea", "-Xcheck:jni", "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx256m", "--enable-native-access=ALL-UNNAMED"));
    private final List<String> foreign = new ArrayList<>();
    private final List<String> shell = new ArrayList<>();
    private final Map<String, String> variables = new HashMap<>();
    private String launcher = System.getProperty("mpjdev.command");
    private String classPath = System.getProperty("java.class.path");
    private boolean asClass;
    private int seconds;
    private int threads;

    /** Makes a job of {@code ranks} ranks. */
    public Mpjrun(int ranks) {
        this.ranks = ranks;
    }

    /** Adds options of the launcher. */
    public Mpjrun with(String... more) {
        options.addAll(List.of(more));
        return this;
    }

    /** Adds options of the JVM of each rank, after the common ones. */
    public Mpjrun jvm(String... more) {
        jvm.addAll(List.of(more));
        return this;
    }

    /** Replaces the launcher of the build. */
    public Mpjrun launcher(Path command) {
        launcher = command.toString();
        return this;
    }

    /** Replaces the launcher by that of an MPI. */
    public Mpjrun under(List<String> command) {
        foreign.addAll(command);
        return this;
    }

    /** Sets a variable in the environment of launcher and ranks. */
    public Mpjrun variable(String name, String value) {
        variables.put(name, value);
        return this;
    }

    /** Replaces the class path of this JVM. */
    public Mpjrun classPath(String path) {
        classPath = path;
        return this;
    }

    /** Makes the ranks of package mpi threads of the one process of this job. */
    public Mpjrun threads(int number) {
        threads = number;
        return this;
    }

    /** Leaves it to the launcher to start Java for the main class. */
    public Mpjrun asClass() {
        asClass = true;
        return variable("JAVA_HOME", System.getProperty("java.home"));
    }

    /** Sets a longer time limit. */
    public Mpjrun within(int more) {
        seconds = more;
        return this;
    }

    /** The output of a job and its exit status. */
    public static final class Job {
        /** The exit status. */
        public final int status;
        /** Standard output. */
        public final String out;
        /** Standard error. */
        public final String err;

        Job(int status, String out, String err) {
            this.status = status;
            this.out = out;
            this.err = err;
        }

        /** Returns the lines of standard output in alphabetical order. */
        public List<String> lines() {
            return out.lines().sorted().toList();
        }

        @Override
        public String toString() {
            return "status " + status + "\n" + out + err;
        }
    }

    /** Starts ranks by a shell script, in which {@code "$@"} is the program. */
    public Mpjrun by(String script) {
        shell.addAll(List.of("sh", "-c", script, "sh"));
        return this;
    }

    /** Returns the command that starts the job. */
    List<String> command(Class<?> main, String... args) {
        List<String> command = new ArrayList<>(foreign.isEmpty()
                ? List.of(launcher, "run", "-n", "" + ranks, "--timeout", "" + timeout()) : foreign);
        if (!foreign.isEmpty()) {
            command.addAll(List.of("-n", "" + ranks));
        }
        command.addAll(options);
        command.addAll(shell);
        if (!asClass) {
            command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        }
        command.addAll(jvm);
        command.addAll(List.of("-cp", classPath));
        if (threads > 0 && !asClass) {
            command.addAll(List.of("mpjdev.core.RankThreads", "" + threads));
        }
        command.add(main.getName());
        command.addAll(List.of(args));
        return command;
    }

    private int timeout() {
        return seconds > 0 ? seconds : TIMEOUT_SECONDS;
    }

    /** Runs a main class in each rank and waits for the end of the job. */
    public Job run(Class<?> main, String... args) throws Exception {
        List<String> command = command(main, args);
        Path out = Files.createTempFile("mpjdev-test", ".out");
        Path err = Files.createTempFile("mpjdev-test", ".err");
        try {
            ProcessBuilder builder = new ProcessBuilder(command).redirectInput(Path.of("/dev/null").toFile())
                    .redirectOutput(out.toFile()).redirectError(err.toFile());
            builder.environment().putAll(variables);
            Process process = builder.start();
            if (!process.waitFor(timeout() + DEADLINE_SECONDS - TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
                process.destroy();
                fail("the job does not end: " + Files.readString(out) + Files.readString(err));
            }
            Job job = new Job(process.exitValue(), Files.readString(out), Files.readString(err));
            assertTrue(!COMPLAINT.matcher(job.out + job.err).find(), job::toString);
            return job;
        } finally {
            Files.delete(out);
            Files.delete(err);
        }
    }
}
