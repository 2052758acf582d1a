package mpi;

/** A datatype whose item is one element of an array. */
abstract class ElementType extends Datatype {
    ElementType(int baseType, int element, int elementSize, int unit) {
        super(baseType, element, elementSize, unit);
    }

    /** Returns the type of the elements with this code of the core. */
    static ElementType of(int element) {
        Datatype[] types = {MPI.BYTE, MPI.CHAR, MPI.SHORT, MPI.BOOLEAN, MPI.INT, MPI.LONG, MPI.FLOAT, MPI.DOUBLE,
            MPI.OBJECT};
        return (ElementType) types[element];
    }

    /** Returns an empty array in the place of a null buffer without elements. */
    abstract Object none(int count);

    @Override
    Object arrayOf(Object buf, int count) {
        return buf == null ? none(count) : buf;
    }

    @Override
    public int Size() {
        return 1;
    }

    @Override
    public int Extent() {
        return 1;
    }

    @Override
    public int Lb() {
        return 0;
    }

    @Override
    public int Ub() {
        return 1;
    }
}
