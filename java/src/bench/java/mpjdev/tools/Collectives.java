package mpjdev.tools;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.MPIException;
import mpi.Op;
import mpi.User_function;

/**
 * Collective calls of package mpi: arguments are seconds a row, then rows as call:number. Rank 0 prints a
 * line of row and microseconds for each: the mean over ranks of the median over calls.
 */
public final class Collectives {
    private static final int VECTOR = 16 << 20;
    private static final int LEAST = 5;
    private static final int MOST = 1_000_000;
    private static final int FIRST = 10;
    private static final double NANOS = 1e9;

    private final Intracomm world = MPI.COMM_WORLD;
    private final int rank = world.Rank();
    private final int size = world.Size();
    private final byte[] from = new byte[VECTOR];
    private final byte[] to = new byte[VECTOR];
    private final double[] vector = new double[VECTOR / Double.BYTES];
    private final double[] result = new double[VECTOR / Double.BYTES];
    private final Op function = new Op(new Sum(), true);

    private Collectives() throws MPIException {}

    /** The sum of doubles as a program would write it. */
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

    /** A row. */
    private interface Row {
        void call() throws MPIException;
    }

    /**
     * Measures rows.
     *
     * @param args seconds, and rows
     * @throws MPIException if a call fails
     */
    public static void main(String[] args) throws MPIException {
        String[] own = MPI.Init(args);
        Collectives collectives = new Collectives();
        for (String row : Arrays.asList(own).subList(1, own.length)) {
            collectives.measure(row, Double.parseDouble(own[0]));
        }
        MPI.Finalize();
    }

    /** Returns a call; n is a number of doubles for allreduce, and of octets of a rank otherwise. */
    private Row row(String name, int n) {
        int[] counts = new int[size];
        Arrays.fill(counts, n / Double.BYTES);
        switch (name) {
            case "barrier":
                return world::Barrier;
            case "bcast":
                return () -> world.Bcast(from, 0, n, MPI.BYTE, 0);
            case "allreduce":
            case "garbage":
                return () -> world.Allreduce(vector, 0, result, 0, n, MPI.DOUBLE, MPI.SUM);
            case "function":
                return () -> world.Allreduce(vector, 0, result, 0, n, MPI.DOUBLE, function);
            case "alltoall":
                return () -> world.Alltoall(from, 0, n, MPI.BYTE, to, 0, n, MPI.BYTE);
            case "allgather":
                return () -> world.Allgather(from, 0, n, MPI.BYTE, to, 0, n, MPI.BYTE);
            case "gather":
                return () -> world.Gather(from, 0, n, MPI.BYTE, to, 0, n, MPI.BYTE, 0);
            case "scatter":
                return () -> world.Scatter(from, 0, n, MPI.BYTE, to, 0, n, MPI.BYTE, 0);
            case "scan":
                return () -> world.Scan(vector, 0, result, 0, n / Double.BYTES, MPI.DOUBLE, MPI.SUM);
            case "reduce_scatter":
                return () -> world.Reduce_scatter(vector, 0, result, 0, counts, MPI.DOUBLE, MPI.SUM);
            default:
                throw new IllegalArgumentException("no row " + name);
        }
    }

    private void measure(String text, double seconds) throws MPIException {
        String[] words = text.split(":");
        Row row = row(words[0], Integer.parseInt(words[1]));
        double nanos = warmUp(row, FIRST);
        nanos = warmUp(row, callsIn(seconds / 2, nanos));
        int times = callsIn(seconds, nanos);
        double own = words[0].equals("garbage") ? garbage(row, times) : median(row, times);
        double[] sum = new double[1];
        world.Reduce(new double[] {own}, 0, sum, 0, 1, MPI.DOUBLE, MPI.SUM, 0);
        if (rank == 0) {
            System.out.printf("%s %.3f%n", text, sum[0] / size);
            System.out.flush();
        }
    }

    /** Returns microseconds. */
    private double median(Row row, int times) throws MPIException {
        long[] took = new long[times];
        for (int i = 0; i < times; i++) {
            world.Barrier();
            long begun = System.nanoTime();
            row.call();
            took[i] = System.nanoTime() - begun;
        }
        Arrays.sort(took);
        return took[times / 2] / 1e3;
    }

    /** Returns octets of the heap that a call allocates. */
    private double garbage(Row row, int times) throws MPIException {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < times; i++) {
            row.call();
        }
        return Math.floor((threads.getCurrentThreadAllocatedBytes() - before) / (double) times);
    }

    /** Returns the number of calls that take this time. */
    private int callsIn(double seconds, double nanos) throws MPIException {
        int[] times = {(int) Math.max(LEAST, Math.min(MOST, seconds * NANOS / nanos))};
        world.Bcast(times, 0, 1, MPI.INT, 0);
        return times[0];
    }

    /** Returns the time of one call with the barrier before it. */
    private double warmUp(Row row, int times) throws MPIException {
        long begun = System.nanoTime();
        for (int i = 0; i < times; i++) {
            world.Barrier();
            row.call();
        }
        return (System.nanoTime() - begun) / (double) times;
    }
}
