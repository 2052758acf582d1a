package mpi;

import mpjdev.core.NativeFailure;

/** Conversion of failures below this package to its exceptions. Only a failed call loads this class. */
final class Failures {
    private Failures() {}

    /**
     * Returns the exception of a failed call that moves a message.
     *
     * @param thrown what was thrown below
     * @param datatype datatype of the call
     * @param count count of the call
     * @param tag tag of the call; 0 stands for the wildcard of a receive
     */
    static MPIException ofMessage(RuntimeException thrown, Datatype datatype, int count, int tag) {
        if (thrown instanceof NullPointerException && datatype == null) {
            return new MPIException(MPI.ERR_TYPE, "the datatype is null", null);
        }
        if (thrown instanceof ArrayIndexOutOfBoundsException && count < 0) {
            return new MPIException(MPI.ERR_COUNT, "the count " + count + " is negative", thrown);
        }
        if (isBadArgument(thrown) && tag < 0) {
            return new MPIException(MPI.ERR_TAG, "the tag " + tag + " is negative", thrown);
        }
        return of(thrown);
    }

    /**
     * Returns the exception of a failed call that moves data between all ranks.
     *
     * @param thrown what was thrown below
     * @param datatype datatype of the call
     * @param count count of the call
     */
    static MPIException ofCollective(RuntimeException thrown, Datatype datatype, int count) {
        if (isBadArgument(thrown)) {
            return new MPIException(MPI.ERR_ROOT, "the root is no rank: " + thrown.getMessage(), thrown);
        }
        return ofMessage(thrown, datatype, count, 0);
    }

    /** Returns the exception of a failed reduction; arguments as for {@link #ofCollective}. */
    static MPIException ofReduction(RuntimeException thrown, Datatype datatype, int count) {
        if (thrown instanceof IllegalArgumentException && count >= 0) {
            return new MPIException(MPI.ERR_OP, thrown.getMessage(), thrown);
        }
        return ofCollective(thrown, datatype, count);
    }

    private static boolean isBadArgument(RuntimeException thrown) {
        return thrown instanceof NativeFailure && ((NativeFailure) thrown).code() == NativeFailure.BAD_ARGUMENT;
    }

    /** Returns the exception of any failed call. */
    static MPIException of(RuntimeException thrown) {
        if (thrown instanceof MPIException) {
            return (MPIException) thrown;
        }
        return new MPIException(classOf(thrown), thrown.getMessage(), thrown);
    }

    /** Returns the exception of a failed call, whose invalid arguments are of this class. */
    static MPIException of(RuntimeException thrown, int errorClass) {
        return thrown instanceof IllegalArgumentException ? new MPIException(errorClass, thrown.getMessage(), thrown)
                : of(thrown);
    }

    /** Returns an argument that is not null. */
    static <T> T present(T argument, String what) {
        if (argument == null) {
            throw new MPIException(MPI.ERR_ARG, what + " is null", null);
        }
        return argument;
    }

    private static int classOf(RuntimeException thrown) {
        if (thrown instanceof NativeFailure) {
            return classOf(((NativeFailure) thrown).code());
        }
        if (thrown instanceof ArrayIndexOutOfBoundsException) {
            return MPI.ERR_BUFFER;
        }
        if (thrown instanceof IllegalArgumentException) {
            return MPI.ERR_COUNT;
        }
        if (thrown instanceof NullPointerException) {
            return MPI.ERR_ARG;
        }
        // A stale handle: a communicator that was freed, or that an earlier Init has made.
        return thrown instanceof IllegalStateException && MPI.Initialized() ? MPI.ERR_COMM : MPI.ERR_OTHER;
    }

    private static int classOf(int code) {
        switch (code) {
            case NativeFailure.OVERFLOW:
                return MPI.ERR_BUFFER;
            case NativeFailure.TRUNCATED:
                return MPI.ERR_TRUNCATE;
            case NativeFailure.TYPE_MISMATCH:
            case NativeFailure.SIZE_MISMATCH:
                return MPI.ERR_TYPE;
            case NativeFailure.BAD_ARGUMENT:
                return MPI.ERR_RANK;
            case NativeFailure.BAD_GROUP:
                return MPI.ERR_GROUP;
            case NativeFailure.OPERATION_FAILED:
                return MPI.ERR_OP;
            default:
                return MPI.ERR_OTHER;
        }
    }

    /** Returns the exception for requests that Finalize has found. */
    static MPIException incomplete(int sends, int receives, RuntimeException cause) {
        return new MPIException(MPI.ERR_REQUEST, "requests are not complete at MPI.Finalize: " + sends + " sends, "
                + receives + " receives", cause);
    }

    /** Returns the exception for a buffer that is null although it has to hold elements. */
    static MPIException noBuffer(int count) {
        return new MPIException(MPI.ERR_BUFFER, "the buffer is null, and the count is " + count, null);
    }

    /** Returns the exception for a buffer that is not an array of the datatype's elements. */
    static MPIException wrongBuffer(Object buf, Datatype datatype) {
        String text = "a buffer of " + datatype + " is a " + datatype.component() + "[], not a "
                + buf.getClass().getTypeName();
        boolean hasRows = buf instanceof Object[] && buf.getClass().getComponentType().isArray();
        return new MPIException(MPI.ERR_TYPE, hasRows ? text + ": send its rows one by one" : text, null);
    }
}
