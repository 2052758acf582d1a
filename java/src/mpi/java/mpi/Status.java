package mpi;

import mpjdev.core.Native;
import mpjdev.core.Types;

/** The description of a message that was received, or that a probe has found. */
public class Status extends StatusFace {
    /** Class of the error of the operation; 0 for none. */
    public int error;

    /** Datatype of the receive, or base type of a message that a probe has found; null for none. */
    private Datatype datatype;

    private boolean isCancelled;

    /** Makes an empty status. */
    public Status() {}

    /** Stores the result of a receive from any source or with any tag. */
    final Status received(long sourceAndTag, Datatype type) {
        return received((int) (sourceAndTag >> 32), (int) sourceAndTag, setType(type.element), type);
    }

    /** Stores the result of a receive of objects. */
    final Status receivedObjects(long sourceAndTag, int objects, Datatype type) {
        return received((int) (sourceAndTag >> 32), (int) sourceAndTag, objects, type);
    }

    /** Stores the result of a receive. */
    final Status received(int from, int with, int elements, Datatype type) {
        source = from;
        tag = with;
        datatype = type;
        setElement(type.element);
        numEls = elements;
        count = items(type);
        countInBytes = elements * type.elementSize;
        return this;
    }

    /** Stores the details of a result as native code returns them. */
    final void detail(long returned) {
        set(returned);
    }

    /** Stores the count that a receive has named, which is that of items without elements. */
    final Status given(int items) {
        if (datatype.Size() == 0) {
            count = items;
        }
        return this;
    }

    /** Stores the result of a probe in this communicator. */
    final Status probed(long sourceAndTag, long comm) {
        source = (int) (sourceAndTag >> 32);
        tag = (int) sourceAndTag;
        int element = receivedType();
        if (element == NO_TYPE) {
            numEls = MPI.UNDEFINED;
            countInBytes = receivedSize();
        } else {
            datatype = element == Types.OBJECT ? MPI.OBJECT : BasicType.of(element);
            setElement(element);
            int elements = receivedCount();
            numEls = elements < COUNT_MAX ? elements : (int) Native.probedCount(comm, source, tag);
            countInBytes = numEls * datatype.elementSize;
        }
        count = numEls;
        return this;
    }

    /** Returns the status of a receive or a probe from {@link MPI#PROC_NULL}. */
    static Status ofNull(Datatype type) {
        return new Status().received(MPI.PROC_NULL, MPI.ANY_TAG, 0, type);
    }

    private int items(Datatype type) {
        int size = type.Size();
        if (size == 0) {
            return datatype != null && datatype.Size() == 0 ? count : 0;
        }
        return size == 1 ? numEls : numEls % size == 0 ? numEls / size : MPI.UNDEFINED;
    }

    /**
     * Returns the number of received items of a datatype (MPI-1.1, section 3.2.5).
     *
     * @param type any datatype
     * @return the number; {@link MPI#UNDEFINED} if the last item is not whole, or if the message has elements
     *     of another base type. Of a datatype without elements it is the count of the receive
     * @throws MPIException if the datatype is null
     */
    public int Get_count(Datatype type) throws MPIException {
        return isOf(type) ? items(type) : MPI.UNDEFINED;
    }

    /**
     * Returns the number of received elements (MPI-1.1, section 3.12.5).
     *
     * @param type any datatype
     * @return the number of elements of the base type; {@link MPI#UNDEFINED} if the message has elements of
     *     another base type, or the datatype has none
     * @throws MPIException if the datatype is null
     */
    public int Get_elements(Datatype type) throws MPIException {
        return isOf(type) && type.Size() > 0 ? numEls : MPI.UNDEFINED;
    }

    /**
     * Returns whether the operation was cancelled.
     *
     * @return whether {@link Request#Cancel} came before a message
     */
    public boolean Test_cancelled() {
        return isCancelled;
    }

    final void setCancelled() {
        isCancelled = true;
    }

    private boolean isOf(Datatype type) {
        if (type == null) {
            throw MPI.raised(new MPIException(MPI.ERR_TYPE, "the datatype is null", null));
        }
        // A probe does not tell packed octets from others.
        boolean isPacked = type == MPI.PACKED && datatype == MPI.BYTE;
        return numEls == 0 || datatype == null || datatype.baseType == type.baseType || isPacked;
    }

    @Override
    public String toString() {
        return "source " + source + ", tag " + tag + ", " + numEls + " x " + datatype;
    }
}
