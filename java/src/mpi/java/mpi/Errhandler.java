package mpi;

import java.util.stream.Stream;

/**
 * The handling of failed calls of a communicator (MPI-1.1, section 7.2): {@link MPI#ERRORS_RETURN} or
 * {@link MPI#ERRORS_ARE_FATAL}.
 */
public final class Errhandler {
    private static final String OURS = Errhandler.class.getPackageName();

    private final String name;
    private final boolean isFatal;

    Errhandler(String name, boolean isFatal) {
        this.name = name;
        this.isFatal = isFatal;
    }

    /** Returns the exception of a failed call, or ends the job. */
    MPIException handle(MPIException failure) {
        if (isFatal) {
            Comm.end(failure.getErrorClass(), call() + " has failed: " + failure.getMessage() + " (" + this + ")");
        }
        return failure;
    }

    /** Returns the name of the public method that the program has called. */
    private static String call() {
        StackWalker walker = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);
        return walker.walk(frames -> frames.dropWhile(frame -> frame.getDeclaringClass() == Errhandler.class)
                .takeWhile(frame -> frame.getDeclaringClass().getPackageName().equals(OURS))
                .filter(frame -> isPublic(frame.getDeclaringClass()))
                .reduce((inner, outer) -> outer)
                .map(StackWalker.StackFrame::getMethodName)
                .orElse("a call"));
    }

    private static boolean isPublic(Class<?> declaring) {
        return Stream.of(CommCore.class, Request.class, Status.class, Datatype.class, Group.class, MPI.class)
                .anyMatch(ours -> ours.isAssignableFrom(declaring));
    }

    @Override
    public String toString() {
        return "MPI." + name;
    }
}
