package mpjdev.examples;

import java.io.IOException;
import java.util.Arrays;
import mpjdev.Buffer;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.Type;
import mpjdev.WriteBuffer;

/**
 * Two ranks send an array to and fro, and measure the time: from the array, through a message, into the other's array.
 *
 * <p>A quick look, not a benchmark: some short series, whose median shows what other work on the machine
 * does to them, and whose best shows what is possible.
 */
final class PingPong {
    private static final int SERIES_MAX = 15;
    private static final int SERIES_MIN = 3;
    private static final int TAG = 4;

    private PingPong() {}

    /**
     * Times of one way, in nanoseconds.
     *
     * @param median that of the series in the middle
     * @param best that of the fastest series
     * @param right whether every array was what was sent
     */
    record Times(double median, double best, boolean right) {}

    /**
     * Measures between two ranks. Collective; blocks.
     *
     * @param pair the two ranks
     * @param count longs in the array
     * @param nanos how long a series takes, about
     * @return the times of one way, the same in both ranks but for what each has checked
     */
    static Times measure(Comm pair, int count, long nanos) throws IOException {
        try (Player player = new Player(pair, count)) {
            // The first series shows how many rounds fill the time, and lets the compiler see the code.
            int rounds = 16;
            long time = player.play(rounds);
            while (time < nanos) {
                rounds = (int) Math.min(8L * rounds, rounds * nanos / Math.max(1, time) + rounds);
                time = player.play(rounds);
            }
            double[] series = new double[SERIES_MAX];
            int played = 0;
            // On a busy machine a series can take many times what it should; then fewer have to do.
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

    /** One of the two. */
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

        /** Plays so many rounds; both ranks return the time that rank 0 has measured, in nanoseconds. */
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
