package mpi;

import java.lang.ref.Reference;
import mpjdev.core.Backoff;
import mpjdev.core.BounceBuffer;
import mpjdev.core.Native;
import mpjdev.core.Resource;
import mpjdev.core.Waits;

/** Messages between two ranks. */
abstract class PointToPoint extends Probes {
    PointToPoint(long handle) {
        super(handle);
    }

    // ---- Sending

    /**
     * Sends a message in standard mode (MPI-1.1, section 3.2.1).
     *
     * <p>Blocks until the message has left this rank or, without credit at the receiver, until a receive has
     * matched it. The elements are captured first. A send to {@link MPI#PROC_NULL} does nothing.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items
     * @param datatype datatype of the items
     * @param dest destination
     * @param tag tag, 0 or more
     * @throws MPIException if an argument is invalid, the items reach outside the array, or the destination
     *     has failed
     */
    public void Send(Object buf, int offset, int count, Datatype datatype, int dest, int tag) throws MPIException {
        send(buf, offset, count, datatype, dest, tag, false);
    }

    /**
     * Sends a message in synchronous mode (MPI-1.1, section 3.4): blocks until a receive has matched it.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items
     * @param datatype datatype of the items
     * @param dest destination
     * @param tag tag, 0 or more
     * @throws MPIException as {@link #Send}
     */
    public void Ssend(Object buf, int offset, int count, Datatype datatype, int dest, int tag) throws MPIException {
        send(buf, offset, count, datatype, dest, tag, true);
    }

    /**
     * Sends a message in ready mode (MPI-1.1, section 3.4). It is a send in standard mode, so a receive need
     * not be posted.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items
     * @param datatype datatype of the items
     * @param dest destination
     * @param tag tag, 0 or more
     * @throws MPIException as {@link #Send}
     */
    public void Rsend(Object buf, int offset, int count, Datatype datatype, int dest, int tag) throws MPIException {
        send(buf, offset, count, datatype, dest, tag, false);
    }

    void send(Object buf, int offset, int count, Datatype datatype, int dest, int tag, boolean synchronous) {
        if (dest == MPI.PROC_NULL) {
            return;
        }
        try {
            Object array = datatype.arrayOf(buf, count);
            int off = buf == null ? 0 : offset;
            int length = datatype.lengthOf(array);
            if (datatype.hasObjects()) {
                sendObjects((Object[]) array, off, count, datatype, dest, tag, synchronous);
                return;
            }
            if (datatype.unit == 0) {
                sendItems(array, length, off, count, datatype, dest, tag, synchronous);
                return;
            }
            int n = datatype.unit == 1 ? count : datatype.elements(count);
            BounceBuffer bounce = BounceBuffer.of(datatype.element, length, off, n);
            if (bounce != null) {
                bounce.put(array, datatype.element, off, n);
                Native.sendBounced(handle(), bounce.address, n, datatype.element, dest, tag, synchronous);
            } else if (Backoff.isVirtual()) {
                Waits.await(Native.isendArray(handle(), array, length, datatype.element, off, n, dest, tag,
                        synchronous), new Status());
            } else {
                Native.sendArray(handle(), array, length, datatype.element, off, n, dest, tag, synchronous);
            }
        } catch (RuntimeException e) {
            throw raised(Failures.ofMessage(e, datatype, count, tag));
        } finally {
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(datatype);
        }
    }

    /** Sends items that are no consecutive elements. */
    private void sendItems(Object array, int length, int off, int count, Datatype datatype, int dest, int tag,
            boolean synchronous) {
        long type = datatype.handle();
        int element = datatype.element;
        if (Backoff.isVirtual()) {
            long request = Native.isendTyped(handle(), type, array, length, element, off, count, dest, tag, synchronous);
            Waits.await(request, new Status());
        } else {
            Native.sendTyped(handle(), type, array, length, element, off, count, dest, tag, synchronous);
        }
    }

    /**
     * Starts a send in standard mode. Does not block. The array may be changed as soon as the call returns.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items
     * @param datatype datatype of the items
     * @param dest destination
     * @param tag tag, 0 or more
     * @return the request
     * @throws MPIException as {@link #Send}
     */
    public Request Isend(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return isend(new Request(), buf, offset, count, datatype, dest, tag, false);
    }

