package mpi;

/** A datatype whose item is one element of an array. */
abstract class ElementType extends Datatype {
    ElementType(int baseType, int element, int elementSize, int unit) {
        super(baseType, element, elementSize, unit);
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
