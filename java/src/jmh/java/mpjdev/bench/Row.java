package mpjdev.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** One line of the report. */
final class Row {
    /** Name of the table that the row belongs to. */
    final String group;
    final String name;
    /** Texts by column: first mpjdev, then the baselines. */
    final Map<String, String> columns = new LinkedHashMap<>();
    /** Numbers by column, in nanoseconds or octets. */
    final Map<String, Double> values = new LinkedHashMap<>();
    /** Text of the figure; empty if the row has none. */
    String figure = "";
    double ratio = Double.NaN;
    Verdict verdict = Verdict.REACHED;

    /** Result of the comparison with a figure. */
    enum Verdict {
        REACHED,
        /** The row misses the figure by less than the accuracy of the measurement. */
        LEVEL,
        MISSED
    }

    Row(String group, String name) {
        this.group = group;
        this.name = name;
    }

    /** Makes a row of times and compares it with the rule for its benchmark. */
    static Row times(String group, String name, Measured measured, String metric, String... others) {
        Row row = new Row(group, name);
        row.time("ours", measured.median(metric));
        for (String other : others) {
            row.time(other, measured.median(other));
        }
        Figures.Rule rule = Figures.of(measured, metric);
        if (rule != null) {
            double ours = measured.median(metric);
            switch (rule.kind) {
                case TIME:
                    row.hold(rule.toString(), ours / measured.median(rule.against), rule.bound, true);
                    break;
                case BANDWIDTH:
                    row.hold(rule.toString(), measured.median(rule.against) / ours, rule.bound, false);
                    break;
                default:
                    row.hold(rule.toString(), ours / rule.bound, 1, true);
                    break;
            }
        }
        return row;
    }

    void time(String column, double nanos) {
        values.put(column, nanos);
        columns.put(column, Double.isNaN(nanos) ? "-" : Report.time(nanos));
    }

    void octets(String column, double octets) {
        values.put(column, octets);
        columns.put(column, Double.isNaN(octets) ? "-" : String.format(Locale.ROOT, "%.3f B", octets));
    }

    /** Compares a ratio with a figure. */
    void hold(String text, double ratio, double bound, boolean atMost) {
        if (!Double.isNaN(ratio)) {
            figure = text;
            this.ratio = ratio;
            double excess = atMost ? ratio / bound : bound / ratio;
            verdict = excess <= 1 ? Verdict.REACHED : excess <= 1 + Figures.SPREAD ? Verdict.LEVEL : Verdict.MISSED;
        }
    }

    boolean hasFigure() {
        return !figure.isEmpty();
    }

    /** Returns the row as JSON, in the form that {@code mpjdev-bench report} reads. */
    Map<String, Object> json() {
        List<Map<String, Object>> cells = new ArrayList<>();
        values.forEach((column, value) -> {
            Map<String, Object> cell = new LinkedHashMap<>();
            cell.put("name", column);
            cell.put("value", Double.isNaN(value) ? null : value);
            cell.put("text", columns.get(column));
            cells.add(cell);
        });
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("group", group);
        fields.put("row", name);
        fields.put("columns", cells);
        if (hasFigure()) {
            fields.put("figure", figure);
            fields.put("ratio", ratio);
            fields.put("verdict", verdict.name().toLowerCase(Locale.ROOT));
        }
        return fields;
    }
}
