package mpjdev.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiFunction;

/**
 * Three drawings side by side: bandwidth of writing and reading doubles, and latency between two threads,
 * over the size.
 */
final class Chart {
    private static final int WIDTH = 420;
    private static final int HEIGHT = 400;
    private static final int LEFT = 64;
    private static final int TOP = 96;
    private static final int RIGHT = 16;
    private static final int BOTTOM = 48;
    private static final String[] COLOURS = {"#0b5fa5", "#d1701c", "#3a8f3a", "#a03070", "#555555"};

    private final StringBuilder svg = new StringBuilder();
    private final int shift;
    private final double[] x = {Double.MAX_VALUE, 0};
    private final double[] y = {Double.MAX_VALUE, 0};

    private Chart(int place) {
        shift = place * WIDTH;
    }

    static String of(List<Measured> measured) {
        BiFunction<Measured, String, Double> gigabytes = (m, way) -> m.octets() / m.median(way);
        BiFunction<Measured, String, Double> micros = (m, way) -> m.median(way) / 1000;
        StringBuilder out = new StringBuilder();
        out.append(format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                + "font-family=\"sans-serif\" font-size=\"12\">%n", 3 * WIDTH, HEIGHT));
        out.append("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
        String[] ways = {"ours", "region", "critical", "bulk", "arraycopy"};
        String[] directions = {"write", "read"};
        for (int place = 0; place < directions.length; place++) {
            out.append(new Chart(place).draw(measured, "SectionBench.section", directions[place] + " of doubles, GB/s",
                    ways, ways, gigabytes, "type=DOUBLE", "direction=" + directions[place]));
        }
        out.append(new Chart(2).draw(measured, "LocalBench.pingPong", "one way between two threads, \u00b5s",
                new String[] {"ours", "buffer", "queue", "spinningQueue"},
                new String[] {"array to array", "buffer to buffer", "queue of clones", "the same, spinning"}, micros));
        return out.append("</svg>\n").toString();
    }

    private String draw(List<Measured> measured, String benchmark, String title, String[] ways, String[] names,
            BiFunction<Measured, String, Double> value, String... params) {
        List<Map<Integer, Double>> lines = new ArrayList<>();
        for (String way : ways) {
            Map<Integer, Double> line = new TreeMap<>();
            for (Measured m : measured) {
                if (m.benchmark.equals(benchmark) && m.matches(params) && m.has(way)) {
                    line.put(m.octets(), value.apply(m, way));
                    extend(x, m.octets());
                    extend(y, value.apply(m, way));
                }
            }
            lines.add(line);
        }
        if (x[1] == 0) {
            return "";
        }
        // Whole decades, at least one.
        y[0] = Math.pow(10, Math.floor(Math.log10(y[0])));
        y[1] = Math.pow(10, Math.floor(Math.log10(y[1])) + 1);
        x[1] = Math.max(x[1], 2 * x[0]);
        svg.append(format("<text x=\"%d\" y=\"20\" font-size=\"14\" font-weight=\"bold\">%s</text>%n", shift + LEFT, title));
        axes();
        for (int i = 0; i < ways.length; i++) {
            line(lines.get(i), names[i], i);
        }
        return svg.toString();
    }

    private static void extend(double[] range, double value) {
        range[0] = Math.min(range[0], value);
        range[1] = Math.max(range[1], value);
    }

    private void axes() {
        for (double decade = y[0]; decade <= y[1] * 1.001; decade *= 10) {
            svg.append(format("<path d=\"M%d %.1fH%d\" stroke=\"#dddddd\"/>", shift + LEFT, up(decade),
                    shift + WIDTH - RIGHT));
            svg.append(format("<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>%n", shift + LEFT - 6,
                    up(decade) + 4, decade < 1 ? format("%.3g", decade) : format("%.0f", decade)));
        }
        for (long octets = 8; octets <= x[1]; octets *= 16) {
            if (octets >= x[0]) {
                svg.append(format("<path d=\"M%.1f %dV%d\" stroke=\"#eeeeee\"/>", along(octets), TOP, HEIGHT - BOTTOM));
                svg.append(format("<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" font-size=\"10\">%s</text>%n",
                        along(octets), HEIGHT - BOTTOM + 16, Report.size((int) octets)));
            }
        }
    }

    private void line(Map<Integer, Double> points, String name, int number) {
        if (points.isEmpty()) {
            return;
        }
        String colour = COLOURS[number];
        StringBuilder path = new StringBuilder();
        points.forEach((octets, value) ->
                path.append(format("%s%.1f %.1f", path.length() == 0 ? "M" : "L", along(octets), up(value))));
        svg.append(format("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"%d\"/>%n", path, colour,
                number == 0 ? 3 : 2));
        points.forEach((octets, value) ->
                svg.append(format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>", along(octets), up(value), colour)));
        int column = shift + LEFT + number % 2 * (WIDTH - LEFT) / 2;
        int row = 40 + number / 2 * 18;
        svg.append(format("<path d=\"M%d %dh18\" stroke=\"%s\" stroke-width=\"3\"/>", column, row - 4, colour));
        svg.append(format("<text x=\"%d\" y=\"%d\">%s</text>%n", column + 24, row, name));
    }

    private double along(double octets) {
        double part = Math.log(octets / x[0]) / Math.log(x[1] / x[0]);
        return shift + LEFT + part * (WIDTH - LEFT - RIGHT);
    }

    private double up(double value) {
        double part = Math.log(value / y[0]) / Math.log(y[1] / y[0]);
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
    }

    private static String format(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }
}
