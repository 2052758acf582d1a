package mpjdev.tools;

import mpjdev.Comm;

/** Round trips from buffer to buffer: send and receive of a written message. */
final class BufferTrips extends Work.WithArray {
    BufferTrips(Comm world, int octets) {
        super(world, octets);
        write();
    }

    @Override
    void run(long times) {
        for (long i = 0; i < times && other >= 0; i++) {
            if (me == 0) {
                world.send(out, 1, TAG);
            }
            world.recv(in, other, TAG);
            if (me == 1) {
                world.send(out, 0, TAG);
            }
        }
    }
}
