package mpjdev.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.LinkedHashMap;
import java.util.Map;

/** Environment of a run, in the form of {@code mpjdev-bench figures --save}. */
final class Environment {
    private static final String UNKNOWN = "unknown";

    private Environment() {}

    /** Returns the environment of this process, which was started by {@code command}. */
    static Map<String, Object> now(String command) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("command", command);
        fields.put("date", LocalDate.now(ZoneOffset.UTC).toString());
        fields.put("commit", commit());
        fields.put("processor", processor());
        fields.put("processors", Runtime.getRuntime().availableProcessors());
        fields.put("kernel", System.getProperty("os.name") + " " + System.getProperty("os.version"));
        fields.put("jdk", System.getProperty("java.vm.name") + " " + System.getProperty("java.runtime.version"));
        return fields;
    }

    /** Returns the commit of the working directory; a plus sign says that files were changed. */
    private static String commit() {
        ProcessBuilder git = new ProcessBuilder("git", "describe", "--always", "--dirty=+", "--exclude=*")
                .redirectError(ProcessBuilder.Redirect.DISCARD);
        try {
            Process process = git.start();
            try (BufferedReader out = new BufferedReader(
                    new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
                String line = out.readLine();
                return line == null ? UNKNOWN : line;
            }
        } catch (IOException e) {
            return UNKNOWN;
        }
    }

    /** Returns the model of the processor. Some architectures do not report it. */
    private static String processor() {
        try {
            return Files.readAllLines(Path.of("/proc/cpuinfo")).stream()
                    .filter(line -> line.startsWith("model name"))
                    .map(line -> line.substring(line.indexOf(':') + 1).trim())
                    .findFirst().orElse(UNKNOWN);
        } catch (IOException e) {
            return UNKNOWN;
        }
    }
}
