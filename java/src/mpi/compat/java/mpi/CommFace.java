package mpi;

import mpjbuf.Buffer;

/** A communicator, whose packing units are also buffers of MPJ Express. */
abstract class CommFace extends BufferedSends {
    /** This communicator for messages of buffers. */
    public final mpjdev.Comm mpjdevComm = new mpjdev.Comm((Comm) this);

    CommFace(long handle) {
        super(handle);
    }

    private static boolean isBuffer(Object buf, Datatype datatype) {
        return buf instanceof Buffer && datatype == MPI.PACKED;
    }

    /**
     * Appends items to a buffer as a section. If the buffer was sent, it is emptied first.
     *
     * @param inbuf array of the datatype's base type; null if {@code incount} is 0
     * @param offset index of the first element
     * @param incount number of items
     * @param datatype datatype of the items
     * @param outbuf the buffer, which is writable
     * @param position ignored
     * @return octets of all sections, the count of a send
     * @throws MPIException as {@link Comm#Send}, or if the items do not fit
     */
    public int Pack(Object inbuf, int offset, int incount, Datatype datatype, Buffer outbuf, int position)
            throws MPIException {
        try {
            return BufferMessages.pack(inbuf, offset, incount, datatype, outbuf);
        } catch (MPIException e) {
            throw raised(e);
        }
    }

    /**
     * Stores the items of the next section of a buffer. A writable buffer becomes readable.
     *
     * @param inbuf the buffer
     * @param position ignored
     * @param outbuf array of the datatype's base type; null if {@code outcount} is 0
     * @param offset index of the first element
     * @param outcount number of items that fit; elements beyond the packed ones stay as they are
     * @param datatype datatype of the items
     * @return octets of the sections up to this one
     * @throws MPIException as {@link Comm#Recv}, or if there is no further section
     */
    public int Unpack(Buffer inbuf, int position, Object outbuf, int offset, int outcount, Datatype datatype)
            throws MPIException {
        try {
            return BufferMessages.unpack(inbuf, outbuf, offset, outcount, datatype);
        } catch (MPIException e) {
            throw raised(e);
        }
    }

    @Override
    void send(Object buf, int offset, int count, Datatype datatype, int dest, int tag, boolean synchronous) {
        if (isBuffer(buf, datatype)) {
            BufferMessages.send(this, (Buffer) buf, dest, tag, synchronous);
        } else {
            super.send(buf, offset, count, datatype, dest, tag, synchronous);
        }
    }

    @Override
    Request isend(Request into, Object buf, int offset, int count, Datatype datatype, int dest, int tag,
            boolean synchronous) {
        return isBuffer(buf, datatype) ? BufferMessages.isend(this, into, (Buffer) buf, dest, tag, synchronous)
                : super.isend(into, buf, offset, count, datatype, dest, tag, synchronous);
    }

    @Override
    public Status Recv(Object buf, int offset, int count, Datatype datatype, int source, int tag)
            throws MPIException {
        return isBuffer(buf, datatype) ? BufferMessages.recv(this, (Buffer) buf, source, tag)
                : super.Recv(buf, offset, count, datatype, source, tag);
    }

    @Override
    public Request Irecv(Object buf, int offset, int count, Datatype datatype, int source, int tag)
            throws MPIException {
        return isBuffer(buf, datatype) ? BufferMessages.irecv(this, (Buffer) buf, source, tag)
                : super.Irecv(buf, offset, count, datatype, source, tag);
    }
}
