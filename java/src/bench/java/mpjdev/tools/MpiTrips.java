package mpjdev.tools;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpjdev.Comm;

/** Round trips from array to array, through package mpi. */
final class MpiTrips extends Work.WithArray {
    /** The communicators of both packages are the same, so that they take turns in one job. */
    private static final Map<Comm, Intracomm> SAME = new ConcurrentHashMap<>();

    /** Columns of the matrix, as in peer.c: the elements of a column lie in different cache lines. */
    private static final int COLUMNS = 8;

    private final Intracomm comm;
    private final int count;
    private final Datatype type;

    private MpiTrips(Comm world, int octets, int elements, int count, Datatype type) {
        super(world, octets, elements);
        this.comm = same(world);
        this.count = count;
        this.type = type;
    }

    /** Trips of a whole array. */
    static MpiTrips whole(Comm world, int octets) {
        int n = octets / Double.BYTES;
        return new MpiTrips(world, octets, n, n, MPI.DOUBLE);
    }

    /** Trips of the first column of a matrix. */
    static MpiTrips column(Comm world, int octets) {
        int n = octets / Double.BYTES;
        return new MpiTrips(world, octets, n * COLUMNS, 1, Datatype.Vector(n, 1, COLUMNS, MPI.DOUBLE));
    }

    /** Trips of all doubles in random order. */
    static MpiTrips indexed(Comm world, int octets) {
        int[] indexes = ShapedTrips.permutation(octets);
        int[] ones = new int[indexes.length];
        Arrays.fill(ones, 1);
        return new MpiTrips(world, octets, indexes.length, 1, Datatype.Indexed(ones, indexes, MPI.DOUBLE));
    }

    /** The communicator of package mpi that is this one. */
    static Intracomm same(Comm world) {
        return SAME.computeIfAbsent(world, MpiTrips::of);
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
        for (long i = 0; i < times && other >= 0; i++) {
            if (me == 0) {
                comm.Send(array, 0, count, type, 1, TAG);
            }
            comm.Recv(array, 0, count, type, other, TAG);
            if (me == 1) {
                comm.Send(array, 0, count, type, 0, TAG);
            }
        }
    }
}
