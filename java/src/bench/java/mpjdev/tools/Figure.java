package mpjdev.tools;

import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * Result of one case and size.
 *
 * @param what case
 * @param octets octets of a message's elements
 * @param ranks number of ranks
 * @param name name of the contestant
 * @param median median of the nanoseconds of one unit
 * @param best least of the nanoseconds of one unit
 * @param extra second result of one unit
 * @param turns number of turns
 */
record Figure(Case what, int octets, int ranks, String name, double median, double best, double extra, int turns) {
    /** The results as JSON, in the form of {@code mpjdev-bench pingpong --json}. */
    static String json(List<Figure> figures) {
        return figures.stream().map(Figure::json).collect(Collectors.joining(",\n  ", "{\"rows\": [\n  ", "\n]}\n"));
    }

    private String json() {
        return String.format(Locale.ROOT, "{\"case\": \"%s\", \"octets\": %d, \"ranks\": %d, \"contestants\": "
                + "[{\"name\": \"%s\", \"median\": %.2f, \"best\": %.2f, \"extra\": %.6f, \"turns\": %d}]}",
                what.word, octets, ranks, name, median, best, extra, turns);
    }

    /** The results as text. */
    static String table(List<Figure> figures, boolean bandwidth) {
        StringBuilder out = new StringBuilder();
        for (Figure f : figures) {
            out.append(f.line(bandwidth)).append('\n');
        }
        return out.toString();
    }

    private String line(boolean bandwidth) {
        String line = String.format("%-26s %8s  %s", what.title, size(octets),
                bandwidth ? String.format(Locale.ROOT, "%.2f GB/s", octets / median) : time(median));
        switch (what) {
            case GARBAGE:
                return line + String.format(Locale.ROOT, ", %.1f octets of garbage", extra);
            case TIMED:
                return line + ", median " + time(extra);
            case BUSY:
                return line + String.format(Locale.ROOT, ", %.4f wake-ups", extra);
            default:
                return line;
        }
    }

    private static String time(double nanos) {
        String[] units = {"ns", "us", "ms", "s"};
        int unit = 0;
        double value = nanos;
        while (value >= 1000 && unit < units.length - 1) {
            value /= 1000;
            unit++;
        }
        return String.format(Locale.ROOT, value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    }

    private static String size(int octets) {
        return octets >= 1 << 20 ? (octets >> 20) + " MiB" : octets >= 1 << 10 ? (octets >> 10) + " KiB" : octets + " B";
    }
}