    /**
     * Starts a send in synchronous mode: it is done when a receive has matched it. Does not block.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items
     * @param datatype datatype of the items
     * @param dest destination
     * @param tag tag, 0 or more
     * @return the request
     * @throws MPIException as {@link #Send}
     */
    public Request Issend(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return isend(new Request(), buf, offset, count, datatype, dest, tag, true);
    }

    /**
     * Starts a send in ready mode, which is one in standard mode. Does not block.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items
     * @param datatype datatype of the items
     * @param dest destination
     * @param tag tag, 0 or more
     * @return the request
     * @throws MPIException as {@link #Send}
     */
    public Request Irsend(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return isend(new Request(), buf, offset, count, datatype, dest, tag, false);
    }

    Request isend(Request into, Object buf, int offset, int count, Datatype datatype, int dest, int tag,
            boolean synchronous) {
        into.owner = this;
        if (dest == MPI.PROC_NULL) {
            return into.begin(new Status());
        }
        try {
            Object array = datatype.arrayOf(buf, count);
            int off = buf == null ? 0 : offset;
            return into.begin(startSend(array, off, count, datatype, dest, tag, synchronous));
        } catch (RuntimeException e) {
            throw raised(Failures.ofMessage(e, datatype, count, tag));
        } finally {
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(datatype);
        }
    }

    final long startSend(Object array, int off, int count, Datatype datatype, int dest, int tag,
            boolean synchronous) {
        int length = datatype.lengthOf(array);
        int element = datatype.element;
        if (datatype.hasObjects()) {
            return isendObjects((Object[]) array, off, count, datatype, dest, tag, synchronous);
        }
        if (datatype.unit == 0) {
            return Native.isendTyped(handle(), datatype.handle(), array, length, element, off, count, dest, tag, synchronous);
        }
        int n = datatype.elements(count);
        BounceBuffer bounce = BounceBuffer.of(element, length, off, n);
        if (bounce == null) {
            return Native.isendArray(handle(), array, length, element, off, n, dest, tag, synchronous);
        }
        bounce.put(array, element, off, n);
        return Native.isendBounced(handle(), bounce.address, n, element, dest, tag, synchronous);
    }

    // ---- Receiving

    /**
     * Receives a message (MPI-1.1, section 3.2.4). Blocks.
     *
     * <p>The message may be shorter than {@code count} items; elements beyond it stay as they are. A receive
     * from {@link MPI#PROC_NULL} returns at once.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items that fit
     * @param datatype datatype of the items
     * @param source source, or {@link MPI#ANY_SOURCE}
     * @param tag tag, or {@link MPI#ANY_TAG}
     * @return source, tag and number of items of the message
     * @throws MPIException if an argument is invalid, the items reach outside the array, or the source has
     *     failed. A message that is longer ({@link MPI#ERR_TRUNCATE}) or has another base type
     *     ({@link MPI#ERR_TYPE}) is lost, and the array stays as it is
     */
    public Status Recv(Object buf, int offset, int count, Datatype datatype, int source, int tag)
            throws MPIException {
        try {
            if (source == MPI.PROC_NULL) {
                return Status.ofNull(datatype);
            }
            Object array = datatype.arrayOf(buf, count);
            int off = buf == null ? 0 : offset;
            int length = datatype.lengthOf(array);
            if (datatype.hasObjects()) {
                return recvObjects((Object[]) array, off, count, datatype, source, wanted(tag));
            }
            int element = datatype.element;
            Status status = new Status();
            if (datatype.unit == 0) {
                return recvItems(array, length, off, count, datatype, source, tag, status);
            }
            int n = datatype.unit == 1 ? count : datatype.elements(count);
            BounceBuffer bounce = BounceBuffer.of(element, length, off, n);
            if (bounce != null) {
                return recvBounced(bounce, array, off, n, datatype, source, tag, status);
            }
            if (Backoff.isVirtual()) {
                long request = Native.irecvArray(handle(), array, length, element, off, n, source, wanted(tag),
                        status);
                return status.received(Waits.awaitArray(request, array, length, element, status), datatype);
            }
            if (source >= 0 && tag >= 0) {
                long detail = Native.recvArrayFrom(handle(), array, length, element, off, n, source, tag);
                return status.received(source, tag, (int) detail, datatype);
            }
            long envelope = Native.recvArray(handle(), array, length, element, off, n, source, wanted(tag), status);
            return status.received(envelope, datatype);
        } catch (RuntimeException e) {
            throw raised(Failures.ofMessage(e, datatype, count, tag == MPI.ANY_TAG ? 0 : tag));
        } finally {
            Request.sweepFreed();
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(datatype);
        }
    }

