package mpjdev.examples;

/**
 * The problem: the Laplace equation on the unit square, N x N inner points, solved by red-black successive
 * over-relaxation (SOR).
 *
 * <p>The boundary has the values of {@code sin(pi x) sinh(pi y) / sinh(pi)}, which solves the equation inside
 * as well, so a result can be checked. Points are numbered from 0 to N + 1 along both sides; 0 and N + 1 are
 * the boundary.
 *
 * <p>A point is red if row + column is even, otherwise black. All four neighbours of a red point are black
 * and vice versa, so the order within a colour has no effect. For every distribution of the points the result
 * is the same to the last bit.
 */
final class Laplace {
    static final int RED = 0;
    static final int BLACK = 1;

    /** Largest change of a point in one sweep of a converged solution. */
    static final double TOLERANCE = 1e-11;

    /** Sweeps between two checks of the change. All ranks take part in a check. */
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

    /** Returns the largest number of sweeps, also without convergence. */
    int sweepsMax() {
        return (int) Math.min(SWEEPS_MAX, Math.max(SWEEPS_PER_CHECK, UPDATES_MAX / size / size));
    }

    /** Returns whether the ranks check the change after {@code sweeps} sweeps. */
    boolean checksAfter(int sweeps) {
        return sweeps % SWEEPS_PER_CHECK == 0 || sweeps == sweepsMax();
    }

    /**
     * Returns the new value of a point. All solvers use this method, so the order of operations is the same.
     */
    double relax(double old, double above, double below, double left, double right) {
        return old + omega * (0.25 * (above + below + left + right) - old);
    }

    /** Returns the initial value: the solution on the boundary, 0 inside. */
    double initial(int row, int column) {
        boolean inside = row >= 1 && row <= size && column >= 1 && column <= size;
        return inside ? 0 : solution(row, column);
    }

    /** Returns the exact solution of the differential equation. */
    double solution(int row, int column) {
        double x = (double) column / (size + 1);
        double y = (double) row / (size + 1);
        return StrictMath.sin(StrictMath.PI * x) * StrictMath.sinh(StrictMath.PI * y) / StrictMath.sinh(StrictMath.PI);
    }

    /**
     * Returns a bound on the distance of the exact solutions of difference and differential equation: O(h^2).
     */
    double errorMax() {
        double h = 1.0 / (size + 1);
        return h * h;
    }
}
