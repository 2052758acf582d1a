package mpjdev.tools;

import mpi.Intracomm;
import mpi.MPI;
import mpjdev.Comm;
import mpjdev.Request;

/** Windows of messages from rank 0 to rank 1, each with a short answer. */
abstract class Windows extends Work.WithArray {
    /** Placeholder for the messages of a window. */
    static final int PER_TIME = -1;

    private static final int WINDOW = 64;
    /** Limit of the octets of a window, since some contestants have memory for all its messages. */
    private static final int WINDOW_OCTETS = 256 << 20;

    /** Messages of a window. */
    final int window;

    Windows(Comm world, int octets) {
        super(world, octets);
        window = window(octets);
        write();
    }

    /** Messages of a window when each has this length. */
    static int window(int octets) {
        return Math.max(1, Math.min(WINDOW_OCTETS / Math.max(1, octets), WINDOW));
    }

    /** From array to array. */
    static final class Arrays extends Windows {
        Arrays(Comm world, int octets) {
            super(world, octets);
        }

        @Override
        void run(long times) throws Exception {
            int n = array.length;
            for (long i = 0; i < times && other >= 0; i++) {
                if (me == 0) {
                    for (int k = 0; k < window; k++) {
                        out.clear();
                        out.write(array, 0, n);
                        world.send(out, 1, TAG);
                    }
                    world.recv(in, 1, TAG);
                } else {
                    for (int k = 0; k < window; k++) {
                        world.recv(in, 0, TAG);
                        in.read(array, 0, n);
                    }
                    out.clear();
                    world.send(out, 0, TAG);
                }
            }
        }
    }

    /** From array to array, without a buffer. */
    static final class Direct extends Windows {
        Direct(Comm world, int octets) {
            super(world, octets);
        }

        @Override
        void run(long times) {
            int n = array.length;
            for (long i = 0; i < times && other >= 0; i++) {
                if (me == 0) {
                    for (int k = 0; k < window; k++) {
                        world.send(array, 0, n, 1, TAG);
                    }
                    world.recv(array, 0, 0, 1, TAG);
                } else {
                    for (int k = 0; k < window; k++) {
                        world.recv(array, 0, n, 0, TAG);
                    }
                    world.send(array, 0, 0, 0, TAG);
                }
            }
        }
    }

    /** From array to array: all are started, then waited for together. */
    static final class Requests extends Windows {
        private final double[] all;
        private final Request[] started;

        Requests(Comm world, int octets) {
            super(world, octets);
            all = new double[window * array.length];
            started = new Request[window];
        }

        @Override
        void run(long times) {
            int n = array.length;
            for (long i = 0; i < times && other >= 0; i++) {
                for (int k = 0; k < window; k++) {
                    started[k] = me == 0 ? world.isend(all, k * n, n, 1, TAG) : world.irecv(all, k * n, n, 0, TAG);
                }
                Request.iwaitall(started);
                if (me == 0) {
                    world.recv(array, 0, 0, 1, TAG);
                } else {
                    world.send(array, 0, 0, 0, TAG);
                }
            }
        }
    }

    /** As {@link Requests}, through package mpi. */
    static final class Mpi extends Windows {
        private final Intracomm comm;
        private final double[] all;
        private final mpi.Request[] started;

        Mpi(Comm world, int octets) {
            super(world, octets);
            comm = MpiTrips.same(world);
            all = new double[window * array.length];
            started = new mpi.Request[window];
        }

        @Override
        void run(long times) {
            int n = array.length;
            for (long i = 0; i < times && other >= 0; i++) {
                for (int k = 0; k < window; k++) {
                    started[k] = me == 0 ? comm.Isend(all, k * n, n, MPI.DOUBLE, 1, TAG)
                            : comm.Irecv(all, k * n, n, MPI.DOUBLE, 0, TAG);
                }
                mpi.Request.Waitall(started);
                if (me == 0) {
                    comm.Recv(array, 0, 0, MPI.DOUBLE, 1, TAG);
                } else {
                    comm.Send(array, 0, 0, MPI.DOUBLE, 0, TAG);
                }
            }
        }
    }

    /** From buffer to buffer. */
    static final class Buffers extends Windows {
        Buffers(Comm world, int octets) {
            super(world, octets);
            if (me == 1) {
                out.clear();
            }
        }

        @Override
        void run(long times) {
            for (long i = 0; i < times && other >= 0; i++) {
                if (me == 0) {
                    for (int k = 0; k < window; k++) {
                        world.send(out, 1, TAG);
                    }
                    world.recv(in, 1, TAG);
                } else {
                    for (int k = 0; k < window; k++) {
                        world.recv(in, 0, TAG);
                    }
                    world.send(out, 0, TAG);
                }
            }
        }
    }

    /**
     * To a rank that computes without calling mpjdev. Only the time of sending is measured. The second result
     * is the number of sleeps, and so of wake-ups, of the receiver's other threads meanwhile.
     */
    static final class Busy extends Windows {
        /** Computing time. A window is sent in a small part of it. */
        private static final long COMPUTING_NANOS = 200_000;

        Busy(Comm world, int octets) {
            super(world, octets);
        }

        @Override
        void run(long times) throws Exception {
            long sending = 0;
            extra = 0;
            for (long i = 0; i < times && other >= 0; i++) {
                if (me == 0) {
                    world.recv(in, 1, TAG);
                    long begin = System.nanoTime();
                    for (int k = 0; k < window; k++) {
                        world.send(out, 1, TAG);
                    }
                    sending += System.nanoTime() - begin;
                } else {
                    long before = Sleeps.ofOthers();
                    world.send(out, 0, TAG);
                    long begin = System.nanoTime();
                    while (System.nanoTime() - begin < COMPUTING_NANOS) {
                        Thread.onSpinWait();
                    }
                    // The sleeps of a thread that has ended meanwhile are counted before alone.
                    extra += Math.max(0, Sleeps.ofOthers() - before);
                    for (int k = 0; k < window; k++) {
                        world.recv(in, 0, TAG);
                    }
                }
            }
            nanos = sending;
            sendExtra();
        }

        /** Sends the second result of rank 1 to rank 0. */
        private void sendExtra() throws Exception {
            if (me == 1) {
                array[0] = extra;
                extra = 0;
                write();
                world.send(out, 0, TAG);
            } else if (me == 0 && size > 1) {
                world.recv(in, 1, TAG);
                in.read(array, 0, array.length);
                extra = array[0];
            }
        }
    }
}
