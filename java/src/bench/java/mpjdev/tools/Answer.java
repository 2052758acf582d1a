package mpjdev.tools;

import java.util.Locale;

/**
 * Result of a command.
 *
 * @param nanos nanoseconds of all repetitions
 * @param extra second result of all repetitions
 * @param counted counters of a rank over UDP; empty over other transports
 */
record Answer(double nanos, double extra, String counted) {
    /** The line of the command socket, with its end. */
    String line() {
        return String.format(Locale.ROOT, "%.0f %.3f %s%n", nanos, extra, counted);
    }
}
