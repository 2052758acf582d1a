package mpjdev;

import mpjdev.core.NativeFailure;

/** Conversion of native failures to the exceptions of this package. */
final class Errors {
    private Errors() {}

    /** Returns the exception of a write method. */
    static RuntimeException write(NativeFailure f) {
        if (f.code() == NativeFailure.OVERFLOW) {
            return new BufferOverflowException(f.getMessage());
        }
        return unexpected(f);
    }

    /** Returns the exception of a read method. */
    static BufferReadException read(NativeFailure f) {
        switch (f.code()) {
            case NativeFailure.TYPE_MISMATCH:
                return new TypeMismatchException(f.getMessage());
            case NativeFailure.SIZE_MISMATCH:
                return new SectionSizeMismatchException(f.getMessage());
            case NativeFailure.END_OF_SECTIONS:
            case NativeFailure.DAMAGED:
            case NativeFailure.TRUNCATED:
                return new BufferReadException(f.getMessage());
            default:
                throw unexpected(f);
        }
    }

    /** Returns the exception of an operation on a communicator or a request. */
    static RuntimeException comm(NativeFailure f) {
        String text = f.getMessage();
        switch (f.code()) {
            case NativeFailure.TRUNCATED:
                return new TruncationException(text);
            case NativeFailure.TYPE_MISMATCH:
                return new ContentMismatchException(text);
            case NativeFailure.DAMAGED:
                return new DamagedMessageException(text);
            case NativeFailure.PEER_FAILED:
                return new PeerFailedException(text, f.rank());
            case NativeFailure.TIMED_OUT:
                return new TimedOutException(text);
            case NativeFailure.INTERRUPTED:
                return new InterruptedOperationException(text);
            case NativeFailure.CANCELLED:
                return new CancelledException(text);
            case NativeFailure.NOT_INITIALIZED:
                return new NotInitializedException(text);
            case NativeFailure.BAD_ARGUMENT:
            case NativeFailure.BAD_GROUP:
                return new BadArgumentException(text);
            case NativeFailure.UNDELIVERED:
                return new UndeliveredException(text, f.rank());
            case NativeFailure.ABANDONED:
                return new CollectiveAbandonedException(text, f.rank());
            case NativeFailure.OPERATION_FAILED:
                return new CollectiveFailedException(text, f.rank());
            default:
                return unexpected(f);
        }
    }

    /** Returns the exception of the start or the end of a rank. */
    static RuntimeException rank(RuntimeException e) {
        return e instanceof NativeFailure ? comm((NativeFailure) e) : e;
    }

    private static RuntimeException unexpected(NativeFailure f) {
        return new IllegalStateException("failure " + f.code() + ": " + f.getMessage());
    }
}
