package mpjdev.tools;

import mpjdev.Buffer;
import mpjdev.Comm;
import mpjdev.Request;
import mpjdev.WriteBuffer;

/** Cases of all ranks. */
final class Rounds {
    /** Placeholder for one hop per rank. */
    static final int PER_TIME = 0;

    private Rounds() {}

    /** One message around a ring, from array to array at each hop. */
    static final class Ring extends Work.WithArray {
        Ring(Comm world, int octets) {
            super(world, octets);
        }

        @Override
        void run(long times) throws Exception {
            int next = (me + 1) % size;
            int before = (me + size - 1) % size;
            for (long i = 0; i < times; i++) {
                if (me == 0) {
                    write();
                    world.send(out, next, TAG);
                }
                world.recv(in, before, TAG);
                in.read(array, 0, array.length);
                if (me != 0) {
                    write();
                    world.send(out, next, TAG);
                }
            }
        }
    }

    /**
     * A message from every rank to every other. Each rank begins with the next rank, so that the messages go
     * to different ranks.
     */
    static final class AllToAll extends Work.WithArray {
        private final Request[] pending;
        private final WriteBuffer[] outs;

        AllToAll(Comm world, int octets) {
            super(world, octets);
            pending = new Request[size - 1];
            outs = new WriteBuffer[size - 1];
            for (int step = 0; step < outs.length; step++) {
                outs[step] = new WriteBuffer(Buffer.SECTION_OVERHEAD + octets);
            }
        }

        @Override
        void run(long times) throws Exception {
            for (long i = 0; i < times; i++) {
                for (int step = 1; step < size; step++) {
                    WriteBuffer to = outs[step - 1];
                    to.clear();
                    to.write(array, 0, array.length);
                    pending[step - 1] = world.isend(to, (me + step) % size, TAG);
                }
                for (int step = 1; step < size; step++) {
                    world.recv(in, (me + size - step) % size, TAG);
                    in.read(array, 0, array.length);
                }
                Request.iwaitall(pending);
            }
        }

        @Override
        public void close() {
            super.close();
            for (WriteBuffer to : outs) {
                to.close();
            }
        }
    }
}
