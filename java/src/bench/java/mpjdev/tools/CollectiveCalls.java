package mpjdev.tools;

import java.util.Arrays;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.Op;
import mpi.User_function;

/**
 * A collective call of package mpi, timed at each rank.
 *
 * <p>Before each call the ranks meet in a barrier, which is not timed. {@code collectives.c} does the same in
 * C. It uses package mpi alone, so that it also runs with another one.
 */
final class CollectiveCalls {
    private static final int ROOT = 0;
    /** Limit of the calls of a median, as in {@code collectives.c}. */
    private static final int TIMED_MAX = 1 << 16;

    /** A call with two arrays of doubles. */
    private interface Call {
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
    private final long[] times = new long[TIMED_MAX];
    private long nanos;
    private double extra;

    private CollectiveCalls(Intracomm comm, Call call, int count, int blocks) {
        this.comm = comm;
        this.call = call;
        this.count = count;
        from = new double[count * blocks];
        to = new double[count * blocks];
        Arrays.fill(from, 1);
    }

    /**
     * The calls of a word. Throws IllegalArgumentException if no call has it.
     *
     * @param octets octets of a rank, or of a pair in {@code Alltoall}
     */
    static CollectiveCalls of(String word, Intracomm comm, int octets) {
        int size = comm.Size();
        int count = octets / Double.BYTES;
        int[] counts = new int[size];
        Arrays.fill(counts, count);
        return switch (word) {
            case "mpi-barrier" -> new CollectiveCalls(comm, (all, from, to, n) -> all.Barrier(), 0, 1);
            case "mpi-bcast" -> new CollectiveCalls(comm,
                    (all, from, to, n) -> all.Bcast(from, 0, n, MPI.DOUBLE, ROOT), count, 1);
            case "mpi-allreduce", "mpi-allreduce-garbage" -> allreduce(comm, count, MPI.SUM);
            case "mpi-allreduce-user" -> allreduce(comm, count, new Op(new Sum(), true));
            case "mpi-reduce" -> new CollectiveCalls(comm,
                    (all, from, to, n) -> all.Reduce(from, 0, to, 0, n, MPI.DOUBLE, MPI.SUM, ROOT), count, 1);
            case "mpi-reduce-scatter" -> new CollectiveCalls(comm,
                    (all, from, to, n) -> all.Reduce_scatter(from, 0, to, 0, counts, MPI.DOUBLE, MPI.SUM), count, size);
            case "mpi-scan" -> new CollectiveCalls(comm,
                    (all, from, to, n) -> all.Scan(from, 0, to, 0, n, MPI.DOUBLE, MPI.SUM), count, 1);
            case "mpi-alltoall" -> new CollectiveCalls(comm,
                    (all, from, to, n) -> all.Alltoall(from, 0, n, MPI.DOUBLE, to, 0, n, MPI.DOUBLE), count, size);
            case "mpi-allgather" -> new CollectiveCalls(comm,
                    (all, from, to, n) -> all.Allgather(from, 0, n, MPI.DOUBLE, to, 0, n, MPI.DOUBLE), count, size);
            case "mpi-gather" -> new CollectiveCalls(comm,
                    (all, from, to, n) -> all.Gather(from, 0, n, MPI.DOUBLE, to, 0, n, MPI.DOUBLE, ROOT), count, size);
            case "mpi-scatter" -> new CollectiveCalls(comm,
                    (all, from, to, n) -> all.Scatter(from, 0, n, MPI.DOUBLE, to, 0, n, MPI.DOUBLE, ROOT), count, size);
            default -> throw new IllegalArgumentException(word + " is not a collective call");
        };
    }

    private static CollectiveCalls allreduce(Intracomm comm, int count, Op op) {
        return new CollectiveCalls(comm, (all, from, to, n) -> all.Allreduce(from, 0, to, 0, n, MPI.DOUBLE, op), count, 1);
    }

    /** Makes calls and times each. */
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

    /** Makes calls without a barrier and a clock. */
    void runPlainly(long calls) {
        for (long i = 0; i < calls; i++) {
            call.make(comm, from, to, count);
        }
    }

    /** Nanoseconds of the last run. */
    long nanos() {
        return nanos;
    }

    /** The median over the calls of the last run, multiplied by their number. */
    double extra() {
        return extra;
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
}
