package mpi;

/**
 * The operation of a reduction (MPI-1.1, section 4.9): a constant of {@link MPI}, or a function of the
 * program.
 */
public class Op {
    /** Code of an operation of the program. */
    private static final int USER = -1;

    /** Code of a predefined operation, 1 for {@link MPI#MAX} to 12 for {@link MPI#MINLOC}; else -1. */
    public final int opCode;

    /** The function of the program; null for a predefined operation. */
    final User_function function;
    /** Whether operands may be exchanged. */
    final boolean isCommutative;

    private final String name;
    private volatile boolean isFreed;

    /**
     * Makes an operation of an associative function.
     *
     * @param function the function
     * @param commute whether the ranks may be combined in any order; false combines them in rank order
     * @throws MPIException if the function is null
     */
    public Op(User_function function, boolean commute) throws MPIException {
        if (function == null) {
            throw MPI.raised(new MPIException(MPI.ERR_OP, "the function of the operation is null", null));
        }
        this.opCode = USER;
        this.function = function;
        this.isCommutative = commute;
        this.name = "an operation of the program";
    }

    /** Makes a predefined operation. */
    Op(int opCode, String name) {
        this.opCode = opCode;
        this.function = null;
        this.isCommutative = true;
        this.name = name;
    }

    /** Returns whether a function of the program combines the vectors. */
    final boolean isUser() {
        return function != null;
    }

    /** Returns the code of a predefined operation in native code. */
    final int nativeCode() {
        return opCode - 1;
    }

    /** Frees the operation. Only {@link #Is_null} notices. */
    public void free() {
        isFreed = true;
    }

    /**
     * Returns whether the operation was freed.
     *
     * @return whether {@link #free} was called
     */
    public boolean Is_null() {
        return isFreed;
    }

    @Override
    public String toString() {
        return name;
    }
}
