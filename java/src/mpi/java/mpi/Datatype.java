package mpi;

import java.lang.ref.Reference;
import java.util.function.LongSupplier;
import mpjdev.core.Native;
import mpjdev.core.Types;

/**
 * The type of the items of a message buffer. Immutable.
 *
 * <p>An item consists of elements of one base type, the component type of the array. The basic datatypes are
 * constants of {@link MPI}: each item of theirs is one element. The static methods of this class make further
 * datatypes of them (MPI-1.1, section 3.12). Extents, displacements and bounds count elements, never octets.
 *
 * <p>Items are consecutive at a distance of {@link #Extent}. Their elements have an order, which the
 * constructor defines, also where they overlap: a message has them in that order, and a shorter message fills
 * the first ones.
 */
public abstract class Datatype {
    /**
     * Code of the base type: 1 to 8 for {@code byte}, {@code char}, {@code short}, {@code boolean},
     * {@code int}, {@code long}, {@code float} and {@code double}, 9 for packed octets, 12 for objects, as in
     * MPJ Express. A datatype without elements has {@link MPI#UNDEFINED}.
     */
    public final int baseType;

    /** Type code of the core for the base type. */
    final int element;
    /** Octets of an element. */
    final int elementSize;

    /** Elements of an item whose items are consecutive elements without gaps, but packed octets; else 0. */
    final int unit;

    /** Name of {@link #Set_name}; null at first. */
    private volatile String name;

    Datatype(int baseType, int element, int elementSize, int unit) {
        this.baseType = baseType;
        this.element = element;
        this.elementSize = elementSize;
        this.unit = unit;
    }

    /**
     * Makes a datatype of consecutive items.
     *
     * @param count number of items
     * @param old type of the items
     * @return the new datatype
     * @throws MPIException if the count is negative, or the new datatype is too large
     */
    public static Datatype Contiguous(int count, Datatype old) throws MPIException {
        return made(() -> Native.typeContiguous(handle(old), count), old);
    }

    /**
     * Makes a datatype of blocks of items at equal distances.
     *
     * @param count number of blocks
     * @param blocklength items of a block
     * @param stride distance between the beginnings of two blocks in extents of the old type, also negative
     * @param old type of the items
     * @return the new datatype
     * @throws MPIException if a count is negative, or the new datatype is too large
     */
    public static Datatype Vector(int count, int blocklength, int stride, Datatype old) throws MPIException {
        return made(() -> Native.typeVector(handle(old), count, blocklength, stride, false), old);
    }

    /**
     * Makes a datatype as {@link #Vector} does, with a distance in elements.
     *
     * @param count number of blocks
     * @param blocklength items of a block
     * @param stride distance between the beginnings of two blocks in elements, also negative
     * @param old type of the items
     * @return the new datatype
     * @throws MPIException as {@link #Vector}
     */
    public static Datatype Hvector(int count, int blocklength, int stride, Datatype old) throws MPIException {
        return made(() -> Native.typeVector(handle(old), count, blocklength, stride, true), old);
    }

    /**
     * Makes a datatype of blocks of items at any distances.
     *
     * @param blocklengths items of each block
     * @param displacements distance of each block from the item in extents of the old type, also negative
     * @param old type of the items
     * @return the new datatype
     * @throws MPIException if a block length is negative, the arrays have different lengths or are null, or
     *     the new datatype is too large or has too many blocks
     */
    public static Datatype Indexed(int[] blocklengths, int[] displacements, Datatype old) throws MPIException {
        return indexed(blocklengths, displacements, old, false);
    }

    /**
     * Makes a datatype as {@link #Indexed} does, with displacements in elements.
     *
     * @param blocklengths items of each block
     * @param displacements distance of each block from the item in elements, also negative
     * @param old type of the items
     * @return the new datatype
     * @throws MPIException as {@link #Indexed}
     */
    public static Datatype Hindexed(int[] blocklengths, int[] displacements, Datatype old) throws MPIException {
        return indexed(blocklengths, displacements, old, true);
    }

