package mpjdev.examples;

/**
 * The sequential solver: one thread, one array, no message. Its result is the reference for that of the
 * ranks.
 */
final class SequentialSolver {
    private SequentialSolver() {}

    static Solution solve(Laplace problem, Progress progress) {
        long begun = System.nanoTime();
        int width = problem.width();
        double[] values = new double[width * width];
        for (int i = 0; i < values.length; i++) {
            values[i] = problem.initial(i / width, i % width);
        }
        int sweeps = 0;
        double change = Double.POSITIVE_INFINITY;
        while (change > Laplace.TOLERANCE && sweeps < problem.sweepsMax()) {
            double now = Math.max(sweep(problem, values, Laplace.RED), sweep(problem, values, Laplace.BLACK));
            sweeps++;
            if (problem.checksAfter(sweeps)) {
                change = now;
                progress.sweeps("sequential", sweeps, change);
            }
        }
        progress.end();
        return new Solution(values, sweeps, change, System.nanoTime() - begun);
    }

    private static double sweep(Laplace problem, double[] values, int colour) {
        int width = problem.width();
        double change = 0;
        for (int row = 1; row <= problem.size(); row++) {
            for (int column = 1 + (row + 1 + colour) % 2; column <= problem.size(); column += 2) {
                int i = row * width + column;
                double old = values[i];
                double now = problem.relax(old, values[i - width], values[i + width], values[i - 1], values[i + 1]);
                values[i] = now;
                change = Math.max(change, Math.abs(now - old));
            }
        }
        return change;
    }
}
