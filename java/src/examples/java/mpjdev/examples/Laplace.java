package mpjdev.examples;

/**
 * The problem that is solved: the Laplace equation on the unit square, N x N inner points, by red-black successive
 * over-relaxation (SOR).
 *
 * <p>The boundary has the values of {@code sin(pi x) sinh(pi y) / sinh(pi)}, which solves the equation inside as well,
 * so that a result can be judged. Points are numbered from 0 to N + 1 along both sides, 0 and N + 1 being the boundary.
 *
 * <p>A point is red when row + column is even, else black. All four neighbours of a red point are black and the other
 * way round, so the order within a colour does not matter: however the points are distributed, the result is the same
 * to the last bit.
 */
final class Laplace {
    static final int RED = 0;
    static final int BLACK = 1;

    /** The largest change of any point in one sweep at which the solution counts as found. */
    static final double TOLERANCE = 1e-11;

    /** Sweeps between two looks at the change, which all ranks must have a part in. */
    private static final int SWEEPS_PER_CHECK = 10;
    /** Bound on the work: points times sweeps. */
    private static final double UPDATES_MAX = 4e9;
    private static final int SWEEPS_MAX = 20_000;

    private final int size;
    private final double omega;

    /** @param size inner points along each side, N */
    Laplace(int size) {
        this.size = size;
        // The best factor for this problem (Young 1954).
        omega = 2 / (1 + StrictMath.sin(StrictMath.PI / (size + 1)));
    }

    int size() {
        return size;
    }

    /** Points along each side, with the boundary: N + 2. */
    int width() {
        return size + 2;
    }

    /** Most sweeps, whether the tolerance is reached or not. */
    int sweepsMax() {
        return (int) Math.min(SWEEPS_MAX, Math.max(SWEEPS_PER_CHECK, UPDATES_MAX / size / size));
    }

    /** Whether the ranks look at the change after this many sweeps. */
    boolean checksAfter(int sweeps) {
        return sweeps % SWEEPS_PER_CHECK == 0 || sweeps == sweepsMax();
    }

    /** The new value of a point. The one place where arithmetic is done, always in this order. */
    double relax(double old, double above, double below, double left, double right) {
        return old + omega * (0.25 * (above + below + left + right) - old);
    }

    /** The value at the start: the solution on the boundary, 0 inside. */
    double initial(int row, int column) {
        boolean inside = row >= 1 && row <= size && column >= 1 && column <= size;
        return inside ? 0 : solution(row, column);
    }

    /** The exact solution of the differential equation. */
    double solution(int row, int column) {
        double x = (double) column / (size + 1);
        double y = (double) row / (size + 1);
        return StrictMath.sin(StrictMath.PI * x) * StrictMath.sinh(StrictMath.PI * y) / StrictMath.sinh(StrictMath.PI);
    }

    /** How far the exact solution of the difference equation may be from that of the differential equation: O(h^2). */
    double errorMax() {
        double h = 1.0 / (size + 1);
        return h * h;
    }
}
