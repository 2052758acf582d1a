package mpjdev.examples;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.Locale;
import mpjdev.Comm;

/**
 * The main example: ranks solve the Laplace equation, pass objects around a ring, and measure.
 *
 * <p>A rank is a process that {@code mpjrun} has started or, with {@code --threads}, a thread. Its work is
 * the same. Rank 0 gathers the results of the others and prints.
 *
 * <p>Every result is checked: the solution with that of a sequential solver, bit for bit, and with the exact
 * one; the objects with their expected values; the received messages with the sent ones. The exit status is 0
 * if all are right, 1 if one is not, 2 for wrong arguments.
 */
public final class MainJob {
    /** Property that splits messages between threads as between processes, so that they can be counted. */
    private static final String MESSAGE_ORIENTED = "mpjdev.messageOriented";
    private static final int MEBI = 1 << 20;
    private static final long SERIES_NANOS = 30_000_000L;

    private final Comm world;
    private final Options options;
    private final PrintStream out;
    private final Progress progress;
    private final Traffic traffic = new Traffic();
    private boolean right = true;

    private MainJob(Comm world, Options options, PrintStream out) {
        this.world = world;
        this.options = options;
        this.out = world.id() == 0 ? out : new PrintStream(OutputStream.nullOutputStream());
        progress = new Progress(this.out);
    }

    /**
     * Runs the job, or one rank of it, and ends the process.
     *
     * @param args see {@code --help}
     */
    public static void main(String[] args) {
        System.exit(run(args, System.out, System.err));
    }

    /**
     * Runs the job, or one rank of it. Blocks.
     *
     * @param args see {@code --help}
     * @param out stream for results
     * @param err stream for errors
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
            boolean right = options.threads() > 0 ? runThreads(options, out) : runProcess(args, options, out);
            return right ? 0 : 1;
        } catch (IOException | RuntimeException e) {
            err.print("FAILED: ");
            e.printStackTrace(err);
            return 1;
        }
    }

    /** Runs this process as a rank of the job of mpjrun, or as rank 0 of 1. */
    private static boolean runProcess(String[] args, Options options, PrintStream out) throws IOException {
        Comm.init(args);
        boolean right = new MainJob(Comm.WORLD, options, out).run();
        Comm.finish();
        return right;
    }

    /** Runs the ranks as threads of this process. */
    private static boolean runThreads(Options options, PrintStream out) throws IOException {
        boolean[] right = new boolean[options.threads()];
        String before = System.setProperty(MESSAGE_ORIENTED, "true");
        try {
            Comm.runThreads(options.threads(),
                    world -> right[world.id()] = new MainJob(world, options, out).run());
        } finally {
            if (before == null) {
                System.clearProperty(MESSAGE_ORIENTED);
            } else {
                System.setProperty(MESSAGE_ORIENTED, before);
            }
        }
        boolean all = true;
        for (boolean one : right) {
            all &= one;
        }
        return all;
    }

    /** Does the work of one rank. Collective; blocks. Returns whether all of its checks were right. */
    private boolean run() throws IOException {
        solve();
        passObjects();
        Traffic all = new Traffic();
        traffic.collect(world, all);
        if (world.id() == 0) {
            check("all messages sent were received", all.isComplete());
            out.println();
            out.print(all.table());
            out.println();
        }
        measure();
        out.println(right ? "all checks passed" : "FAILED");
        return right;
    }

    private void solve() throws IOException {
        Laplace problem = new Laplace(options.size());
        Decomposition blocks = Decomposition.of(world.size(), options.size());
        print("Laplace equation, %d x %d points, red-black SOR, %d x %d blocks for %s, each a %s",
                options.size(), options.size(), blocks.rows(), blocks.columns(), ranks(),
                options.threads() > 0 ? "thread" : "process");
        Solution parallel = new ParallelSolver(world, problem, traffic).solve(progress);
        if (world.id() == 0) {
            compare(problem, parallel);
        }
    }

    private void compare(Laplace problem, Solution parallel) {
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
        print("Ring of objects, %d rounds of %s", ObjectRing.rounds(world.size()), ranks());
        Token last = new ObjectRing(world, traffic, progress).run();
        if (world.id() == 0) {
            check("the token came back with " + last.visits() + " visits and all its references",
                    last.stamp() == ObjectRing.expectedStamp(world.size()));
        }
    }

    /** Measures between ranks 0 and 1. The others return at once. */
    private void measure() throws IOException {
        if (world.size() == 1) {
            print("one rank: nothing to measure between two");
            return;
        }
        Comm pair = world.split(world.id() < 2 ? 0 : -1, world.id());
        if (pair == null) {
            return;
        }
        PingPong.Times small = PingPong.measure(pair, 1, SERIES_NANOS);
        PingPong.Times large = PingPong.measure(pair, MEBI / Long.BYTES, SERIES_NANOS);
        pair.free();
        boolean crowded = world.size() > Runtime.getRuntime().availableProcessors();
        Table table = new Table("array to array, ranks 0 and 1" + (crowded ? ", more ranks than processors" : ""),
                "median", "best");
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
        if (!isRight && world.id() > 0) {
            throw new IllegalStateException("rank " + world.id() + ": it is not so that " + what);
        }
        out.println((isRight ? "  right: " : "  FAILED: ") + what);
        right &= isRight;
    }

    private String ranks() {
        return world.size() + (world.size() == 1 ? " rank" : " ranks");
    }

    private void print(String format, Object... values) {
        out.println(String.format(Locale.ROOT, format, values));
    }
}
