package mpjdev.bench;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** The report of a run of the benchmarks, as text and as JSON for {@code mpjdev-bench report}. */
public final class Report {
    private static final String SECTIONS = "One section: array to message, message to array";
    private static final String FOREIGN = "The other byte order, against this machine's own";
    private static final String INDEXED = "gather and scatter, random indices, against a Java loop on a direct buffer";
    private static final String STRIDED = "strGather and strScatter, against bulk puts for each row, or a Java loop";
    private static final String OBJECTS = "1000 objects, against plain object streams on a byte array";
    private static final String LOCAL = "Two ranks that are threads: one way, half of a round trip";
    private static final String CROWDED = "The same beside twice as many busy threads as processors";
    private static final String RATE = "Two ranks that are threads: one of 64 messages in a row";
    private static final String GARBAGE = "Java heap left behind by one operation";
    private static final String COLLECTOR = "Delay of a thread whose allocation meets a collection, while 16 MiB are copied";

    /** The contestants: the name of a column, and what it measures. */
    private static final String[][] CONTESTANTS = {
        {"ours", "mpjdev"},
        {"region", "a bare native call of Get<Type>ArrayRegion or Set<Type>ArrayRegion, without checks"},
        {"critical", "a bare native call with a critical pair around one memcpy"},
        {"bulk", "a bulk put or get on a direct buffer"},
        {"arraycopy", "System.arraycopy, from array to array"},
        {"nativeOrder", "the same section in the machine's own byte order"},
        {"loop", "Java on a direct buffer: a loop, or a bulk put or get for each row"},
        {"plain", "object streams on a byte array"},
        {"queue", "an ArrayBlockingQueue between the threads, with a clone of the array"},
        {"spinningQueue", "the same, with threads that spin"},
        {"fastest", "mpjdev with the fastest of these sizes"},
        {"memcpy", "a copy outside the Java heap, for which no collection waits"},
        {"256 KiB", "a critical copy of 256 KiB alone"},
    };

    private Report() {}

    /**
     * Prints the rows, and writes report.json beside the results.
     *
     * @param args the file with the results of JMH, and the command of the run
     * @throws IOException if a file cannot be read or written
     */
    public static void main(String[] args) throws IOException {
        Path results = Path.of(args[0]);
        if (!Files.exists(results)) {
            System.out.println("There are no results of JMH to report.");
            return;
        }
        List<Measured> measured = Measured.read(results);
        List<Row> rows = rows(measured);
        print(rows, System.out);
        Path json = results.resolveSibling("report.json");
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("environment", Environment.now(args[1]));
        document.put("rows", rows.stream().map(Row::json).collect(Collectors.toList()));
        document.put("contestants", contestants());
        JSON.std.with(JSON.Feature.PRETTY_PRINT_OUTPUT).write(document, json.toFile());
        System.out.println("As JSON: " + json);
    }

    private static List<Map<String, Object>> contestants() {
        List<Map<String, Object>> contestants = new ArrayList<>();
        for (String[] contestant : CONTESTANTS) {
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("name", contestant[0]);
            fields.put("meaning", contestant[1]);
            contestants.add(fields);
        }
        return contestants;
    }

    // ---- Rows

    private static List<Row> rows(List<Measured> measured) {
        List<Row> rows = new ArrayList<>();
        for (Measured m : measured) {
            rows.addAll(rows(m));
        }
        flat(measured, rows);
        garbage(measured, rows);
        return rows;
    }

    private static List<Row> rows(Measured m) {
        String type = m.params.getOrDefault("type", "").toLowerCase(Locale.ROOT);
        String size = size(m.octets());
        String direction = m.params.get("direction");
        switch (m.benchmark) {
            case "SectionBench.section":
                return List.of(Row.times(SECTIONS, direction + " " + size + " " + type, m, "ours",
                        "region", "critical", "bulk", "arraycopy"));
            case "ForeignBench.foreign":
                Row write = new Row(FOREIGN, "write " + size + " " + type);
                write.time("ours", m.median("foreignWrite"));
                write.time("nativeOrder", m.median("nativeWrite"));
                return List.of(Row.times(FOREIGN, "read " + size + " " + type, m, "ours", "nativeOrder"), write);
            case "GatherBench.indexed":
                return List.of(Row.times(INDEXED, direction + " " + size + " " + type, m, "ours", "loop"));
            case "StridedBench.strided":
                return List.of(Row.times(STRIDED, direction + " " + shape(m) + " " + type, m, "ours", "loop"));
            case "ObjectBench.objects":
                return List.of(Row.times(OBJECTS, direction + " " + m.params.get("kind"), m, "ours", "plain"));
            case "LocalBench.pingPong":
                return List.of(Row.times(LOCAL, "array to array " + size, m, "ours", "queue", "spinningQueue"),
                        Row.times(LOCAL, "buffer to buffer " + size, m, "buffer", "queue", "spinningQueue"));
            case "CrowdedBench.pingPong":
                return List.of(Row.times(CROWDED, "array to array " + size, m, "ours", "queue"));
            case "LocalRateBench.rate":
                return List.of(Row.times(RATE, "array to array " + size, m, "ours", "queue"));
            case "CollectorBench.collector":
                return List.of(collector(m, "typical", ""), collector(m, "worst of 60 ms", "Worst"));
            default:
                return List.of();
        }
    }

    private static String shape(Measured m) {
        switch (m.params.get("shape")) {
            case "rows":
                return "rows of 16, 64 KiB,";
            case "second":
                return "stride 2, 1 MiB,";
            default:
                return "column of 512";
        }
    }

