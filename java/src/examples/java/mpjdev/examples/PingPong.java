package mpjdev.examples;

import java.io.IOException;
import java.util.Arrays;
import mpjdev.Buffer;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.Type;
import mpjdev.WriteBuffer;

/**
 * Ping-pong of an array between two ranks: the time from an array through a message to the array of the other
 * rank.
 *
 * <p>It is an estimate, not a benchmark: a few short series. Their median includes the effects of other work
 * on the machine; the best one shows the possible speed.
 */
final class PingPong {
    private static final int SERIES_MAX = 15;
    private static final int SERIES_MIN = 3;
    private static final int TAG = 4;

    private PingPong() {}

    /**
     * Latencies in nanoseconds, each half of a round trip.
     *
     * @param median median of the series
     * @param best latency of the fastest series
     * @param right whether every array was equal to the sent one
     */
    record Times(double median, double best, boolean right) {}

    /**
     * Measures between two ranks. Collective; blocks.
     *
     * @param pair the two ranks
     * @param count longs in the array
     * @param nanos approximate time of a series
     * @return the latencies, equal in both ranks, and the check of this rank
     */
    static Times measure(Comm pair, int count, long nanos) throws IOException {
        try (Player player = new Player(pair, count)) {
            // The first series determines how many rounds fill the time, and lets the JIT compile the code.
            int rounds = 16;
            long time = player.play(rounds);
            while (time < nanos) {
                rounds = (int) Math.min(8L * rounds, rounds * nanos / Math.max(1, time) + rounds);
                time = player.play(rounds);
            }
            double[] series = new double[SERIES_MAX];
            int played = 0;
            // On a busy machine a series can take many times as long. Fewer series must suffice then.
            long total = 0;
            while (played < SERIES_MIN || played < SERIES_MAX && total < SERIES_MAX * nanos) {
                time = player.play(rounds);
                total += time;
                series[played++] = time / (2.0 * rounds);
            }
            Arrays.sort(series, 0, played);
            return new Times(series[played / 2], series[0], player.right);
        }
    }

    /** One of the two ranks. */
    private static final class Player implements AutoCloseable {
        private final Comm pair;
        private final long[] array;
        private final WriteBuffer out;
        private final ReadBuffer in;
        private boolean right = true;

        Player(Comm pair, int count) {
            this.pair = pair;
            array = new long[count];
            int capacity = (int) Buffer.requiredCapacity(Type.LONG, count);
            out = new WriteBuffer(capacity);
            in = new ReadBuffer(capacity);
        }

        /**
         * Runs {@code rounds} rounds. Both ranks return the time that rank 0 has measured, in nanoseconds.
         */
        long play(int rounds) throws IOException {
            array[0] = pair.id() == 0 ? 0 : -1;
            array[array.length - 1] = array[0];
            pair.barrier();
            long begun = System.nanoTime();
            for (int round = 0; round < rounds; round++) {
                if (pair.id() == 0) {
                    send();
                    receive();
                } else {
                    receive();
                    array[array.length - 1] = ++array[0];
                    send();
                }
            }
            long time = System.nanoTime() - begun;
            right &= array[0] == rounds && array[array.length - 1] == rounds;
            return agree(time);
        }

        private long agree(long time) throws IOException {
            if (pair.id() == 0) {
                array[0] = time;
                send();
            } else {
                receive();
            }
            return array[0];
        }

        private void send() {
            out.clear();
            out.write(array, 0, array.length);
            pair.send(out, 1 - pair.id(), TAG);
        }

        private void receive() throws IOException {
            pair.recv(in, 1 - pair.id(), TAG);
            in.read(array, 0, array.length);
        }

        @Override
        public void close() {
            out.close();
            in.close();
        }
    }
}
