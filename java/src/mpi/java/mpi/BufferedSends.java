package mpi;

import java.lang.ref.Reference;
import mpjdev.core.Native;

/** Sends in buffered mode, which never wait for a receive. */
abstract class BufferedSends extends PointToPoint {
    BufferedSends(long handle) {
        super(handle);
    }

    /**
     * Sends a message in buffered mode (MPI-1.1, section 3.4). Does not block. Its octets count against the
     * buffer of {@link MPI#Buffer_attach} until the send is done.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items
     * @param datatype datatype of the items
     * @param dest destination
     * @param tag tag, 0 or more
     * @throws MPIException as {@link #Send}, or if no buffer is attached, or the message does not fit
     *     ({@link MPI#ERR_BUFFER}); it is not sent then
     */
    public void Bsend(Object buf, int offset, int count, Datatype datatype, int dest, int tag) throws MPIException {
        if (dest == MPI.PROC_NULL) {
            return;
        }
        try {
            Object array = datatype.arrayOf(buf, count);
            int off = buf == null ? 0 : offset;
            if (datatype.hasObjects()) {
                bsendObjects((Object[]) array, off, count, datatype, dest, tag);
                return;
            }
            long octets = Math.max(0, count) * (long) datatype.Size() * datatype.elementSize;
            BsendQuota.send(octets, () -> startSend(array, off, count, datatype, dest, tag, false));
        } catch (RuntimeException e) {
            throw raised(Failures.ofMessage(e, datatype, count, tag));
        } finally {
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(datatype);
        }
    }

    private void bsendObjects(Object[] source, int off, int count, Datatype datatype, int dest, int tag) {
        long writer = ObjectMessages.write(source, off, count, datatype);
        try {
            BsendQuota.send(Native.secondaryLength(writer, 0), () -> Native.isend(handle(), writer, dest, tag, false, 0));
        } finally {
            ObjectMessages.release(writer);
        }
    }

    /**
     * Sends a message as {@link #Bsend} does, with a request that is done at once.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items
     * @param datatype datatype of the items
     * @param dest destination
     * @param tag tag, 0 or more
     * @return the request
     * @throws MPIException as {@link #Bsend}
     */
    public Request Ibsend(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        Bsend(buf, offset, count, datatype, dest, tag);
        Request done = new Request();
        done.owner = this;
        return done.begin(0);
    }

    /**
     * Makes a persistent request for sends in buffered mode.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items
     * @param datatype datatype of the items
     * @param dest destination
     * @param tag tag, 0 or more
     * @return the request, void until it is started
     * @throws MPIException if the buffer is not one of the datatype
     */
    public Prequest Bsend_init(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return persistent(buf, offset, count, datatype, dest, tag, Prequest.Kind.BUFFERED_SEND);
    }
}
