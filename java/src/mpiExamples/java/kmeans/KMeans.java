package kmeans;

import java.util.Arrays;
import mpi.MPI;
import mpi.MPIException;

/**
 * All ranks sort points into clusters: each has a part of the points, and {@code Allreduce} adds up the
 * clusters of all. The first rank compares the centres with those that it computes alone.
 *
 * <p>Arguments: number of points, number of clusters.
 */
public final class KMeans {
    private static final int POINTS = 200_000;
    private static final int CLUSTERS = 8;
    private static final int STEPS_MAX = 200;
    /** Steps between two lines of progress. */
    private static final int LINE = 10;

    private KMeans() {}

    /**
     * Runs one rank.
     *
     * @param args arguments of the program
     * @throws MPIException if a call fails
     */
    public static void main(String[] args) throws MPIException {
        String[] own = MPI.Init(args);
        int points = number(own, 0, POINTS);
        int clusters = number(own, 1, CLUSTERS);
        if (clusters < 1 || points < clusters || own.length > 2) {
            if (MPI.COMM_WORLD.Rank() == 0) {
                System.err.println("KMeans takes a number of points and one of clusters, not more clusters than points: not "
                        + Arrays.toString(own));
            }
            MPI.COMM_WORLD.Barrier();
            MPI.COMM_WORLD.Abort(1);
        }
        run(points, clusters);
        MPI.Finalize();
    }

    /** Returns an argument or its default; 0 for one that is no number. */
    private static int number(String[] args, int at, int otherwise) {
        try {
            return at < args.length ? Integer.parseInt(args[at]) : otherwise;
        } catch (NumberFormatException e) {
            return 0;
        }
    }

    private static void run(int points, int clusters) throws MPIException {
        int rank = MPI.COMM_WORLD.Rank();
        int size = MPI.COMM_WORLD.Size();
        int first = first(rank, points, size);
        Clusters own = new Clusters(first, first(rank + 1, points, size) - first, clusters);
        if (rank == 0) {
            Clusters chosen = new Clusters(0, clusters, clusters);
            chosen.chooseCentres();
            System.arraycopy(chosen.centres, 0, own.centres, 0, own.centres.length);
        }
        MPI.COMM_WORLD.Bcast(own.centres, 0, own.centres.length, MPI.LONG, 0);
        int step = 0;
        long changed;
        do {
            own.assign();
            MPI.COMM_WORLD.Allreduce(own.sums.clone(), 0, own.sums, 0, own.sums.length, MPI.LONG, MPI.SUM);
            changed = own.moveCentres();
            step++;
            if (rank == 0 && step % LINE == 0) {
                System.out.println("step " + step + ": " + changed + " points have changed their cluster");
            }
        } while (changed > 0 && step < STEPS_MAX);
        if (rank == 0) {
            check(own.centres, points, clusters, step);
        }
    }

    /** Returns the first point of a rank. */
    private static int first(int rank, int points, int size) {
        return (int) ((long) rank * points / size);
    }

    private static void check(long[] centres, int points, int clusters, int steps) throws MPIException {
        Clusters alone = new Clusters(0, points, clusters);
        alone.chooseCentres();
        int step = 0;
        do {
            alone.assign();
            step++;
        } while (alone.moveCentres() > 0 && step < STEPS_MAX);
        boolean isSame = step == steps && Arrays.equals(alone.centres, centres);
        System.out.println(MPI.COMM_WORLD.Size() + " ranks, " + points + " points, " + clusters + " clusters, " + steps
                + " steps: centres " + (isSame ? "as computed by one rank" : "NOT as computed by one rank"));
        if (!isSame) {
            MPI.COMM_WORLD.Abort(1);
        }
    }
}
