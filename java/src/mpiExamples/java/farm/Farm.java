package farm;

import java.util.Arrays;
import mpi.Intracomm;
import mpi.MPI;
import mpi.MPIException;
import mpi.Status;

/**
 * The first rank gives tasks, which are objects, to the others. A worker gets its next task when it has
 * returned the result of the one before, so a slow worker gets fewer. The tag of a message is the number of
 * its task.
 */
public final class Farm {
    private static final int TASKS = 100;
    private static final int NUMBERS = 2000;
    /** Tag of the message that ends a worker. */
    private static final int STOP = TASKS;

    private Farm() {}

    /**
     * Runs one rank.
     *
     * @param args arguments of the program
     * @throws MPIException if a call fails
     */
    public static void main(String[] args) throws MPIException {
        MPI.Init(args);
        Intracomm world = MPI.COMM_WORLD;
        if (world.Size() == 1) {
            System.err.println("Farm needs a master and a worker: two ranks or more");
            world.Abort(1);
        }
        if (world.Rank() == 0) {
            check(master(world), world);
        } else {
            work(world);
        }
        MPI.Finalize();
    }

    /** Gives out all tasks. Returns their results in the order of the tasks. */
    private static int[][] master(Intracomm world) throws MPIException {
        int[][] results = new int[TASKS][];
        Object[] message = new Object[1];
        int given = 0;
        for (int worker = 1; worker < world.Size(); worker++) {
            give(world, worker, given++);
        }
        for (int done = 0; done < TASKS; done++) {
            Status status = world.Recv(message, 0, 1, MPI.OBJECT, MPI.ANY_SOURCE, MPI.ANY_TAG);
            results[status.tag] = (int[]) message[0];
            give(world, status.source, given++);
        }
        return results;
    }

    /** Sends a task, or the end behind the last one. */
    private static void give(Intracomm world, int worker, int task) throws MPIException {
        if (task < TASKS) {
            Object[] message = {new Range(task * NUMBERS, (task + 1) * NUMBERS)};
            world.Send(message, 0, 1, MPI.OBJECT, worker, task);
        } else {
            world.Send(new Object[0], 0, 0, MPI.OBJECT, worker, STOP);
        }
    }

    private static void work(Intracomm world) throws MPIException {
        Object[] message = new Object[1];
        Status status = world.Recv(message, 0, 1, MPI.OBJECT, 0, MPI.ANY_TAG);
        while (status.tag != STOP) {
            Object[] result = {((Range) message[0]).primes()};
            world.Send(result, 0, 1, MPI.OBJECT, 0, status.tag);
            status = world.Recv(message, 0, 1, MPI.OBJECT, 0, MPI.ANY_TAG);
        }
    }

    private static void check(int[][] results, Intracomm world) {
        int[] found = Arrays.stream(results).flatMapToInt(Arrays::stream).toArray();
        boolean isSame = Arrays.equals(new Range(0, TASKS * NUMBERS).primes(), found);
        System.out.println(found.length + " primes below " + TASKS * NUMBERS + ", from " + TASKS + " tasks at "
                + (world.Size() - 1) + " workers: " + (isSame ? "right" : "WRONG"));
        if (!isSame) {
            world.Abort(1);
        }
    }
}
