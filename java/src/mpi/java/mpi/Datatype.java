package mpi;

/**
 * The type of the items of a message buffer. Immutable.
 *
 * <p>An item consists of elements of one base type, the component type of the array. The basic datatypes are
 * constants of {@link MPI}: each item of theirs is one element.
 */
public abstract class Datatype {
    /**
     * Code of the base type: 1 to 8 for {@code byte}, {@code char}, {@code short}, {@code boolean},
     * {@code int}, {@code long}, {@code float} and {@code double}, as in MPJ Express.
     */
    public final int baseType;

    /** Type code of the core for the base type. */
    final int element;
    /** Octets of an element. */
    final int elementSize;

    Datatype(int baseType, int elementSize) {
        this.baseType = baseType;
        this.elementSize = elementSize;
        element = baseType - 1;
    }

    /**
     * Returns the code of the base type.
     *
     * @return {@link #baseType}
     */
    public int getType() {
        return baseType;
    }

    /**
     * Returns the octets of an item.
     *
     * @return the number of octets that an item takes in a message
     */
    public final int getByteSize() {
        return Size() * elementSize;
    }

    /**
     * Returns the number of elements of an item.
     *
     * @return the number; 1 for a basic datatype
     */
    public abstract int Size();

    /**
     * Returns the distance between two items of a buffer, {@code Ub() - Lb()}.
     *
     * @return the distance in elements; 1 for a basic datatype
     */
    public abstract int Extent();

    /**
     * Returns the lower bound of an item, relative to its position.
     *
     * @return the bound in elements
     */
    public abstract int Lb();

    /**
     * Returns the upper bound of an item, relative to its position.
     *
     * @return the bound in elements
     */
    public abstract int Ub();

    /** Does nothing, as in MPJ Express: every datatype can be used at once. */
    public void Commit() {}

    /** Does nothing: the garbage collector frees datatypes. */
    public void free() {}

    /**
     * Returns the length of a buffer.
     *
     * @param buf an array of the base type
     * @return its number of elements
     * @throws MPIException if it is anything else
     */
    abstract int lengthOf(Object buf);

    /** Returns an empty array in the place of a null buffer without elements. */
    abstract Object none(int count);

    /** Returns the name of the base type in Java. */
    abstract String component();
}
