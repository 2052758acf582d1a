package mpi;

/**
 * A send or a receive that can be started again and again (MPI-1.1, section 3.9). Between its operations it
 * is void.
 */
public class Prequest extends Request {
    private final Comm comm;
    private final Object buf;
    private final int offset;
    private final int count;
    private final Datatype datatype;
    private final int peer;
    private final int tag;
    private final Kind kind;

    /** Operations that a persistent request can start. */
    enum Kind {
        SEND, BUFFERED_SEND, SYNCHRONOUS_SEND, RECEIVE
    }

    Prequest(Comm comm, Object buf, int offset, int count, Datatype datatype, int peer, int tag, Kind kind) {
        this.comm = comm;
        this.buf = buf;
        this.offset = offset;
        this.count = count;
        this.datatype = datatype;
        this.peer = peer;
        this.tag = tag;
        this.kind = kind;
    }

    /**
     * Starts the operation. Does not block. A send captures the elements of the array now.
     *
     * @throws MPIException if the operation is active, or as the call of its kind
     */
    public void Start() throws MPIException {
        if (!Is_null()) {
            String text = "the persistent request is active: wait for it first";
            throw comm.raised(new MPIException(MPI.ERR_REQUEST, text, null));
        }
        if (kind == Kind.RECEIVE) {
            comm.irecv(this, buf, offset, count, datatype, peer, tag);
        } else if (kind == Kind.BUFFERED_SEND) {
            comm.Bsend(buf, offset, count, datatype, peer, tag);
            begin(0);
        } else {
            comm.isend(this, buf, offset, count, datatype, peer, tag, kind == Kind.SYNCHRONOUS_SEND);
        }
    }

    /**
     * Starts operations in the order of the array. Does not block.
     *
     * @param requests persistent requests; null elements are skipped
     * @throws MPIException as {@link #Start}; earlier elements are started then
     */
    public static void Startall(Prequest[] requests) throws MPIException {
        for (Prequest request : MPI.present(requests, "the array of requests")) {
            if (request != null) {
                request.Start();
            }
        }
    }
}
