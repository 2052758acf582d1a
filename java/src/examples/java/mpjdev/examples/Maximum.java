package mpjdev.examples;

import mpjdev.BufferReadException;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.Type;
import mpjdev.WriteBuffer;
import mpjdev.examples.Traffic.Kind;

/** The maximum over one number per rank, sent to all ranks: up a binary tree of ranks and down again. */
final class Maximum implements AutoCloseable {
    private static final int UP = 0;
    private static final int DOWN = 1;
    private static final int CAPACITY = (int) WriteBuffer.requiredCapacity(Type.DOUBLE, 1);

    private final Comm comm;
    private final Traffic traffic;
    private final WriteBuffer out = new WriteBuffer(CAPACITY);
    private final ReadBuffer in = new ReadBuffer(CAPACITY);
    private final double[] number = new double[1];

    /** Makes the tree. Collective over {@code world}. */
    Maximum(Comm world, Traffic traffic) {
        comm = world.dup();
        this.traffic = traffic;
    }

    /** Returns the maximum over all ranks. Collective; blocks. */
    double of(double own) throws BufferReadException {
        int left = 2 * comm.id() + 1;
        int end = Math.min(left + 2, comm.size());
        double maximum = own;
        for (int child = left; child < end; child++) {
            maximum = Math.max(maximum, receive(child, UP));
        }
        if (comm.id() > 0) {
            int parent = (comm.id() - 1) / 2;
            send(maximum, parent, UP);
            maximum = receive(parent, DOWN);
        }
        for (int child = left; child < end; child++) {
            send(maximum, child, DOWN);
        }
        return maximum;
    }

    private void send(double value, int dest, int tag) {
        number[0] = value;
        out.clear();
        out.write(number, 0, 1);
        comm.send(out, dest, tag);
        traffic.sent(Kind.MAXIMUM, Traffic.HEADERS + CAPACITY);
    }

    private double receive(int source, int tag) throws BufferReadException {
        comm.recv(in, source, tag);
        in.read(number, 0, 1);
        traffic.arrivedAsOne(Kind.MAXIMUM);
        return number[0];
    }

    @Override
    public void close() {
        out.close();
        in.close();
        comm.free();
    }
}
