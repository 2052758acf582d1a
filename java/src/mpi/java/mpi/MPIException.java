package mpi;

/**
 * The failure of a call of this package. It is unchecked, as in MPJ Express; programs for mpiJava, where it
 * is checked, compile as well.
 */
public class MPIException extends ErrorFace {
    private static final long serialVersionUID = 1L;

    /** One of the constants {@code MPI.ERR_*}. */
    private final int errorClass;

    /** Makes an exception without text, of class {@link MPI#ERR_OTHER}. */
    public MPIException() {
        errorClass = MPI.ERR_OTHER;
    }

    /**
     * Makes an exception of class {@link MPI#ERR_OTHER}.
     *
     * @param text the reason
     */
    public MPIException(String text) {
        this(MPI.ERR_OTHER, text, null);
    }

    /**
     * Makes an exception of class {@link MPI#ERR_OTHER} with the text of its cause.
     *
     * @param cause the cause
     */
    public MPIException(Throwable cause) {
        super(cause);
        errorClass = MPI.ERR_OTHER;
    }

    /**
     * Makes an exception of class {@link MPI#ERR_OTHER}.
     *
     * @param text the reason
     * @param cause the cause
     */
    public MPIException(String text, Throwable cause) {
        this(MPI.ERR_OTHER, text, cause);
    }

    MPIException(int errorClass, String text, Throwable cause) {
        super(text, cause);
        this.errorClass = errorClass;
    }

    /**
     * Returns the class of the error (MPI-1.1, section 7.3).
     *
     * @return one of the constants {@code MPI.ERR_*}
     */
    public int getErrorClass() {
        return errorClass;
    }
}
