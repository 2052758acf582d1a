package mpjdev.bench;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Results of one benchmark with its parameters: a median for each value that it reports. */
final class Measured {
    /** {@code SectionBench.section}. */
    final String benchmark;
    final Map<String, String> params;
    /** Medians over all iterations of all forks. Values that do not exist for these parameters are absent. */
    final Map<String, Double> medians;

    private Measured(String benchmark, Map<String, String> params, Map<String, Double> medians) {
        this.benchmark = benchmark;
        this.params = params;
        this.medians = medians;
    }

    /** Reads all results of a file of JMH in their order. */
    static List<Measured> read(Path file) throws IOException {
        List<Measured> all = new ArrayList<>();
        for (Object each : JSON.std.listFrom(file.toFile())) {
            Map<?, ?> entry = (Map<?, ?>) each;
            Map<String, String> params = new TreeMap<>();
            if (entry.get("params") != null) {
                ((Map<?, ?>) entry.get("params")).forEach((key, value) -> params.put((String) key, (String) value));
            }
            Map<String, Double> medians = new LinkedHashMap<>();
            ((Map<?, ?>) entry.get("secondaryMetrics")).forEach((name, metric) -> {
                double median = median((List<?>) ((Map<?, ?>) metric).get("rawData"));
                String key = ((String) name).replace("\u00b7", "");
                if (median > 0 || key.startsWith("gc.")) {
                    medians.put(key, median);
                }
            });
            all.add(new Measured(shortName((String) entry.get("benchmark")), params, medians));
        }
        return all;
    }

    /** Returns the last two parts of the full name of a benchmark. */
    static String shortName(String name) {
        return name.substring(name.lastIndexOf('.', name.lastIndexOf('.') - 1) + 1);
    }

    private static double median(List<?> forks) {
        double[] sorted = forks.stream().flatMap(fork -> ((List<?>) fork).stream())
                .mapToDouble(value -> ((Number) value).doubleValue()).sorted().toArray();
        return sorted[sorted.length / 2];
    }

    boolean has(String metric) {
        return medians.containsKey(metric);
    }

    double median(String metric) {
        return medians.getOrDefault(metric, Double.NaN);
    }

    int octets() {
        return Integer.parseInt(params.getOrDefault("octets", "0"));
    }

    /** Returns whether the parameters are the given ones, each as {@code name=value}. */
    boolean matches(String... wanted) {
        for (String each : wanted) {
            int equals = each.indexOf('=');
            if (!each.substring(equals + 1).equals(params.get(each.substring(0, equals)))) {
                return false;
            }
        }
        return true;
    }
}
