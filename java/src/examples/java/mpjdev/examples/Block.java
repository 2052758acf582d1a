package mpjdev.examples;

import mpjdev.examples.Decomposition.Part;

/**
 * The points of one rank, with a rim of one point around them: copies of the neighbours' points, or the
 * boundary.
 *
 * <p>Row by row in one array, {@link #width} points each.
 */
final class Block {
    private final Laplace problem;
    private final Part part;
    private final int width;
    private final double[] cells;

    Block(Laplace problem, Part part) {
        this.problem = problem;
        this.part = part;
        width = part.columns() + 2;
        cells = new double[(part.rows() + 2) * width];
        for (int i = 0; i < cells.length; i++) {
            cells[i] = problem.initial(part.row() - 1 + i / width, part.column() - 1 + i % width);
        }
    }

    double[] cells() {
        return cells;
    }

    int rows() {
        return part.rows();
    }

    int columns() {
        return part.columns();
    }

    /** Elements from a point to the one below. */
    int width() {
        return width;
    }

    /**
     * Returns the index of a point in {@link #cells}; the rim is row 0, column 0, row rows + 1, column
     * columns + 1.
     */
    int at(int row, int column) {
        return row * width + column;
    }

    /** Computes new values of all points of a colour and returns the largest change. */
    double sweep(int colour) {
        double change = 0;
        for (int row = 1; row <= part.rows(); row++) {
            // The row and column in the whole grid determine the colour.
            int first = 1 + (part.row() + row - 1 + part.column() + colour) % 2;
            int end = at(row, part.columns());
            for (int i = at(row, first); i <= end; i += 2) {
                double old = cells[i];
                double now = problem.relax(old, cells[i - width], cells[i + width], cells[i - 1], cells[i + 1]);
                cells[i] = now;
                change = Math.max(change, Math.abs(now - old));
            }
        }
        return change;
    }
}
