package mpjdev.tools;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.Op;
import mpi.User_function;
import mpjdev.Comm;

/**
 * A collective call of package mpi, timed at each rank.
 *
 * <p>Before each call the ranks meet in a barrier, which is not timed. The second result is the median over
 * the calls of this rank, multiplied by their number. {@code collectives.c} does the same in C.
 */
final class CollectiveCalls extends Work {
    private static final int ROOT = 0;
    /** Limit of the calls of a median, as in {@code collectives.c}. */
    private static final int TIMED_MAX = 1 << 16;

    /** A call with two arrays of doubles. */
    interface Call {
        /**
         * Makes the call.
         *
         * @param comm all ranks
         * @param from array to send; of {@code Bcast} the only one
         * @param to array to receive
         * @param count doubles of a rank, or of a pair
         */
        void make(Intracomm comm, double[] from, double[] to, int count);
    }

    private final Intracomm comm;
    private final Call call;
    private final int count;
    private final double[] from;
    private final double[] to;
    private final long[] times;

    /** Calls of which each array has this number of octets. */
    private CollectiveCalls(Comm world, Call call, int octets, int blocks) {
        super(world);
        this.comm = MpiTrips.same(world);
        this.call = call;
        this.count = octets / Double.BYTES;
        from = new double[count * blocks];
        to = new double[count * blocks];
        times = new long[TIMED_MAX];
        Arrays.fill(from, 1);
    }

    /** Calls with an array of these octets. */
    static CollectiveCalls of(Comm world, int octets, Call call) {
        return new CollectiveCalls(world, call, octets, 1);
    }

    /** Calls with an array of these octets for each rank. */
    static CollectiveCalls ofAll(Comm world, int octets, Call call) {
        return new CollectiveCalls(world, call, octets, world.size());
    }

    static CollectiveCalls barrier(Comm world) {
        return of(world, 0, (comm, from, to, count) -> comm.Barrier());
    }

    static CollectiveCalls bcast(Comm world, int octets) {
        return of(world, octets, (comm, from, to, count) -> comm.Bcast(from, 0, count, MPI.DOUBLE, ROOT));
    }

    static CollectiveCalls allreduce(Comm world, int octets) {
        return of(world, octets, (comm, from, to, count) -> comm.Allreduce(from, 0, to, 0, count, MPI.DOUBLE, MPI.SUM));
    }

    static CollectiveCalls allreduceByUser(Comm world, int octets) {
        Op sum = new Op(new Sum(), true);
        return of(world, octets, (comm, from, to, count) -> comm.Allreduce(from, 0, to, 0, count, MPI.DOUBLE, sum));
    }

    static CollectiveCalls reduce(Comm world, int octets) {
        return of(world, octets, (comm, from, to, count) -> comm.Reduce(from, 0, to, 0, count, MPI.DOUBLE, MPI.SUM, ROOT));
    }

    static CollectiveCalls reduceScatter(Comm world, int octets) {
        int[] counts = new int[world.size()];
        Arrays.fill(counts, octets / Double.BYTES);
        return ofAll(world, octets, (comm, from, to, count) ->
                comm.Reduce_scatter(from, 0, to, 0, counts, MPI.DOUBLE, MPI.SUM));
    }

    static CollectiveCalls scan(Comm world, int octets) {
        return of(world, octets, (comm, from, to, count) -> comm.Scan(from, 0, to, 0, count, MPI.DOUBLE, MPI.SUM));
    }

    static CollectiveCalls alltoall(Comm world, int octets) {
        return ofAll(world, octets, (comm, from, to, count) ->
                comm.Alltoall(from, 0, count, MPI.DOUBLE, to, 0, count, MPI.DOUBLE));
    }

    static CollectiveCalls allgather(Comm world, int octets) {
        return ofAll(world, octets, (comm, from, to, count) ->
                comm.Allgather(from, 0, count, MPI.DOUBLE, to, 0, count, MPI.DOUBLE));
    }

    static CollectiveCalls gather(Comm world, int octets) {
        return ofAll(world, octets, (comm, from, to, count) ->
                comm.Gather(from, 0, count, MPI.DOUBLE, to, 0, count, MPI.DOUBLE, ROOT));
    }

    static CollectiveCalls scatter(Comm world, int octets) {
        return ofAll(world, octets, (comm, from, to, count) ->
                comm.Scatter(from, 0, count, MPI.DOUBLE, to, 0, count, MPI.DOUBLE, ROOT));
    }

    @Override
    void run(long calls) {
        long step = (calls + TIMED_MAX - 1) / TIMED_MAX;
        int kept = 0;
        long start = System.nanoTime();
        for (long i = 0; i < calls; i++) {
            comm.Barrier();
            long begin = System.nanoTime();
            call.make(comm, from, to, count);
            long end = System.nanoTime();
            if (i % step == 0) {
                times[kept++] = end - begin;
            }
        }
        nanos = System.nanoTime() - start;
        Arrays.sort(times, 0, kept);
        extra = (times[(kept - 1) / 2] + times[kept / 2]) / 2.0 * calls;
    }

    /** The result of the last call. */
    double[] result() {
        return to;
    }

    /** The sum of doubles, as a function of a program. */
    private static final class Sum extends User_function {
        @Override
        public void Call(Object invec, int inoffset, Object inoutvec, int inoutoffset, int count, Datatype datatype) {
            double[] in = (double[]) invec;
            double[] inout = (double[]) inoutvec;
            for (int i = 0; i < count; i++) {
                inout[inoutoffset + i] += in[inoffset + i];
            }
        }
    }

    /** Octets of Java heap that each rank allocates for a call. The second result is theirs. */
    static final class Garbage extends Work {
        private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        private final CollectiveCalls calls;

        Garbage(CollectiveCalls calls) {
            super(calls.world);
            this.calls = calls;
        }

        @Override
        void run(long times) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (long i = 0; i < times; i++) {
                calls.call.make(calls.comm, calls.from, calls.to, calls.count);
            }
            extra = threads.getCurrentThreadAllocatedBytes() - before;
        }
    }
}
