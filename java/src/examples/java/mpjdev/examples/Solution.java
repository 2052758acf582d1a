package mpjdev.examples;

/**
 * The result of a solver.
 *
 * @param values all (N + 2) x (N + 2) points, row by row
 * @param sweeps number of sweeps
 * @param change largest change of a point in the last sweep
 * @param nanos time in nanoseconds
 */
record Solution(double[] values, int sweeps, double change, long nanos) {
    boolean converged() {
        return change <= Laplace.TOLERANCE;
    }

    /** Returns the number of points whose bits differ. */
    int differences(Solution other) {
        int differences = 0;
        for (int i = 0; i < values.length; i++) {
            if (Double.doubleToRawLongBits(values[i]) != Double.doubleToRawLongBits(other.values[i])) {
                differences++;
            }
        }
        return differences;
    }

    /** Returns the largest distance from the exact solution of the differential equation. */
    double error(Laplace problem) {
        double error = 0;
        for (int row = 0; row < problem.width(); row++) {
            for (int column = 0; column < problem.width(); column++) {
                double value = values[row * problem.width() + column];
                error = Math.max(error, Math.abs(value - problem.solution(row, column)));
            }
        }
        return error;
    }

    /** Returns a checksum. */
    long checksum() {
        long sum = 0;
        for (double value : values) {
            sum = sum * 31 + Double.doubleToRawLongBits(value);
        }
        return sum;
    }
}