    private static Datatype indexed(int[] blocklengths, int[] displacements, Datatype old, boolean isElements) {
        int[] blocks = MPI.present(blocklengths, "the array of block lengths");
        int[] at = MPI.present(displacements, "the array of displacements");
        return made(() -> Native.typeIndexed(handle(old), blocks, blocks.length, at, at.length, isElements), old);
    }

    /**
     * Makes a datatype of blocks of different types. All have the same base type; {@link MPI#LB} and
     * {@link MPI#UB} mark the bounds of the new datatype.
     *
     * @param blocklengths items of each block
     * @param displacements distance of each block from the item in elements, also negative
     * @param types type of the items of each block
     * @return the new datatype
     * @throws MPIException as {@link #Indexed}, or if two blocks have elements of different base types
     */
    public static Datatype Struct(int[] blocklengths, int[] displacements, Datatype[] types) throws MPIException {
        int[] blocks = MPI.present(blocklengths, "the array of block lengths");
        int[] at = MPI.present(displacements, "the array of displacements");
        Datatype[] olds = MPI.present(types, "the array of datatypes").clone();
        return made(() -> {
            long[] handles = new long[olds.length];
            for (int k = 0; k < handles.length; k++) {
                handles[k] = handle(olds[k]);
            }
            return Native.typeStruct(blocks, blocks.length, at, at.length, handles, handles.length);
        }, olds);
    }

    private static Datatype made(LongSupplier constructor, Object olds) {
        try {
            return DerivedType.of(constructor.getAsLong());
        } catch (RuntimeException e) {
            throw MPI.raised(Failures.of(e, MPI.ERR_ARG));
        } finally {
            Reference.reachabilityFence(olds);
        }
    }

    private static long handle(Datatype old) {
        if (old == null) {
            throw new MPIException(MPI.ERR_TYPE, "the datatype is null", null);
        }
        if (old == MPI.PACKED) {
            throw new MPIException(MPI.ERR_TYPE, "a derived datatype cannot have packed octets", null);
        }
        return old.handle();
    }

    /** Returns the native datatype, or the number of a basic one. */
    abstract long handle();

    /** Returns whether the elements are objects, which travel serialised. */
    final boolean hasObjects() {
        return element == Types.OBJECT;
    }

    /**
     * Returns the elements that items have in an array of this length, in the order of a message; null for
     * consecutive ones, of which {@code off} is the first.
     */
    final int[] places(int off, int count, int length) {
        if (unit != 0) {
            return null;
        }
        // The first call checks the range.
        int[] places = new int[Native.typeElements(handle(), off, count, length, new int[0], 0)];
        Native.typeElements(handle(), off, count, length, places, places.length);
        return places;
    }

    /** Returns the number of elements of {@code count} items without gaps. */
    final int elements(int count) {
        long elements = (long) count * unit;
        if ((int) elements != elements) {
            throw new MPIException(MPI.ERR_COUNT, count + " items of " + unit + " elements are too many", null);
        }
        return (int) elements;
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
     * @return the number of octets that an item takes in a message; 0 for objects
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
     * Returns the name of the datatype.
     *
     * @return what {@link #Set_name} was given, at first a description
     */
    public String Get_name() {
        String given = name;
        return given == null ? toString() : given;
    }

    /**
     * Sets the name of the datatype.
     *
     * @param name the name
     */
    public void Set_name(String name) {
        this.name = name;
    }

    /**
     * Returns the length of a buffer.
     *
     * @param buf an array of the base type
     * @return its number of elements
     * @throws MPIException if it is anything else
     */
    abstract int lengthOf(Object buf);

    /** Returns the buffer, or an empty array in the place of one that is not used. */
    abstract Object arrayOf(Object buf, int count);

    /** Returns the name of the base type in Java. */
    abstract String component();
}
