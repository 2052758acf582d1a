package mpjdev.tools;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import mpi.Intracomm;
import mpi.MPI;
import mpjdev.Comm;

/** Round trips from array to array, through package mpi. */
final class MpiTrips extends Work.WithArray {
    /** The communicators of both packages are the same, so that they take turns in one job. */
    private static final Map<Comm, Intracomm> SAME = new ConcurrentHashMap<>();

    private final Intracomm comm;

    MpiTrips(Comm world, int octets) {
        super(world, octets);
        comm = SAME.computeIfAbsent(world, MpiTrips::of);
    }

    /** A program has one of both packages, so neither makes a communicator of the other. */
    private static Intracomm of(Comm world) {
        try {
            Method handle = Comm.class.getDeclaredMethod("handle");
            Constructor<Intracomm> made = Intracomm.class.getDeclaredConstructor(long.class);
            handle.setAccessible(true);
            made.setAccessible(true);
            return made.newInstance(handle.invoke(world));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    void run(long times) {
        int n = array.length;
        for (long i = 0; i < times && other >= 0; i++) {
            if (me == 0) {
                comm.Send(array, 0, n, MPI.DOUBLE, 1, TAG);
            }
            comm.Recv(array, 0, n, MPI.DOUBLE, other, TAG);
            if (me == 1) {
                comm.Send(array, 0, n, MPI.DOUBLE, 0, TAG);
            }
        }
    }
}
