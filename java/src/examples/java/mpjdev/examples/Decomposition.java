package mpjdev.examples;

/**
 * The division of the inner points among the ranks: rows x columns of blocks, as square as the number of
 * ranks allows.
 *
 * <p>A prime number of ranks gives one row of blocks. Sizes need not be divisible: blocks differ by one row
 * or column at most. With too few points, some ranks have an empty block.
 */
final class Decomposition {
    private final int size;
    private final int rows;
    private final int columns;

    private Decomposition(int size, int rows, int columns) {
        this.size = size;
        this.rows = rows;
        this.columns = columns;
    }

    /** Divides size x size points among at most {@code ranks} ranks. */
    static Decomposition of(int ranks, int size) {
        for (int active = ranks; ; active--) {
            for (int rows = (int) Math.sqrt(active); rows >= 1; rows--) {
                if (active % rows == 0 && active / rows <= size) {
                    return new Decomposition(size, rows, active / rows);
                }
            }
        }
    }

    /** Number of blocks below each other. */
    int rows() {
        return rows;
    }

    /** Number of blocks beside each other. */
    int columns() {
        return columns;
    }

    /**
     * The inner points of one rank.
     *
     * @param row first row, numbered from 1
     * @param column first column, numbered from 1
     * @param rows number of rows
     * @param columns number of columns
     */
    record Part(int row, int column, int rows, int columns) {}

    /** Returns the points of a rank, or an empty block for a surplus rank. */
    Part part(int rank) {
        if (rank >= rows * columns) {
            return new Part(1, 1, 0, 0);
        }
        int row = begin(rank / columns, rows);
        int column = begin(rank % columns, columns);
        int rowEnd = begin(rank / columns + 1, rows);
        int columnEnd = begin(rank % columns + 1, columns);
        return new Part(row, column, rowEnd - row, columnEnd - column);
    }

    private int begin(int part, int parts) {
        return 1 + (int) ((long) part * size / parts);
    }

    /** Returns the number of ranks that have points. */
    int active() {
        return rows * columns;
    }

    /** Returns the rank on a side of another, or -1 at the boundary. */
    int neighbour(int rank, Side side) {
        if (rank >= active()) {
            return -1;
        }
        int row = rank / columns + side.down;
        int column = rank % columns + side.right;
        boolean exists = row >= 0 && row < rows && column >= 0 && column < columns;
        return exists ? row * columns + column : -1;
    }

    /** The sides of a block. */
    enum Side {
        ABOVE(-1, 0),
        BELOW(1, 0),
        LEFT(0, -1),
        RIGHT(0, 1);

        private final int down;
        private final int right;

        Side(int down, int right) {
            this.down = down;
            this.right = right;
        }

        boolean isRow() {
            return down != 0;
        }

        Side opposite() {
            return values()[ordinal() ^ 1];
        }
    }
}
