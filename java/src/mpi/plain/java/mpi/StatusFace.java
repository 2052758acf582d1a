package mpi;

import mpjdev.core.NativeStatus;

/** The fields of a {@link Status}. In {@code mpj-compat.jar} they are those of a status of package mpjdev. */
abstract class StatusFace extends NativeStatus {
    /** Rank of the sender in the communicator; {@link MPI#ANY_SOURCE} in an empty status. */
    public int source = MPI.ANY_SOURCE;
    /** Tag of the message; {@link MPI#ANY_TAG} in an empty status. */
    public int tag = MPI.ANY_TAG;
    /** Index of the request in the array of a call for several requests; else {@link MPI#UNDEFINED}. */
    public int index = MPI.UNDEFINED;
    /** Number of items of the receive's datatype; {@link MPI#UNDEFINED} if the last one is not whole. */
    public int count;
    /** Number of elements of the base type. */
    public int numEls;
    /** Octets of all elements. */
    public int countInBytes;

    /** Takes note of the type of the elements: the variant has a field for it. */
    final void setElement(int element) {}
}
