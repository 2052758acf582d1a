package hello;

import mpi.MPI;
import mpi.MPIException;
import mpi.Status;

/** Two ranks: the first sends numbers, the second adds them up and answers. */
public final class Hello {
    private static final int TAG = 7;

    private Hello() {}

    /**
     * Runs one rank.
     *
     * @param args arguments of the program
     * @throws MPIException if a call fails
     */
    public static void main(String[] args) throws MPIException {
        MPI.Init(args);
        int me = MPI.COMM_WORLD.Rank();
        double[] sum = new double[1];
        if (me == 0) {
            int[] numbers = {1, 2, 3, 4};
            MPI.COMM_WORLD.Send(numbers, 0, numbers.length, MPI.INT, 1, TAG);
            MPI.COMM_WORLD.Recv(sum, 0, 1, MPI.DOUBLE, 1, TAG);
            System.out.println("the sum is " + sum[0]);
        } else if (me == 1) {
            int[] numbers = new int[100];
            Status status = MPI.COMM_WORLD.Recv(numbers, 0, numbers.length, MPI.INT, 0, TAG);
            for (int i = 0; i < status.Get_count(MPI.INT); i++) {
                sum[0] += numbers[i];
            }
            MPI.COMM_WORLD.Send(sum, 0, 1, MPI.DOUBLE, 0, TAG);
        }
        MPI.COMM_WORLD.Barrier();
        MPI.Finalize();
    }
}
