package mpi;

/** The superclass of {@link MPIException}. In {@code mpj-compat.jar} it extends that of MPJ Express. */
abstract class ErrorFace extends RuntimeException {
    private static final long serialVersionUID = 1L;

    ErrorFace() {}

    ErrorFace(Throwable cause) {
        super(cause);
    }

    ErrorFace(String text, Throwable cause) {
        super(text, cause);
    }
}
