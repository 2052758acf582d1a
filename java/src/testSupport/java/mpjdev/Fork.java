package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.fail;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A new JVM, for settings that a JVM reads once. Public: the tests of the core use it too. */
public final class Fork {
    /** Time limit of a JVM. Long tests have a larger one. */
    private static final long DEADLINE_SECONDS = Boolean.getBoolean("mpjdev.soak") ? 900 : 120;

    private final List<String> options = new ArrayList<>();
    private final List<String> before = new ArrayList<>();
    private final List<String> shell = new ArrayList<>();
    private boolean library = true;

    /** Makes a JVM with the arguments of this one. */
    public Fork() {}

    /** Adds options. */
    public Fork with(String... more) {
        options.addAll(List.of(more));
        return this;
    }

    /** Prepends a folder to the class path. */
    public Fork ahead(Path folder) {
        before.add(folder.toString());
        return this;
    }

    /** Removes the entries with the native library from the class path. */
    public Fork withoutLibrary() {
        library = false;
        return this;
    }

    /** Starts the JVM by a shell script, in which {@code "$@"} is the program. */
    public Fork by(String script) {
        shell.addAll(List.of("sh", "-c", script, "sh"));
        return this;
    }

    /** The merged output of a process and its exit status. */
    public static final class Result {
        /** The merged output. */
        public final String output;
        /** The exit status. */
        public final int status;

        Result(String output, int status) {
            this.output = output;
            this.status = status;
        }

        /** Fails unless the exit status is 0. Returns the output. */
        public String ok() {
            assertEquals(0, status, output);
            return output;
        }
    }

    /** Runs a main class and waits for its end. */
    public Result run(Class<?> main, String... args) throws Exception {
        List<String> command = new ArrayList<>(shell);
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-ea", "-Xcheck:jni", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData",
                "--enable-native-access=ALL-UNNAMED"));
        command.addAll(options);
        command.addAll(List.of("-cp", classPath(), main.getName()));
        command.addAll(List.of(args));
        Path output = Files.createTempFile("mpjdev-test", ".out");
        try {
            Process process = new ProcessBuilder(command).redirectErrorStream(true)
                    .redirectInput(ProcessBuilder.Redirect.from(Path.of("/dev/null").toFile()))
                    .redirectOutput(output.toFile()).start();
            try {
                if (!process.waitFor(DEADLINE_SECONDS, TimeUnit.SECONDS)) {
                    fail("after " + DEADLINE_SECONDS + " s still running: " + main + "\n" + Files.readString(output));
                }
            } finally {
                process.destroyForcibly().waitFor();
            }
            String text = Files.readString(output);
            if (text.contains("in native method")) {
                fail("-Xcheck:jni complains: " + text);
            }
            return new Result(text, process.exitValue());
        } finally {
            Files.deleteIfExists(output);
        }
    }

    private String classPath() {
        List<String> path = new ArrayList<>(before);
        for (String entry : System.getProperty("java.class.path").split(":")) {
            if (library || !Files.isDirectory(Path.of(entry, "META-INF", "native"))) {
                path.add(entry);
            }
        }
        return String.join(":", path);
    }
}
