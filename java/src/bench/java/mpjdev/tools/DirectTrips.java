package mpjdev.tools;

import mpjdev.Comm;

/** There and back from array to array, without a buffer. */
final class DirectTrips extends Work.WithArray {
    DirectTrips(Comm world, int octets) {
        super(world, octets);
    }

    @Override
    void run(long times) {
        int n = array.length;
        for (long i = 0; i < times && other >= 0; i++) {
            if (me == 0) {
                world.send(array, 0, n, 1, TAG);
            }
            world.recv(array, 0, n, other, TAG);
            if (me == 1) {
                world.send(array, 0, n, 0, TAG);
            }
        }
    }
}
