package mpjdev;

import mpi.MPI;

/** The environment of programs that use this package without package mpi. */
public final class MPJDev {
    /** The communicator of all ranks. */
    public static Comm WORLD;

    private MPJDev() {}

    /**
     * Makes this process a rank as {@link MPI#Init} does, unless it is one.
     *
     * @param args arguments of the program
     * @throws MPJDevException as {@link MPI#Init}
     */
    public static void init(String[] args) {
        if (!MPI.Initialized()) {
            MPI.Init(args);
        }
        WORLD = MPI.COMM_WORLD.mpjdevComm;
    }

    /**
     * Ends this rank as {@link MPI#Finalize} does, unless it has ended.
     *
     * @throws MPJDevException as {@link MPI#Finalize}
     */
    public static void finish() {
        WORLD = null;
        if (MPI.Initialized()) {
            MPI.Finalize();
        }
    }

    /**
     * Returns the octets that a buffer needs for a send.
     *
     * @return 0
     */
    public static int getSendOverhead() {
        return 0;
    }

    /**
     * Returns the octets that a buffer needs for a receive.
     *
     * @return 0
     */
    public static int getRecvOverhead() {
        return 0;
    }
}
