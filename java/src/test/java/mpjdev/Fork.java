package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.fail;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A JVM of its own, for what is decided once in a JVM's life. Public: the tests of the core use it too. */
public final class Fork {
    /** Long tests may take longer. */
    private static final long DEADLINE_SECONDS = Boolean.getBoolean("mpjdev.soak") ? 900 : 120;

    private final List<String> options = new ArrayList<>();
    private final List<String> before = new ArrayList<>();
    private boolean library = true;

    /** A JVM that is started as this one was. */
    public Fork() {}

    /** An option, or several. */
    public Fork with(String... more) {
        options.addAll(List.of(more));
        return this;
    }

    /** A folder that the class path begins with. */
    public Fork ahead(Path folder) {
        before.add(folder.toString());
        return this;
    }

    /** Leaves away what has the native library in it. */
    public Fork withoutLibrary() {
        library = false;
        return this;
    }

    /** What a process has printed, both streams in one, and how it ended. */
    public static final class Result {
        /** What it printed. */
        public final String output;
        /** Its exit status. */
        public final int status;

        Result(String output, int status) {
            this.output = output;
            this.status = status;
        }

        /** Fails unless the process ended well; gives what it printed. */
        public String ok() {
            assertEquals(0, status, output);
            return output;
        }
    }

    /** Runs a main class to its end. */
    public Result run(Class<?> main, String... args) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-ea", "-Xcheck:jni", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
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
