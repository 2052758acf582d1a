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

    private static RuntimeException unexpected(Failure f) {
        return new IllegalStateException("failure " + f.code() + ": " + f.getMessage());
    }
}