    /** Receives into a short part of an array. */
    private Status recvBounced(BounceBuffer bounce, Object array, int off, int n, Datatype datatype, int source, int tag,
            Status status) {
        int element = datatype.element;
        if (source >= 0 && tag >= 0) {
            int received = (int) Native.recvBouncedFrom(handle(), bounce.address, n, element, source, tag);
            bounce.get(array, element, off, received);
            return status.received(source, tag, received, datatype);
        }
        long envelope = Native.recvBounced(handle(), bounce.address, n, element, source, wanted(tag), status);
        status.received(envelope, datatype);
        bounce.get(array, element, off, status.numEls);
        return status;
    }

    /** Receives into items that are no consecutive elements. */
    private Status recvItems(Object array, int length, int off, int count, Datatype datatype, int source, int tag,
            Status status) {
        long type = datatype.handle();
        int element = datatype.element;
        if (Backoff.isVirtual()) {
            long request = Native.irecvTyped(handle(), type, array, length, element, off, count, source, wanted(tag),
                    status);
            status.received(Waits.awaitArray(request, array, length, element, status), datatype);
        } else if (source >= 0 && tag >= 0) {
            long detail = Native.recvTypedFrom(handle(), type, array, length, element, off, count, source, tag);
            status.received(source, tag, (int) detail, datatype);
        } else {
            status.received(Native.recvTyped(handle(), type, array, length, element, off, count, source, wanted(tag),
                    status), datatype);
        }
        return status.given(count);
    }

    /**
     * Posts a receive. Does not block. The array belongs to the request until it is void. The elements are
     * stored at once if the message has arrived, and otherwise by a wait or a test.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items that fit
     * @param datatype datatype of the items
     * @param source source, or {@link MPI#ANY_SOURCE}
     * @param tag tag, or {@link MPI#ANY_TAG}
     * @return the request
     * @throws MPIException if an argument is invalid or the items reach outside the array
     */
    public Request Irecv(Object buf, int offset, int count, Datatype datatype, int source, int tag)
            throws MPIException {
        return irecv(new Request(), buf, offset, count, datatype, source, tag);
    }

    final Request irecv(Request into, Object buf, int offset, int count, Datatype datatype, int source, int tag) {
        into.owner = this;
        try {
            if (source == MPI.PROC_NULL) {
                return into.begin(Status.ofNull(datatype));
            }
            Object array = datatype.arrayOf(buf, count);
            int off = buf == null ? 0 : offset;
            int length = datatype.lengthOf(array);
            if (datatype.hasObjects()) {
                return irecvObjects(into, (Object[]) array, off, count, datatype, source, wanted(tag));
            }
            int element = datatype.element;
            Status status = new Status();
            if (datatype.unit != 0) {
                return irecvElements(into, array, length, off, count, datatype, source, wanted(tag), status);
            }
            long started = Native.irecvTyped(handle(), datatype.handle(), array, length, element, off, count, source,
                    wanted(tag), status);
            return started < 0 ? into.begin(status.received(~started, datatype).given(count))
                    : into.begin(started, array, length, datatype, count, status);
        } catch (RuntimeException e) {
            throw raised(Failures.ofMessage(e, datatype, count, tag == MPI.ANY_TAG ? 0 : tag));
        } finally {
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(datatype);
        }
    }

