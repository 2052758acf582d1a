package mpjdev.examples;

import java.util.ArrayList;
import java.util.List;
import mpjdev.Buffer;
import mpjdev.BufferReadException;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.Request;
import mpjdev.Status;
import mpjdev.Type;
import mpjdev.WriteBuffer;
import mpjdev.examples.Decomposition.Side;
import mpjdev.examples.Traffic.Kind;

/**
 * The exchange of the rim of a block: each rank sends the points along its sides and receives those beyond
 * them.
 *
 * <p>A row is contiguous, so it is written and read as a range. A column is every {@code width}-th element,
 * so it is gathered and scattered with that stride. All buffers and index arrays are made once.
 */
final class Halo implements AutoCloseable {
    /** Positions of extents and strides in the index arrays of columns, which have one dimension. */
    private static final int EXTENTS = 0;
    private static final int STRIDES = 1;

    private final Comm comm;
    private final Block block;
    private final Traffic traffic;
    private final List<Link> links = new ArrayList<>();
    private final Request[] receives;

    /** Makes the exchange with its own communicator. Collective over {@code world}. */
    Halo(Comm world, Decomposition decomposition, Block block, Traffic traffic) {
        comm = world.dup();
        this.block = block;
        this.traffic = traffic;
        for (Side side : Side.values()) {
            int rank = decomposition.neighbour(comm.id(), side);
            if (rank >= 0) {
                links.add(new Link(side, rank));
            }
        }
        receives = new Request[links.size()];
    }

    /** Exchanges the points along all sides. Blocks until the rim is up to date. */
    void exchange() throws BufferReadException {
        for (int k = 0; k < receives.length; k++) {
            receives[k] = links.get(k).receive();
        }
        for (Link link : links) {
            link.send();
        }
        // Messages are processed in the order of their arrival; null means that all have arrived.
        for (Status status = Request.iwaitany(receives); status != null; status = Request.iwaitany(receives)) {
            links.get(status.index).unpack();
        }
    }

    @Override
    public void close() {
        for (Link link : links) {
            link.out.close();
            link.in.close();
        }
        comm.free();
    }

    /** One side of the block and the rank beyond it. */
    private final class Link {
        private final Side side;
        private final int rank;
        private final int count;
        private final int[] column = {block.rows(), block.width()};
        private final WriteBuffer out;
        private final ReadBuffer in;

        Link(Side side, int rank) {
            this.side = side;
            this.rank = rank;
            count = side.isRow() ? block.columns() : block.rows();
            int capacity = (int) Buffer.requiredCapacity(Type.DOUBLE, count);
            out = new WriteBuffer(capacity);
            in = new ReadBuffer(capacity);
        }

        Request receive() {
            return comm.irecv(in, rank, side.opposite().ordinal());
        }

        void send() {
            out.clear();
            if (side.isRow()) {
                out.write(block.cells(), block.at(edge(0), 1), count);
            } else {
                out.strGather(block.cells(), block.at(1, edge(0)), 1, EXTENTS, STRIDES, column);
            }
            // The send has captured the message: the buffer is free, and the request is not needed.
            comm.isend(out, rank, side.ordinal());
            traffic.sent(kind(), Traffic.HEADERS + out.capacity());
        }

        void unpack() throws BufferReadException {
            if (side.isRow()) {
                in.read(block.cells(), block.at(edge(1), 1), count);
            } else {
                in.strScatter(block.cells(), block.at(1, edge(1)), 1, EXTENTS, STRIDES, column);
            }
            traffic.arrivedAsOne(kind());
        }

        /**
         * Returns the row or column along this side; {@code beyond} is 0 for that of the block, 1 for that of
         * the rim.
         */
        private int edge(int beyond) {
            return switch (side) {
                case ABOVE, LEFT -> 1 - beyond;
                case BELOW -> block.rows() + beyond;
                case RIGHT -> block.columns() + beyond;
            };
        }

        private Kind kind() {
            return side.isRow() ? Kind.ROWS : Kind.COLUMNS;
        }
    }
}
