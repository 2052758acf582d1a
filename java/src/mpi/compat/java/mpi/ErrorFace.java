package mpi;

/** The superclass of {@link MPIException}. */
abstract class ErrorFace extends mpjdev.MPJDevException {
    private static final long serialVersionUID = 1L;

    ErrorFace() {}

    ErrorFace(Throwable cause) {
        super(cause);
    }

    ErrorFace(String text, Throwable cause) {
        super(text, cause);
    }
}