    /** Posts a receive into consecutive elements. */
    private Request irecvElements(Request into, Object array, int length, int off, int count, Datatype datatype,
            int source, int tag, Status status) {
        int element = datatype.element;
        int n = datatype.elements(count);
        boolean isSelected = source >= 0 && tag >= 0;
        BounceBuffer bounce = isSelected ? BounceBuffer.of(element, length, off, n) : null;
        long started = bounce == null
                ? Native.irecvArray(handle(), array, length, element, off, n, source, tag, status)
                : Native.irecvBouncedFrom(handle(), bounce.address, n, element, length, off, source, tag);
        if (started >= 0) {
            return into.begin(started, array, length, datatype, count, status);
        }
        if (bounce == null) {
            return into.begin(status.received(~started, datatype).given(count));
        }
        bounce.get(array, element, off, (int) ~started);
        return into.begin(status.received(source, tag, (int) ~started, datatype).given(count));
    }

    // ---- Both

    /**
     * Sends a message and receives one (MPI-1.1, section 3.10). Blocks. Either peer may be
     * {@link MPI#PROC_NULL}. Both parts may use one array: the elements are captured before any is stored.
     *
     * @param sendbuf array of {@code sendtype}'s base type; null if {@code sendcount} is 0
     * @param sendoffset index of its first element
     * @param sendcount number of items to send
     * @param sendtype datatype of the items to send
     * @param dest destination
     * @param sendtag tag of the message to send
     * @param recvbuf array of {@code recvtype}'s base type; null if {@code recvcount} is 0
     * @param recvoffset index of its first element
     * @param recvcount number of items that fit
     * @param recvtype datatype of the received items
     * @param source source, or {@link MPI#ANY_SOURCE}
     * @param recvtag tag, or {@link MPI#ANY_TAG}
     * @return source, tag and number of items of the received message
     * @throws MPIException as {@link #Send} and {@link #Recv}
     */
    public Status Sendrecv(Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, int dest, int sendtag,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int source, int recvtag)
            throws MPIException {
        boolean hasObjects = sendtype != null && sendtype.hasObjects() || recvtype != null && recvtype.hasObjects();
        if (source == MPI.PROC_NULL || dest == MPI.PROC_NULL || hasObjects || Backoff.isVirtual()) {
            Request sent = Isend(sendbuf, sendoffset, sendcount, sendtype, dest, sendtag);
            Status status = Recv(recvbuf, recvoffset, recvcount, recvtype, source, recvtag);
            sent.Wait();
            return status;
        }
        try {
            Object from = sendtype.arrayOf(sendbuf, sendcount);
            int fromOff = sendbuf == null ? 0 : sendoffset;
            int fromLength = sendtype.lengthOf(from);
            Object to = recvtype.arrayOf(recvbuf, recvcount);
            int toOff = recvbuf == null ? 0 : recvoffset;
            int toLength = recvtype.lengthOf(to);
            Status status = new Status();
            long envelope = sendtype.unit == 0 || recvtype.unit == 0
                    ? Native.sendrecvTyped(handle(), sendtype.handle(), from, fromLength, sendtype.element, fromOff, sendcount,
                            dest, sendtag, recvtype.handle(), to, toLength, recvtype.element, toOff, recvcount, source,
                            wanted(recvtag), status)
                    : Native.sendrecvArray(handle(), from, fromLength, sendtype.element, fromOff,
                            sendtype.elements(sendcount), dest, sendtag, to, toLength, recvtype.element, toOff,
                            recvtype.elements(recvcount), source, wanted(recvtag), status);
            return status.received(envelope, recvtype);
        } catch (RuntimeException e) {
            int worst = recvtag == MPI.ANY_TAG ? sendtag : Math.min(sendtag, recvtag);
            throw raised(Failures.ofMessage(e, sendtype == null ? sendtype : recvtype, Math.min(sendcount, recvcount),
                    worst));
        } finally {
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(sendtype);
            Reference.reachabilityFence(recvtype);
        }
    }

