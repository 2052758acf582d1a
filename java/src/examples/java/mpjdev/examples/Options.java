package mpjdev.examples;

/** The arguments of {@link MainJob}. */
final class Options {
    static final String USAGE = """
            usage: mpjrun -n N ... MainJob [--size N]
                   java ... MainJob --threads N [--size N]
              --threads N  ranks are N threads of this process, 1 to 256; else this process is a rank itself
              --size N     the grid has N x N inner points; 1 to 8192, default 512
              --help       shows this""";

    private static final int THREADS_MAX = 256;
    private static final int SIZE_MAX = 8192;

    private int threads;
    private int size = 512;
    private boolean help;

    private Options() {}

    /**
     * Parses a command line.
     *
     * @throws IllegalArgumentException with a sentence for the user
     */
    static Options parse(String[] args) {
        Options options = new Options();
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "--help" -> options.help = true;
                case "--threads" -> options.threads = number(args, i++, THREADS_MAX);
                case "--size" -> options.size = number(args, i++, SIZE_MAX);
                default -> throw new IllegalArgumentException("unknown argument " + args[i]);
            }
        }
        return options;
    }

    private static int number(String[] args, int at, int max) {
        String name = args[at];
        if (at + 1 == args.length) {
            throw new IllegalArgumentException(name + " needs a number, 1 to " + max);
        }
        try {
            int value = Integer.parseInt(args[at + 1]);
            if (value >= 1 && value <= max) {
                return value;
            }
        } catch (NumberFormatException e) {
            // The exception below names the option.
        }
        throw new IllegalArgumentException(name + " needs a number, 1 to " + max + ", not " + args[at + 1]);
    }

    /** Returns the number of ranks that are threads of this process, or 0 if the process is a rank. */
    int threads() {
        return threads;
    }

    /** Returns the inner points of the grid along each side. */
    int size() {
        return size;
    }

    boolean help() {
        return help;
    }
}
