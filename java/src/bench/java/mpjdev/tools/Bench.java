package mpjdev.tools;

import java.util.Locale;
import mpjdev.Comm;

/**
 * Measures messages between ranks: processes under {@code mpjrun}, or threads. {@code --help} lists commands
 * and options.
 *
 * <p>{@code mpjdev-bench pingpong --java} runs it in turns with ranks in Rust and a C program.
 */
public final class Bench {
    /** Exit status for wrong usage. */
    private static final int UNUSABLE = 2;

    private Bench() {}

    /**
     * Measures, or executes the commands of {@code mpjdev-bench}.
     *
     * @param args what to measure, and options
     * @throws Exception when a rank fails
     */
    public static void main(String[] args) throws Exception {
        // Checked before any other class is loaded: the time of this JVM is that of a plain one.
        if (args.length == 1 && args[0].equals("nothing")) {
            return;
        }
        // An idle rank, without any class of the measurements.
        if (args.length == 1 && args[0].equals("empty")) {
            Comm.init(args);
            Comm.finish();
            return;
        }
        if (args.length == 1 && args[0].equals("native-call")) {
            System.out.printf(Locale.ROOT, "%.2f%n", NativeCall.nanos());
            return;
        }
        if (args.length == 0 || args[0].equals("--help") || args[0].equals("-h")) {
            (args.length == 0 ? System.err : System.out).print(Options.HELP);
            if (args.length == 0) {
                System.exit(UNUSABLE);
            }
            return;
        }
        Options options;
        try {
            options = Options.of(args);
        } catch (IllegalArgumentException e) {
            System.err.println("mpjdev.tools.Bench: " + e.getMessage());
            System.exit(UNUSABLE);
            return;
        }
        run(options);
    }

    static void run(Options options) throws Exception {
        if (options.threads > 0) {
            Comm.<Exception>runThreads(options.threads, world -> rank(world, options));
        } else {
            Comm.init(new String[0]);
            rank(Comm.WORLD, options);
            Comm.finish();
        }
    }

    private static void rank(Comm world, Options options) throws Exception {
        try (Carrier carrier = options.carrier(world)) {
            if (options.socket != null) {
                try (Rank rank = new Rank(world, carrier)) {
                    CommandSocket.serve(world.id(), rank::run, options.socket);
                }
            } else if (!options.cases.isEmpty()) {
                Standalone.run(world, carrier, options);
            }
        }
    }
}