    /**
     * Sends a message and receives one into the same elements (MPI-1.1, section 3.10). Blocks.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items to send, and that fit
     * @param datatype datatype of the items
     * @param dest destination
     * @param sendtag tag of the message to send
     * @param source source, or {@link MPI#ANY_SOURCE}
     * @param recvtag tag, or {@link MPI#ANY_TAG}
     * @return source, tag and number of items of the received message
     * @throws MPIException as {@link #Sendrecv}
     */
    public Status Sendrecv_replace(Object buf, int offset, int count, Datatype datatype, int dest, int sendtag,
            int source, int recvtag) throws MPIException {
        return Sendrecv(buf, offset, count, datatype, dest, sendtag, buf, offset, count, datatype, source, recvtag);
    }

    // ---- Objects

    private void sendObjects(Object[] source, int off, int count, Datatype datatype, int dest, int tag,
            boolean synchronous) {
        long writer = ObjectMessages.write(source, off, count, datatype);
        try {
            if (Backoff.isVirtual()) {
                Waits.await(Native.isend(handle(), writer, dest, tag, synchronous, 0), new Status());
            } else {
                Native.send(handle(), writer, dest, tag, synchronous, 0);
            }
        } finally {
            ObjectMessages.release(writer);
        }
    }

    private long isendObjects(Object[] source, int off, int count, Datatype datatype, int dest, int tag,
            boolean synchronous) {
        long writer = ObjectMessages.write(source, off, count, datatype);
        try {
            return Native.isend(handle(), writer, dest, tag, synchronous, 0);
        } finally {
            ObjectMessages.release(writer);
        }
    }

    private Status recvObjects(Object[] into, int off, int count, Datatype datatype, int source, int tag) {
        ObjectMessages.check(into, off, count, datatype);
        long reader = ObjectMessages.newReader();
        Status status = new Status();
        try {
            long envelope = Backoff.isVirtual() ? Waits.await(Native.irecv(handle(), reader, source, tag), status)
                    : Native.recv(handle(), reader, source, tag, status);
            return status.receivedObjects(envelope, ObjectMessages.read(reader, into, off, count, datatype), datatype);
        } catch (RuntimeException e) {
            throw ObjectMessages.failure(e);
        } finally {
            Native.close(reader);
        }
    }

    private Request irecvObjects(Request request, Object[] into, int off, int count, Datatype datatype, int source,
            int tag) {
        ObjectMessages.check(into, off, count, datatype);
        Resource reader = new Resource(request, ObjectMessages.newReader(), Resource.BUFFER);
        return request.begin(Native.irecv(handle(), reader.handle(), source, tag), reader, into, off, count, datatype);
    }

    // ---- Persistent requests

    /**
     * Makes a persistent request for sends in standard mode (MPI-1.1, section 3.9).
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
    public Prequest Send_init(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return persistent(buf, offset, count, datatype, dest, tag, Prequest.Kind.SEND);
    }

    /**
     * Makes a persistent request for sends in synchronous mode.
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
    public Prequest Ssend_init(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return persistent(buf, offset, count, datatype, dest, tag, Prequest.Kind.SYNCHRONOUS_SEND);
    }

    /**
     * Makes a persistent request for sends in ready mode, which are sends in standard mode.
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
    public Prequest Rsend_init(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return persistent(buf, offset, count, datatype, dest, tag, Prequest.Kind.SEND);
    }

    /**
     * Makes a persistent request for receives.
     *
     * @param buf array of the datatype's base type; null if {@code count} is 0
     * @param offset index of the first element
     * @param count number of items that fit
     * @param datatype datatype of the items
     * @param source source, or {@link MPI#ANY_SOURCE}
     * @param tag tag, or {@link MPI#ANY_TAG}
     * @return the request, void until it is started
     * @throws MPIException if the buffer is not one of the datatype
     */
    public Prequest Recv_init(Object buf, int offset, int count, Datatype datatype, int source, int tag)
            throws MPIException {
        return persistent(buf, offset, count, datatype, source, tag, Prequest.Kind.RECEIVE);
    }

    final Prequest persistent(Object buf, int offset, int count, Datatype datatype, int peer, int tag,
            Prequest.Kind kind) {
        try {
            datatype.lengthOf(datatype.arrayOf(buf, count));
        } catch (RuntimeException e) {
            throw raised(Failures.ofMessage(e, datatype, count, 0));
        }
        return new Prequest((Comm) this, buf, offset, count, datatype, peer, tag, kind);
    }
}
