package heat;

/**
 * A rectangle of a plate, with a border of one cell on each side. Beyond the edges of the plate it is cold,
 * but hot above the first row.
 */
final class Plate {
    private static final double HOT = 100;
    /** Part of the difference to its neighbours that a cell takes over in a step. */
    private static final double RATE = 0.2;
    private static final int NEIGHBOURS = 4;

    /** Number of rows. */
    final int rows;
    /** Number of columns. */
    final int columns;
    /** Distance of a cell from the one below it. */
    final int width;

    private double[] cells;
    private double[] next;

    /** Makes a rectangle whose first row is the given one of the plate. */
    Plate(int firstRow, int rows, int columns) {
        this.rows = rows;
        this.columns = columns;
        width = columns + 2;
        cells = new double[(rows + 2) * width];
        if (firstRow == 0) {
            java.util.Arrays.fill(cells, at(-1, 0), at(-1, columns), HOT);
        }
        next = cells.clone();
    }

    /** Returns the temperatures of all cells and of the border, row by row. */
    double[] cells() {
        return cells;
    }

    /** Returns the index of a cell. Rows and columns -1, and those behind the last, are the border. */
    int at(int row, int column) {
        return (row + 1) * width + column + 1;
    }

    /** Computes the temperatures after the next step. */
    void step() {
        for (int row = 0; row < rows; row++) {
            for (int i = at(row, 0); i < at(row, columns); i++) {
                double around = cells[i - width] + cells[i - 1] + cells[i + 1] + cells[i + width];
                next[i] = cells[i] + RATE * (around - NEIGHBOURS * cells[i]);
            }
        }
        // Both arrays have the edges of the plate. The rest of the border comes from the neighbours.
        double[] before = cells;
        cells = next;
        next = before;
    }

    /** Returns the sum of all temperatures. */
    double heat() {
        double sum = 0;
        for (int row = 0; row < rows; row++) {
            for (int i = at(row, 0); i < at(row, columns); i++) {
                sum += cells[i];
            }
        }
        return sum;
    }
}
