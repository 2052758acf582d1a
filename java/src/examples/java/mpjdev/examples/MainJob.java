package mpjdev.examples;

import java.io.IOException;
import java.io.PrintStream;
import java.util.Locale;
import mpjdev.Comm;

/**
 * The main example: ranks that are threads solve the Laplace equation, pass objects round a ring, and measure.
 *
 * <p>Every result is checked: the solution with that of a sequential solver, bit for bit, and with the exact one; the
 * objects with what they must be; the messages received with those sent. The exit status is 0 when all are right, 1
 * when one is not, 2 for wrong arguments.
 */
public final class MainJob {
    /** Makes messages between threads physical ones, one or two, as between processes: nothing else can be counted. */
    private static final String MESSAGE_ORIENTED = "mpjdev.messageOriented";
    private static final int MEBI = 1 << 20;
    private static final long SERIES_NANOS = 30_000_000L;

    private final Options options;
    private final PrintStream out;
    private final Progress progress;
    private final Traffic traffic = new Traffic();
    private boolean right = true;

    private MainJob(Options options, PrintStream out) {
        this.options = options;
        this.out = out;
        progress = new Progress(out);
    }

    /**
     * Runs the job and ends the process.
     *
     * @param args see {@code --help}
     */
    public static void main(String[] args) {
        System.exit(run(args, System.out, System.err));
    }

    /**
     * Runs the job. Blocks.
     *
     * @param args see {@code --help}
     * @param out where results go
     * @param err where complaints go
     * @return the exit status
     */
    static int run(String[] args, PrintStream out, PrintStream err) {
        Options options;
        try {
            options = Options.parse(args);
        } catch (IllegalArgumentException e) {
            err.println("MainJob: " + e.getMessage());
            err.println(Options.USAGE);
            return 2;
        }
        if (options.help()) {
            out.println(Options.USAGE);
            return 0;
        }
        try {
            return new MainJob(options, out).run() ? 0 : 1;
        } catch (IOException | RuntimeException e) {
            out.println("FAILED: " + e);
            e.printStackTrace(err);
            return 1;
        }
    }

    private boolean run() throws IOException {
        solve();
        passObjects();
        check("all messages sent were received", traffic.isComplete());
        out.println();
        out.print(traffic.table());
        out.println();
        measure();
        out.println(right ? "all checks passed" : "FAILED");
        return right;
    }

    private void solve() throws IOException {
        Laplace problem = new Laplace(options.size());
        Decomposition blocks = Decomposition.of(options.ranks(), options.size());
        print("Laplace equation, %d x %d points, red-black SOR, %d x %d blocks for %s",
                options.size(), options.size(), blocks.rows(), blocks.columns(), ranks());

        Solution[] found = new Solution[1];
        Comm.runThreads(options.ranks(), world -> {
            Traffic own = new Traffic();
            Solution solution = new ParallelSolver(world, problem, own).solve(progress);
            own.collect(world, traffic);
            if (world.id() == 0) {
                found[0] = solution;
            }
        });
        Solution parallel = found[0];
        print("  %s: %d sweeps in %.2f s, %s, checksum %016x", ranks(), parallel.sweeps(), parallel.nanos() / 1e9,
                parallel.converged() ? "converged" : "stopped at the bound on the work", parallel.checksum());

        Solution sequential = SequentialSolver.solve(problem, progress);
        print("  sequential: %d sweeps in %.2f s", sequential.sweeps(), sequential.nanos() / 1e9);
        int differences = parallel.differences(sequential);
        check("the same sweeps and, bit for bit, the same solution as sequentially, at "
                + (parallel.values().length - differences) + " of " + parallel.values().length + " points",
                differences == 0 && parallel.sweeps() == sequential.sweeps());
        if (parallel.converged()) {
            double error = parallel.error(problem);
            check(String.format(Locale.ROOT, "largest error against the exact solution %.1e, at most %.1e",
                    error, problem.errorMax()), error <= problem.errorMax());
        }
    }

    private void passObjects() throws IOException {
        print("Ring of objects, %d rounds of %s, physical messages", ObjectRing.rounds(options.ranks()), ranks());
        Token[] last = new Token[1];
        String before = System.setProperty(MESSAGE_ORIENTED, "true");
        try {
            Comm.runThreads(options.ranks(), world -> {
                Traffic own = new Traffic();
                Token token = new ObjectRing(world, own, progress).run();
                own.collect(world, traffic);
                if (world.id() == 0) {
                    last[0] = token;
                }
            });
        } finally {
            if (before == null) {
                System.clearProperty(MESSAGE_ORIENTED);
            } else {
                System.setProperty(MESSAGE_ORIENTED, before);
            }
        }
        check("the token came back with " + last[0].visits() + " visits and all its references",
                last[0].stamp() == ObjectRing.expectedStamp(options.ranks()));
    }

    private void measure() throws IOException {
        PingPong.Times small = PingPong.measure(1, SERIES_NANOS);
        PingPong.Times large = PingPong.measure(MEBI / Long.BYTES, SERIES_NANOS);
        Table table = new Table("array to array, between two ranks of this process", "median", "best");
        table.row("latency of 8 octets, one way", micros(small.median()), micros(small.best()));
        table.row("bandwidth of 1 MiB", bandwidth(large.median()), bandwidth(large.best()));
        out.print(table);
        out.println();
        check("every array measured with arrived as it was sent", small.right() && large.right());
    }

    private static String micros(double nanos) {
        return String.format(Locale.ROOT, "%.2f µs", nanos / 1e3);
    }

    private static String bandwidth(double nanos) {
        return String.format(Locale.ROOT, "%.2f GiB/s", 1e9 / nanos / 1024);
    }

    private void check(String what, boolean isRight) {
        out.println((isRight ? "  right: " : "  FAILED: ") + what);
        right &= isRight;
    }

    private String ranks() {
        return options.ranks() + (options.ranks() == 1 ? " rank" : " ranks");
    }

    private void print(String format, Object... values) {
        out.println(String.format(Locale.ROOT, format, values));
    }
}
