package mpjdev;

/**
 * A predefined operation of a reduction (MPI-1.1, section 4.9.2). The constants are in the order of their
 * native codes.
 *
 * <p>MAX to PROD apply to all types but {@code boolean}, the logical and bitwise operations to all but
 * {@code float} and {@code double}.
 */
public enum Op {
    /** Maximum. A number is preferred to a NaN. */
    MAX,
    /** Minimum. A number is preferred to a NaN. */
    MIN,
    /** Sum. */
    SUM,
    /** Product. */
    PROD,
    /** Logical and; of numbers, 0 is false, and true is 1. */
    LAND,
    /** Bitwise and. */
    BAND,
    /** Logical or. */
    LOR,
    /** Bitwise or. */
    BOR,
    /** Logical exclusive or. */
    LXOR,
    /** Bitwise exclusive or. */
    BXOR,
    /** Maximum and its index: elements are pairs of a value and an index. The smaller of equal indices. */
    MAXLOC,
    /** Minimum and its index, in pairs as of {@link #MAXLOC}. */
    MINLOC
}
