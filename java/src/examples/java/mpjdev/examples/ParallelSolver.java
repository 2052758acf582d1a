package mpjdev.examples;

import mpjdev.Buffer;
import mpjdev.BufferReadException;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.Status;
import mpjdev.Type;
import mpjdev.WriteBuffer;
import mpjdev.examples.Decomposition.Part;
import mpjdev.examples.Traffic.Kind;

/** The parallel solver: the part of one rank. */
final class ParallelSolver {
    private static final int RESULT = 0;

    private final Comm world;
    private final Laplace problem;
    private final Traffic traffic;
    private final Decomposition decomposition;
    private final Block block;

    ParallelSolver(Comm world, Laplace problem, Traffic traffic) {
        this.world = world;
        this.problem = problem;
        this.traffic = traffic;
        decomposition = Decomposition.of(world.size(), problem.size());
        block = new Block(problem, decomposition.part(world.id()));
    }

    /**
     * Solves the problem together with the other ranks. Collective; blocks.
     *
     * @param progress line that rank 0 updates
     * @return the whole solution in rank 0, null in the others
     */
    Solution solve(Progress progress) throws BufferReadException {
        long begun = System.nanoTime();
        int sweeps = 0;
        double change = Double.POSITIVE_INFINITY;
        try (Halo halo = new Halo(world, decomposition, block, traffic);
                Maximum maximum = new Maximum(world, traffic)) {
            while (change > Laplace.TOLERANCE && sweeps < problem.sweepsMax()) {
                double red = block.sweep(Laplace.RED);
                halo.exchange();
                double black = block.sweep(Laplace.BLACK);
                halo.exchange();
                sweeps++;
                if (problem.checksAfter(sweeps)) {
                    change = maximum.of(Math.max(red, black));
                    if (world.id() == 0) {
                        progress.sweeps(world.size() + " ranks", sweeps, change);
                    }
                }
            }
        }
        sendBlock();
        if (world.id() > 0) {
            return null;
        }
        double[] values = receiveBlocks();
        progress.end();
        return new Solution(values, sweeps, change, System.nanoTime() - begun);
    }

    /** Returns extents and strides of a part of an array for {@code strGather} and {@code strScatter}. */
    private static int[] patch(int rows, int columns, int width) {
        return new int[] {rows, columns, width, 1};
    }

    private void sendBlock() {
        if (block.rows() == 0) {
            return;
        }
        int[] patch = patch(block.rows(), block.columns(), block.width());
        int capacity = (int) Buffer.requiredCapacity(Type.DOUBLE, block.rows() * block.columns());
        try (WriteBuffer out = new WriteBuffer(capacity)) {
            out.strGather(block.cells(), block.at(1, 1), 2, 0, 2, patch);
            // Rank 0 also sends to itself, so this send must not wait for the receive.
            world.isend(out, 0, RESULT);
            traffic.sent(Kind.BLOCKS, Traffic.HEADERS + capacity);
        }
    }

    private double[] receiveBlocks() throws BufferReadException {
        int width = problem.width();
        double[] values = new double[width * width];
        for (int i = 0; i < values.length; i++) {
            values[i] = problem.initial(i / width, i % width);
        }
        // The capacity grows if a message needs more.
        try (ReadBuffer in = new ReadBuffer(0)) {
            for (int k = 0; k < decomposition.active(); k++) {
                Status waiting = world.probe(Comm.ANY_SOURCE, RESULT);
                in.ensureCapacity(waiting.size());
                Part part = decomposition.part(world.recv(in, waiting.source, RESULT).source);
                int[] patch = patch(part.rows(), part.columns(), width);
                in.strScatter(values, part.row() * width + part.column(), 2, 0, 2, patch);
                traffic.arrivedAsOne(Kind.BLOCKS);
            }
        }
        return values;
    }
}
