package mpjdev.tools;

import mpjdev.Comm;

/** Round trips from array to array: write, send, receive, read. */
final class ArrayTrips extends Work.WithArray {
    ArrayTrips(Comm world, int octets) {
        super(world, octets);
    }

    @Override
    void run(long times) throws Exception {
        int n = array.length;
        for (long i = 0; i < times && other >= 0; i++) {
            if (me == 0) {
                out.clear();
                out.write(array, 0, n);
                world.send(out, 1, TAG);
            }
            world.recv(in, other, TAG);
            in.read(array, 0, n);
            if (me == 1) {
                out.clear();
                out.write(array, 0, n);
                world.send(out, 0, TAG);
            }
        }
    }
}
