package mpi;

/** A function that combines vectors in a reduction (MPI-1.1, section 4.9.4). */
public abstract class User_function {
    /**
     * Combines two vectors: item k of the second becomes item k of the first combined with it.
     *
     * <p>The first vector is that of the lower ranks. Both arrays are private to the call, of the component
     * type of the program's arrays, and have whole vectors. An exception ends the reduction at this rank, and
     * at each rank that needs its result.
     *
     * @param invec array with the vector of the lower ranks
     * @param inoffset index of its first item
     * @param inoutvec array with the vector of the higher ranks; the result replaces it
     * @param inoutoffset index of its first item
     * @param count number of items
     * @param datatype datatype of the items
     * @throws MPIException if the vectors cannot be combined
     */
    public abstract void Call(Object invec, int inoffset, Object inoutvec, int inoutoffset, int count, Datatype datatype)
            throws MPIException;
}
