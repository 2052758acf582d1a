package mpjdev;

import mpjdev.core.Failure;

/** Makes the engine's failures this package's exceptions. */
final class Errors {
    private Errors() {}

    /** What a write method throws. */
    static RuntimeException write(Failure f) {
        if (f.code() == Failure.OVERFLOW) {
            return new BufferOverflowException(f.getMessage());
        }
        return unexpected(f);
    }

    /** What a read method throws. */
    static BufferReadException read(Failure f) {
        switch (f.code()) {
            case Failure.TYPE_MISMATCH:
                return new TypeMismatchException(f.getMessage());
            case Failure.SIZE_MISMATCH:
                return new SectionSizeMismatchException(f.getMessage());
            case Failure.END_OF_SECTIONS:
            case Failure.DAMAGED:
            case Failure.TRUNCATED:
                return new BufferReadException(f.getMessage());
            default:
                throw unexpected(f);
        }
    }

    /** What an operation on a communicator or a request throws. */
    static RuntimeException comm(Failure f) {
        String text = f.getMessage();
        switch (f.code()) {
            case Failure.TRUNCATED:
                return new TruncationException(text);
            case Failure.DAMAGED:
                return new DamagedMessageException(text);
            case Failure.PEER_FAILED:
                return new PeerFailedException(text, f.rank());
            case Failure.TIMED_OUT:
                return new TimedOutException(text);
            case Failure.INTERRUPTED:
                return new InterruptedOperationException(text);
            case Failure.CANCELLED:
                return new CancelledException(text);
            case Failure.NOT_INITIALIZED:
                return new NotInitializedException(text);
            case Failure.BAD_ARGUMENT:
                return new BadArgumentException(text);
            case Failure.UNDELIVERED:
                return new UndeliveredException(text, f.rank());
            case Failure.ABANDONED:
                return new CollectiveAbandonedException(text, f.rank());
            default:
                return unexpected(f);
        }
    }

    private static RuntimeException unexpected(Failure f) {
        return new IllegalStateException("failure " + f.code() + ": " + f.getMessage());
    }
}