    private static void flat(List<Measured> measured, List<Row> rows) {
        double least = Double.POSITIVE_INFINITY;
        double most = 0;
        for (Measured m : measured) {
            if (m.benchmark.equals("LocalBench.pingPong") && m.octets() >= Figures.FLAT_FROM) {
                least = Math.min(least, m.median("buffer"));
                most = Math.max(most, m.median("buffer"));
            }
        }
        if (most > 0) {
            Row row = new Row(LOCAL, "buffer to buffer, slowest size from " + size(Figures.FLAT_FROM) + " on");
            row.time("ours", most);
            row.time("fastest", least);
            row.hold("at most " + Figures.FLAT + " x fastest", most / least, Figures.FLAT, true);
            rows.add(row);
        }
    }

    private static void garbage(List<Measured> measured, List<Row> rows) {
        for (Measured m : measured) {
            boolean isAside = Figures.ASIDE.values().stream().anyMatch(aside -> aside.benchmark.equals(m.benchmark));
            if (!m.benchmark.startsWith("GarbageBench.") || !m.has("gc.alloc.rate.norm") || isAside) {
                continue;
            }
            Row row = new Row(GARBAGE, m.benchmark.substring(m.benchmark.indexOf('.') + 1) + " " + size(m.octets()));
            double octets = m.median("gc.alloc.rate.norm");
            row.octets("ours", octets);
            Figures.Aside aside = Figures.ASIDE.get(m.benchmark);
            if (aside != null) {
                double allowed = aside.times * octetsOf(measured, aside.benchmark, m.octets());
                row.octets(aside.name, allowed);
                octets -= allowed;
            }
            row.hold(aside == null ? "0 B" : "0 B, " + aside.name + " aside", octets, Figures.GARBAGE, true);
            rows.add(row);
        }
    }

    /** Returns the garbage of a benchmark; NaN if it was not run. */
    private static double octetsOf(List<Measured> measured, String benchmark, int octets) {
        for (Measured m : measured) {
            if (m.benchmark.equals(benchmark) && m.octets() == octets) {
                return m.median("gc.alloc.rate.norm");
            }
        }
        return Double.NaN;
    }

    private static Row collector(Measured m, String name, String suffix) {
        Row row = new Row(COLLECTOR, name);
        String[] others = {"memcpy", "critical", "arraycopy"};
        row.time("ours", m.median("ours" + suffix));
        for (String other : others) {
            row.time(other, m.median(other + suffix));
        }
        row.time("256 KiB", m.median("piece"));
        if (suffix.isEmpty()) {
            double allowed = m.median("memcpy") * (1 + Figures.COLLECTION_SPREAD) + m.median("piece");
            row.hold("at most memcpy + 256 KiB + " + Math.round(Figures.COLLECTION_SPREAD * 100) + " %",
                    m.median("ours") / m.median("memcpy"), allowed / m.median("memcpy"), true);
        }
        return row;
    }

    // ---- Text

    private static void print(List<Row> rows, PrintStream out) {
        Map<String, List<Row>> groups = new LinkedHashMap<>();
        rows.forEach(row -> groups.computeIfAbsent(row.group, g -> new ArrayList<>()).add(row));
        groups.forEach((group, members) -> print(group, members, out));
        List<Row> held = rows.stream().filter(Row::hasFigure).collect(Collectors.toList());
        List<Row> level = held.stream().filter(row -> row.verdict == Row.Verdict.LEVEL).collect(Collectors.toList());
        List<Row> missed = held.stream().filter(row -> row.verdict == Row.Verdict.MISSED).collect(Collectors.toList());
        out.printf(Locale.ROOT, "%nOf %d rows with a figure %d reach it, %d are level with it (within %.0f %%), %d miss it.%n",
                held.size(), held.size() - level.size() - missed.size(), level.size(), 100 * Figures.SPREAD, missed.size());
        for (Row row : missed) {
            out.printf(Locale.ROOT, "  missed: %s: %.2f, %s%n", row.name, row.ratio, row.figure);
        }
    }

    private static void print(String group, List<Row> rows, PrintStream out) {
        out.printf("%n%s%n", group);
        List<String> columns = rows.stream().flatMap(row -> row.columns.keySet().stream()).distinct()
                .collect(Collectors.toList());
        int width = rows.stream().mapToInt(row -> row.name.length()).max().orElse(0);
        StringBuilder head = new StringBuilder("  " + " ".repeat(width));
        columns.forEach(column -> head.append(String.format("  %12s", column)));
        out.println(head.append("   ratio  figure"));
        for (Row row : rows) {
            StringBuilder line = new StringBuilder(String.format("  %-" + width + "s", row.name));
            columns.forEach(column -> line.append(String.format("  %12s", row.columns.getOrDefault(column, ""))));
            if (row.hasFigure()) {
                line.append(String.format(Locale.ROOT, "  %6.2f  %s: %s", row.ratio, row.figure,
                        row.verdict == Row.Verdict.MISSED ? "MISSED" : row.verdict.name().toLowerCase(Locale.ROOT)));
            }
            out.println(line.toString().stripTrailing());
        }
    }

    /** Formats nanoseconds in a suitable unit with three digits. */
    static String time(double nanos) {
        String[] units = {"ns", "us", "ms", "s"};
        int unit = 0;
        double value = nanos;
        while (value >= 1000 && unit < units.length - 1) {
            value /= 1000;
            unit++;
        }
        return String.format(Locale.ROOT, value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    }

    /** Formats octets as 8 B, 64 KiB or 16 MiB. */
    static String size(int octets) {
        return octets >= 1 << 20 ? (octets >> 20) + " MiB" : octets >= 1 << 10 ? (octets >> 10) + " KiB" : octets + " B";
    }
}
