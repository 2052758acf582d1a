package mpjdev;

import mpi.MPI;
import mpjbuf.Buffer;

/** The messages of buffers in a communicator of package mpi. */
public final class Comm {
    private final mpi.Comm comm;

    /**
     * Makes an object for a communicator. Internal.
     *
     * @param comm the communicator
     */
    public Comm(mpi.Comm comm) {
        this.comm = comm;
    }

    /**
     * Returns the number of the calling rank.
     *
     * @return 0 to {@code size() - 1}
     */
    public int id() {
        return comm.Rank();
    }

    /**
     * Returns the number of ranks.
     *
     * @return the number
     */
    public int size() {
        return comm.Size();
    }

    /**
     * Sends the contents of a buffer. Blocks as {@link mpi.Comm#Send}. The buffer keeps them.
     *
     * @param buf the buffer
     * @param dest destination
     * @param tag tag, 0 or more
     * @param pt2pt ignored: there is one context
     * @throws MPJDevException as {@link mpi.Comm#Send}
     */
    public void send(Buffer buf, int dest, int tag, boolean pt2pt) {
        comm.Send(buf, 0, buf.getSize(), MPI.PACKED, dest, tag);
    }

    /**
     * Sends the contents of a buffer in synchronous mode. Blocks as {@link mpi.Comm#Ssend}.
     *
     * @param buf the buffer
     * @param dest destination
     * @param tag tag, 0 or more
     * @param pt2pt ignored
     * @throws MPJDevException as {@link mpi.Comm#Ssend}
     */
    public void ssend(Buffer buf, int dest, int tag, boolean pt2pt) {
        comm.Ssend(buf, 0, buf.getSize(), MPI.PACKED, dest, tag);
    }

    /**
     * Starts to send the contents of a buffer, which are captured.
     *
     * @param buf the buffer
     * @param dest destination
     * @param tag tag, 0 or more
     * @param pt2pt ignored
     * @return the request
     * @throws MPJDevException as {@link mpi.Comm#Isend}
     */
    public Request isend(Buffer buf, int dest, int tag, boolean pt2pt) {
        return new Request(comm.Isend(buf, 0, buf.getSize(), MPI.PACKED, dest, tag));
    }

    /**
     * Starts to send the contents of a buffer in synchronous mode.
     *
     * @param buf the buffer
     * @param dest destination
     * @param tag tag, 0 or more
     * @param pt2pt ignored
     * @return the request
     * @throws MPJDevException as {@link mpi.Comm#Issend}
     */
    public Request issend(Buffer buf, int dest, int tag, boolean pt2pt) {
        return new Request(comm.Issend(buf, 0, buf.getSize(), MPI.PACKED, dest, tag));
    }

    /**
     * Receives a message into a buffer, which is readable then. Blocks.
     *
     * @param buf the buffer
     * @param src source, or {@link MPI#ANY_SOURCE}
     * @param tag tag, or {@link MPI#ANY_TAG}
     * @param pt2pt ignored
     * @return the status
     * @throws MPJDevException as {@link mpi.Comm#Recv}
     */
    public Status recv(Buffer buf, int src, int tag, boolean pt2pt) {
        return comm.Recv(buf, 0, buf.getCapacity(), MPI.PACKED, src, tag);
    }

    /**
     * Posts a receive into a buffer.
     *
     * @param buf the buffer, which belongs to the request until it is void
     * @param src source, or {@link MPI#ANY_SOURCE}
     * @param tag tag, or {@link MPI#ANY_TAG}
     * @param status ignored
     * @param pt2pt ignored
     * @return the request
     * @throws MPJDevException as {@link mpi.Comm#Irecv}
     */
    public Request irecv(Buffer buf, int src, int tag, Status status, boolean pt2pt) {
        return new Request(comm.Irecv(buf, 0, buf.getCapacity(), MPI.PACKED, src, tag));
    }

    /**
     * Waits for a message without receiving it. Blocks as {@link mpi.Comm#Probe}.
     *
     * @param src source, or {@link MPI#ANY_SOURCE}
     * @param tag tag, or {@link MPI#ANY_TAG}
     * @return source and tag of the message; type and number of elements of its first section
     * @throws MPJDevException as {@link mpi.Comm#Probe}
     */
    public Status probe(int src, int tag) {
        return comm.Probe(src, tag);
    }

    /**
     * Looks for a message without receiving it. Does not block.
     *
     * @param src source, or {@link MPI#ANY_SOURCE}
     * @param tag tag, or {@link MPI#ANY_TAG}
     * @return as {@link #probe}; null if there is no such message
     * @throws MPJDevException as {@link #probe}
     */
    public Status iprobe(int src, int tag) {
        return comm.Iprobe(src, tag);
    }

    /**
     * Waits until all ranks have called it. Blocks.
     *
     * @throws MPJDevException if a rank has failed, or the communicator has two groups
     */
    public void barrier() {
        if (!(comm instanceof mpi.Intracomm)) {
            throw new MPJDevException("a communicator of two groups has no barrier");
        }
        ((mpi.Intracomm) comm).Barrier();
    }

    /**
     * Frees the communicator.
     *
     * @throws MPJDevException for the communicator of all ranks
     */
    public void free() {
        comm.Free();
    }
}
