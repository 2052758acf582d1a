package mpjdev.tools;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** Sleeps of this process's threads: voluntary context switches of proc(5). */
final class Sleeps {
    private static final String NAME = "voluntary_ctxt_switches:";

    private Sleeps() {}

    /** Sleeps of all threads but the calling one. */
    static long ofOthers() throws IOException {
        Path own = Path.of("/proc/thread-self").toRealPath().getFileName();
        long sleeps = 0;
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path task : tasks) {
                if (!task.getFileName().equals(own)) {
                    sleeps += of(task);
                }
            }
        }
        return sleeps;
    }

    private static long of(Path task) {
        try {
            for (String line : Files.readAllLines(task.resolve("status"))) {
                if (line.startsWith(NAME)) {
                    return Long.parseLong(line.substring(NAME.length()).trim());
                }
            }
        } catch (IOException e) {
            // The thread has ended meanwhile.
        }
        return 0;
    }
}
