package mpjdev.tools;

import java.util.Arrays;
import java.util.List;
import mpjdev.Comm;

/** Program whose two ranks exchange arrays over a peer and check the contents. */
final class PeerCheck {
    private PeerCheck() {}

    public static void main(String[] args) throws Exception {
        Options options = Options.of("pingpong", "--over", args[0]);
        Comm.<Exception>runThreads(2, world -> {
            try (Carrier carrier = options.carrier(world)) {
                for (Case what : List.of(Case.ARRAYS, Case.RATE_ARRAYS)) {
                    for (int octets : new int[] {8, 1024, 64 << 10}) {
                        check(carrier, world.id(), what, octets);
                    }
                }
            }
        });
    }

    private static void check(Carrier carrier, int me, Case what, int octets) throws Exception {
        try (Work.WithArray work = (Work.WithArray) carrier.work(what, octets)) {
            double[] numbered = new double[octets / Double.BYTES];
            Arrays.setAll(numbered, i -> octets + i);
            if (me == 0) {
                System.arraycopy(numbered, 0, work.array, 0, numbered.length);
            }
            work.run(3);
            if (!Arrays.equals(numbered, work.array)) {
                throw new AssertionError(what + " of " + octets + " octets has wrong contents at rank " + me);
            }
        }
    }
}
