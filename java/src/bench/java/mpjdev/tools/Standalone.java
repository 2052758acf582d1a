package mpjdev.tools;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import mpjdev.Buffer;
import mpjdev.BufferReadException;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.WriteBuffer;

/** Measurement without {@code mpjdev-bench}: rank 0 sends commands to all ranks and prints the results. */
final class Standalone {
    private static final int TAG = 2;
    /** Longs of a command in a message: case, octets, times. */
    private static final int WORDS = 3;
    private static final long TURN_NANOS = 10_000_000;
    private static final int TURNS = 7;
    private static final long TIMES_MAX = 1 << 24;
    /** Case of the last command. */
    private static final long END = -1;

    private final Comm world;
    private final Options options;
    private final long[] words = new long[WORDS];

    private Standalone(Comm world, Options options) {
        this.world = world;
        this.options = options;
    }

    static void run(Comm world, Carrier carrier, Options options) throws Exception {
        Standalone standalone = new Standalone(world, options);
        int capacity = Buffer.SECTION_OVERHEAD + WORDS * Long.BYTES;
        try (Rank rank = new Rank(world, carrier);
                WriteBuffer out = new WriteBuffer(capacity);
                ReadBuffer in = new ReadBuffer(capacity)) {
            if (world.id() == 0) {
                standalone.measure(rank, out, System.out);
            } else {
                standalone.follow(rank, in);
            }
        }
    }

    private void follow(Rank rank, ReadBuffer in) throws Exception {
        while (receive(in)) {
            rank.run(new RunCommand(Case.values()[(int) words[0]].word, (int) words[1], words[2]));
        }
    }

    private boolean receive(ReadBuffer in) throws BufferReadException {
        world.recv(in, 0, TAG);
        in.read(words, 0, WORDS);
        return words[0] != END;
    }

    private void measure(Rank rank, WriteBuffer out, PrintStream to) throws Exception {
        List<Figure> figures = new ArrayList<>();
        for (Case what : options.cases) {
            for (int octets : options.sizes.isEmpty() ? sizes(what) : options.sizes) {
                figures.add(measure(rank, out, what, octets));
            }
        }
        sendCommand(out, END, 0, 0);
        to.print(options.json ? Figure.json(figures) : Figure.table(figures, options.bandwidth));
        to.flush();
    }

    private List<Integer> sizes(Case what) {
        return options.bandwidth ? List.of(1 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20) : what.sizes;
    }

    private Figure measure(Rank rank, WriteBuffer out, Case what, int octets) throws Exception {
        long warmUp = (long) (options.seconds * 1e9);
        long begin = System.nanoTime();
        long times = 1;
        do {
            double nanos = run(rank, out, what, octets, times).nanos();
            double fitting = TURN_NANOS * (double) times / Math.max(nanos, 1);
            times = Math.max(1, Math.min(Math.min((long) fitting, 8 * times), TIMES_MAX));
        } while (System.nanoTime() - begin < warmUp);
        List<Answer> answers = new ArrayList<>();
        begin = System.nanoTime();
        while (answers.size() < TURNS || System.nanoTime() - begin < warmUp) {
            answers.add(run(rank, out, what, octets, times));
        }
        double count = (double) times * what.perTime(octets, world.size());
        double[] nanos = answers.stream().mapToDouble(a -> a.nanos() / count).sorted().toArray();
        double[] extra = answers.stream().mapToDouble(a -> a.extra() / count).sorted().toArray();
        return new Figure(what, octets, world.size(), name(), median(nanos), nanos[0], median(extra), nanos.length);
    }

    private String name() {
        if (options.peer != null) {
            return options.peer;
        }
        if (options.threads > 0) {
            return "Java local";
        }
        String transport = System.getenv("MPJDEV_TRANSPORT");
        return "tcp".equals(transport) || "udp".equals(transport) ? "Java " + transport : "Java shm";
    }

    private static double median(double[] sorted) {
        return Arrays.stream(sorted, (sorted.length - 1) / 2, sorted.length / 2 + 1).average().orElse(Double.NaN);
    }

    private Answer run(Rank rank, WriteBuffer out, Case what, int octets, long times) throws Exception {
        sendCommand(out, what.ordinal(), octets, times);
        return rank.run(new RunCommand(what.word, octets, times));
    }

    private void sendCommand(WriteBuffer out, long what, long octets, long times) {
        out.clear();
        out.write(new long[] {what, octets, times}, 0, WORDS);
        for (int to = 1; to < world.size(); to++) {
            world.send(out, to, TAG);
        }
    }
}
