package mpjdev.tools;

import java.io.Serializable;
import mpi.Intracomm;
import mpi.MPI;
import mpjdev.Buffer;
import mpjdev.Comm;
import mpjdev.ObjectReadBuffer;
import mpjdev.ObjectWriteBuffer;

/** Round trips with a thousand small objects. */
final class ObjectTrips extends Work {
    static final int COUNT = 1000;

    private final Object[] objects = objects();
    private final ObjectWriteBuffer out = new ObjectWriteBuffer(Buffer.SECTION_OVERHEAD);
    private final ObjectReadBuffer in = new ObjectReadBuffer(Buffer.SECTION_OVERHEAD);

    ObjectTrips(Comm world) {
        super(world);
    }

    /** Typical small object: a few numbers. */
    static final class Small implements Serializable {
        private static final long serialVersionUID = 1;

        final int number;
        final double value;

        Small(int number) {
            this.number = number;
            value = number / 2.0;
        }
    }

    static Object[] objects() {
        Object[] objects = new Object[COUNT];
        for (int i = 0; i < COUNT; i++) {
            objects[i] = new Small(i);
        }
        return objects;
    }

    @Override
    void run(long times) throws Exception {
        Object[] copies = new Object[COUNT];
        for (long i = 0; i < times && other >= 0; i++) {
            if (me == 0) {
                send();
            }
            world.recv(in, other, TAG);
            in.read(copies, 0, COUNT);
            if (me == 1) {
                send();
            }
        }
    }

    /** Round trips of the same objects, through package mpi. */
    static final class OfMpi extends Work {
        private final Object[] objects = objects();
        private final Intracomm comm;

        OfMpi(Comm world) {
            super(world);
            comm = MpiTrips.same(world);
        }

        @Override
        void run(long times) {
            Object[] copies = new Object[COUNT];
            for (long i = 0; i < times && other >= 0; i++) {
                if (me == 0) {
                    comm.Send(objects, 0, COUNT, MPI.OBJECT, other, TAG);
                }
                comm.Recv(copies, 0, COUNT, MPI.OBJECT, other, TAG);
                if (me == 1) {
                    comm.Send(objects, 0, COUNT, MPI.OBJECT, other, TAG);
                }
            }
        }
    }

    private void send() throws Exception {
        out.clear();
        out.write(objects, 0, COUNT);
        world.send(out, other, TAG);
    }

    @Override
    public void close() {
        out.close();
        in.close();
    }
}
