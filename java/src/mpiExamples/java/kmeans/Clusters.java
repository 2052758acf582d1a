package kmeans;

import java.util.Arrays;

/**
 * A range of the points, and centres of clusters. Coordinates are whole numbers, so sums do not depend on
 * their order.
 */
final class Clusters {
    /** Numbers of a cluster in {@link #sums}: both coordinates of its points, and their count. */
    private static final int NUMBERS = 3;
    private static final int GROUPS = 8;
    private static final int WIDTH = 1_000_000;
    private static final int SPREAD = 60_000;

    /** Coordinates of the centres, in pairs. */
    final long[] centres;
    /** Sums of all clusters, and behind them the number of points that have changed their cluster. */
    final long[] sums;

    private final long[] points;
    private final int[] clusterOf;

    /** Makes the points with these numbers, which are the same in each range. */
    Clusters(int first, int count, int clusters) {
        this.points = new long[2 * count];
        this.clusterOf = new int[count];
        this.centres = new long[2 * clusters];
        this.sums = new long[NUMBERS * clusters + 1];
        for (int i = 0; i < count; i++) {
            long group = Math.floorMod(mixed(first + i), GROUPS);
            for (int axis = 0; axis < 2; axis++) {
                long middle = Math.floorMod(mixed(-1 - 2 * group - axis), WIDTH);
                points[2 * i + axis] = middle + Math.floorMod(mixed(3L * (first + i) + axis + 1), SPREAD);
            }
            clusterOf[i] = -1;
        }
    }

    /** Returns a number that looks random. */
    private static long mixed(long number) {
        long bits = (number + 0x9e3779b97f4a7c15L) * 0xbf58476d1ce4e5b9L;
        bits = (bits ^ bits >>> 27) * 0x94d049bb133111ebL;
        return bits ^ bits >>> 31;
    }

    /** Makes the first points the centres. */
    void chooseCentres() {
        System.arraycopy(points, 0, centres, 0, centres.length);
    }

    /** Assigns each point of the range to its nearest centre, and adds up the clusters. */
    void assign() {
        Arrays.fill(sums, 0);
        for (int i = 0; i < clusterOf.length; i++) {
            int nearest = nearest(points[2 * i], points[2 * i + 1]);
            if (nearest != clusterOf[i]) {
                clusterOf[i] = nearest;
                sums[sums.length - 1]++;
            }
            sums[NUMBERS * nearest] += points[2 * i];
            sums[NUMBERS * nearest + 1] += points[2 * i + 1];
            sums[NUMBERS * nearest + 2]++;
        }
    }

    private int nearest(long x, long y) {
        int nearest = 0;
        long least = Long.MAX_VALUE;
        for (int cluster = 0; cluster < centres.length / 2; cluster++) {
            long dx = x - centres[2 * cluster];
            long dy = y - centres[2 * cluster + 1];
            long distance = dx * dx + dy * dy;
            if (distance < least) {
                least = distance;
                nearest = cluster;
            }
        }
        return nearest;
    }

    /** Moves the centres to the middle of their clusters, and returns how many points have changed. */
    long moveCentres() {
        for (int cluster = 0; cluster < centres.length / 2; cluster++) {
            long count = sums[NUMBERS * cluster + 2];
            // A cluster without points keeps its centre.
            if (count > 0) {
                centres[2 * cluster] = sums[NUMBERS * cluster] / count;
                centres[2 * cluster + 1] = sums[NUMBERS * cluster + 1] / count;
            }
        }
        return sums[sums.length - 1];
    }
}
