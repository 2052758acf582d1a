package mpjdev.examples;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/**
 * A line with the progress of the work: rewritten in place on a terminal, otherwise a new line every half
 * second.
 *
 * <p>One thread at a time uses it.
 */
final class Progress {
    private static final long TERMINAL_NANOS = 100_000_000L;
    private static final long PLAIN_NANOS = 500_000_000L;

    private final PrintStream out;
    private final boolean terminal;
    private long shown = System.nanoTime();
    private int length;

    Progress(PrintStream out) {
        this(out, isTerminal());
    }

    Progress(PrintStream out, boolean terminal) {
        this.out = out;
        this.terminal = terminal;
    }

    /** Asks Linux, because the meaning of System.console() changes between Java versions. */
    private static boolean isTerminal() {
        try {
            String target = Files.readSymbolicLink(Path.of("/proc/self/fd/1")).toString();
            return target.startsWith("/dev/pts/") || target.startsWith("/dev/tty") || target.equals("/dev/console");
        } catch (IOException | UnsupportedOperationException e) {
            return false;
        }
    }

    void sweeps(String who, int sweeps, double change) {
        if (isDue()) {
            show(String.format(Locale.ROOT, "%s: sweep %d, largest change %.1e (aim %.0e)",
                    who, sweeps, change, Laplace.TOLERANCE));
        }
    }

    void hops(int done, int all) {
        if (isDue()) {
            show(String.format(Locale.ROOT, "object ring: hop %d of %d", done, all));
        }
    }

    private boolean isDue() {
        return System.nanoTime() - shown >= (terminal ? TERMINAL_NANOS : PLAIN_NANOS);
    }

    private void show(String text) {
        shown = System.nanoTime();
        if (!terminal) {
            out.println("  " + text);
            return;
        }
        String line = "  " + text;
        out.print("\r" + line + " ".repeat(Math.max(0, length - line.length())));
        out.flush();
        length = line.length();
    }

    /** Removes the line from a terminal, before the result of the work is printed. */
    void end() {
        if (length > 0) {
            out.print("\r" + " ".repeat(length) + "\r");
            out.flush();
            length = 0;
        }
    }
}
