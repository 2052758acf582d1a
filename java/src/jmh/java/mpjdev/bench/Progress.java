package mpjdev.bench;

import java.io.IOException;
import java.io.PrintStream;
import java.util.Collection;
import java.util.Locale;
import java.util.StringJoiner;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.IterationParams;
import org.openjdk.jmh.results.BenchmarkResult;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.format.OutputFormat;

/** An output format that prints one line for each finished benchmark and passes all events to that of JMH. */
final class Progress implements OutputFormat {
    private final OutputFormat full;
    private final PrintStream out;

    Progress(OutputFormat full, PrintStream out) {
        this.full = full;
        this.out = out;
    }

    @Override
    public void endBenchmark(BenchmarkResult result) {
        full.endBenchmark(result);
        if (result != null) {
            out.println(line(result));
        }
    }

    private static String line(BenchmarkResult result) {
        BenchmarkParams params = result.getParams();
        StringJoiner line = new StringJoiner("  ");
        line.add(Measured.shortName(params.getBenchmark()));
        for (String key : params.getParamsKeys()) {
            line.add(params.getParam(key));
        }
        boolean contest = false;
        for (String name : result.getSecondaryResults().keySet()) {
            if (!name.contains("gc.")) {
                double[] all = result.getIterationResults().stream()
                        .mapToDouble(r -> r.getSecondaryResults().get(name).getScore()).sorted().toArray();
                double median = all[all.length / 2];
                line.add(name + " " + (median == 0 ? "-" : Report.time(median)));
                contest = true;
            }
        }
        if (!contest) {
            line.add(String.format(Locale.ROOT, "%.1f %s", result.getPrimaryResult().getScore(),
                    result.getPrimaryResult().getScoreUnit()));
        }
        return line.toString();
    }

    @Override
    public void iteration(BenchmarkParams benchParams, IterationParams params, int iteration) {
        full.iteration(benchParams, params, iteration);
    }

    @Override
    public void iterationResult(BenchmarkParams benchParams, IterationParams params, int iteration,
            IterationResult data) {
        full.iterationResult(benchParams, params, iteration, data);
    }

    @Override
    public void startBenchmark(BenchmarkParams benchParams) {
        full.startBenchmark(benchParams);
    }

    @Override
    public void startRun() {
        full.startRun();
    }

    @Override
    public void endRun(Collection<RunResult> results) {
        full.endRun(results);
    }

    @Override
    public void print(String text) {
        full.print(text);
    }

    @Override
    public void println(String text) {
        full.println(text);
    }

    @Override
    public void flush() {
        full.flush();
        out.flush();
    }

    @Override
    public void close() {
        full.close();
    }

    @Override
    public void verbosePrintln(String text) {
        full.verbosePrintln(text);
    }

    @Override
    public void write(int octet) {
        full.write(octet);
    }

    @Override
    public void write(byte[] octets) throws IOException {
        full.write(octets);
    }
}
