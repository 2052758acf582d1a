package mpjdev.tools;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import mpjdev.Comm;

/** Options of the command line. */
final class Options {
    static final String HELP = """
            Measures messages between ranks.

              mpjrun -n 2 -cp mpjdev-bench.jar mpjdev.tools.Bench pingpong
              java -cp mpjdev-bench.jar mpjdev.tools.Bench rate --threads 2 --json

            WHAT is one of
              pingpong   one way, half of a round trip: arrays, direct (without a buffer), buffers, strided,
                         strided-direct, random, random-direct, sum, sum-direct, objects
              bandwidth  octets per second in windows of 64 messages
              rate       messages in windows of 64: rate-arrays, rate-direct, rate-buffers, rate-requests (isend,
                         irecv and iwaitall), busy (the receiver computes)
              alltoall   from every rank to every other
              ring       one hop around a ring of all ranks
              garbage    Java heap that a send and a receive allocate; garbage-direct, garbage-mpi
              empty      only the start and the end of a job
            or one of the cases: arrays direct mpi buffers strided strided-direct random random-direct sum
            sum-direct objects serial timed rate-arrays rate-direct rate-buffers rate-requests busy garbage
            garbage-direct garbage-mpi

            Options
              --sizes 8,1k,1m    octets of a message, multiples of 8
              --time SECONDS     of each size, after a warm-up of the same length (0.5)
              --threads N        N ranks as threads of this JVM instead of one rank of mpjrun
              --over PEER        messages over baseline, aeron-ipc or aeron-udp instead of mpjdev: arrays, direct,
                                 buffers and their rates; up to 64k over Aeron
              --json             JSON instead of text
            """;

    /** Length limit of a message in octets. */
    private static final long OCTETS_MAX = 256 << 20;
    private static final int THREADS_MAX = 1024;
    /** Cases of peers. */
    private static final Set<Case> OF_PEERS = EnumSet.of(Case.ARRAYS, Case.DIRECT, Case.BUFFERS,
            Case.RATE_ARRAYS, Case.RATE_DIRECT, Case.RATE_BUFFERS, Case.RATE_REQUESTS);
    private static final String BASELINE = "baseline";
    private static final String AERON_IPC = "aeron-ipc";
    private static final String AERON_UDP = "aeron-udp";

    /** Cases to measure; empty for the start and the end of a job only. */
    List<Case> cases = List.of();
    /** Octets of messages; empty for the defaults of the case. */
    List<Integer> sizes = List.of();
    double seconds = 0.5;
    /** Number of ranks as threads, or 0. */
    int threads;
    boolean json;
    /** Whether bandwidth is printed instead of time. */
    boolean bandwidth;
    /** Command socket, or null. */
    Path socket;
    /** Carrier of the messages instead of mpjdev, or null. */
    String peer;

    private Options() {}

    /** Reads a command line. Throws IllegalArgumentException with a text for the user. */
    static Options of(String... args) {
        Options options = new Options();
        int next = 1;
        if (args[0].equals("serve")) {
            options.socket = Path.of(value(args, 0));
            next = 2;
        } else {
            options.bandwidth = args[0].equals("bandwidth");
            options.cases = cases(args[0]);
        }
        while (next < args.length) {
            String option = args[next];
            if (option.equals("--json")) {
                options.json = true;
                next++;
            } else {
                options.set(option, args, next);
                next += 2;
            }
        }
        if (options.peer != null) {
            options.cases = options.cases.stream().filter(OF_PEERS::contains).toList();
        }
        return options;
    }

    private void set(String option, String[] args, int at) {
        switch (option) {
            case "--sizes":
                sizes = sizes(value(args, at));
                break;
            case "--time":
                seconds = number(option, value(args, at), 0, 3600);
                break;
            case "--over":
                peer = peer(value(args, at));
                break;
            case "--threads":
                threads = (int) number(option, value(args, at), 1, THREADS_MAX);
                break;
            default:
                throw new IllegalArgumentException("there is no option " + option + "; --help lists the options");
        }
    }

    private static String peer(String name) {
        if (!Set.of(BASELINE, AERON_IPC, AERON_UDP).contains(name)) {
            throw new IllegalArgumentException("--over: there is no peer " + name + "; --help lists the peers");
        }
        return name;
    }

    /** Carrier of the messages of a rank. */
    Carrier carrier(Comm world) throws Exception {
        if (peer == null) {
            return (what, octets) -> what.work(world, octets);
        }
        if (peer.equals(BASELINE)) {
            return new BaselineCarrier(world);
        }
        // It is compiled separately, and on the class path only with Aeron.
        Class<?> aeron = Class.forName("mpjdev.tools.AeronCarrier");
        return (Carrier) aeron.getDeclaredConstructor(Comm.class, boolean.class).newInstance(world, peer.equals(AERON_UDP));
    }

    private static String value(String[] args, int at) {
        if (at + 1 >= args.length) {
            throw new IllegalArgumentException(args[at] + " needs a value");
        }
        return args[at + 1];
    }

    private static List<Case> cases(String what) {
        switch (what) {
            case "empty":
                return List.of();
            case "pingpong":
                return List.of(Case.ARRAYS, Case.DIRECT, Case.BUFFERS, Case.STRIDED, Case.STRIDED_DIRECT, Case.RANDOM,
                        Case.RANDOM_DIRECT, Case.SUM, Case.SUM_DIRECT, Case.OBJECTS);
            case "bandwidth":
                return List.of(Case.RATE_ARRAYS);
            case "rate":
                return List.of(Case.RATE_ARRAYS, Case.RATE_DIRECT, Case.RATE_BUFFERS, Case.RATE_REQUESTS, Case.BUSY);
            default:
                return List.of(Case.of(what));
        }
    }

    private static List<Integer> sizes(String text) {
        List<Integer> sizes = new ArrayList<>();
        for (String word : text.split(",")) {
            sizes.add(octets(word));
        }
        return sizes;
    }

    private static int octets(String word) {
        String lower = word.toLowerCase(Locale.ROOT);
        int unit = lower.isEmpty() ? -1 : "kmg".indexOf(lower.charAt(lower.length() - 1));
        String digits = unit < 0 ? lower : lower.substring(0, lower.length() - 1);
        if (!digits.matches("[0-9]{1,9}")) {
            throw new IllegalArgumentException("--sizes: " + word + " is not a number of octets");
        }
        long octets = Long.parseLong(digits) << 10 * (unit + 1);
        if (octets % Double.BYTES != 0 || octets < Double.BYTES || octets > OCTETS_MAX) {
            throw new IllegalArgumentException("--sizes: a multiple of 8 from 8 to " + OCTETS_MAX + " is needed, not " + word);
        }
        return (int) octets;
    }

    private static double number(String option, String text, double least, double most) {
        double number;
        try {
            number = Double.parseDouble(text);
        } catch (NumberFormatException e) {
            number = Double.NaN;
        }
        if (!(number >= least && number <= most)) {
            throw new IllegalArgumentException(String.format(Locale.ROOT, "%s: %s is not a number from %.0f to %.0f", option, text, least, most));
        }
        return number;
    }
}
