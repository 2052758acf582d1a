package mpi;

import java.lang.ref.Reference;
import mpjbuf.Buffer;
import mpjbuf.BufferException;
import mpjbuf.BufferOverflowException;
import mpjbuf.Messages;
import mpjbuf.Type;
import mpjbuf.TypeMismatchException;
import mpjdev.core.Backoff;
import mpjdev.core.Native;
import mpjdev.core.Resource;
import mpjdev.core.Waits;

/** Messages and packing of buffers of MPJ Express. */
final class BufferMessages {
    private BufferMessages() {}

    static int pack(Object inbuf, int offset, int count, Datatype datatype, Buffer unit) {
        try {
            Buffer into = Failures.present(unit, "the buffer");
            Object array = datatype.arrayOf(inbuf, count);
            int off = inbuf == null ? 0 : offset;
            int n = elements(count, datatype);
            int[] indexes = indexes(array, off, count, n, datatype);
            Messages.append(into, Type.getType(datatype.element), array, off, n, indexes);
            return into.getSize();
        } catch (BufferException e) {
            throw failure(e);
        } catch (RuntimeException e) {
            throw Failures.ofMessage(e, datatype, count, 0);
        } finally {
            Reference.reachabilityFence(datatype);
        }
    }

    static int unpack(Buffer unit, Object outbuf, int offset, int count, Datatype datatype) {
        try {
            Buffer from = Failures.present(unit, "the buffer");
            Object array = datatype.arrayOf(outbuf, count);
            int off = outbuf == null ? 0 : offset;
            int n = elements(count, datatype);
            int[] indexes = indexes(array, off, count, n, datatype);
            if (from.isWritable()) {
                from.commit();
            }
            from.getSectionHeader();
            if (from.getSectionSize() > n) {
                String text = from.getSectionSize() + " packed elements are more than " + n;
                throw new MPIException(MPI.ERR_TRUNCATE, text, null);
            }
            return Messages.take(from, Type.getType(datatype.element), array, off, indexes);
        } catch (BufferException e) {
            throw failure(e);
        } catch (RuntimeException e) {
            throw Failures.ofMessage(e, datatype, count, 0);
        } finally {
            Reference.reachabilityFence(datatype);
        }
    }

    private static int elements(int count, Datatype datatype) {
        if (count < 0) {
            throw new MPIException(MPI.ERR_COUNT, "the count " + count + " is negative", null);
        }
        long n = (long) count * datatype.Size();
        if ((int) n != n) {
            throw new MPIException(MPI.ERR_COUNT, count + " items of " + datatype + " are too many", null);
        }
        return (int) n;
    }

    /** Returns the indexes of the elements of items; null if they are consecutive. */
    private static int[] indexes(Object array, int off, int count, int n, Datatype datatype) {
        if (datatype.unit != 0) {
            return null;
        }
        int[] indexes = new int[n];
        Native.typeElements(datatype.handle(), off, count, datatype.lengthOf(array), indexes, n);
        return indexes;
    }

    // ---- Messages

    static void send(CommFace comm, Buffer buffer, int dest, int tag, boolean synchronous) {
        isend(comm, new Request(), buffer, dest, tag, synchronous).Wait();
    }

    static Request isend(CommFace comm, Request into, Buffer buffer, int dest, int tag, boolean synchronous) {
        into.owner = comm;
        if (dest == MPI.PROC_NULL) {
            return into.begin(new Status());
        }
        long writer = 0;
        try {
            writer = Messages.of(buffer);
            return into.begin(Native.isend(comm.handle(), writer, dest, tag, synchronous, 0));
        } catch (BufferException e) {
            throw comm.raised(failure(e));
        } catch (RuntimeException e) {
            throw comm.raised(Failures.ofMessage(e, MPI.PACKED, 0, tag));
        } finally {
            if (writer != 0) {
                Native.close(writer);
            }
            Reference.reachabilityFence(comm);
        }
    }

    static Status recv(CommFace comm, Buffer buffer, int source, int tag) {
        if (source == MPI.PROC_NULL) {
            return Status.ofNull(MPI.PACKED);
        }
        long reader = Messages.reader(buffer);
        Status status = new Status();
        try {
            int wanted = PointToPoint.wanted(tag);
            long envelope = Backoff.isVirtual()
                    ? Waits.await(Native.irecv(comm.handle(), reader, source, wanted), status)
                    : Native.recv(comm.handle(), reader, source, wanted, status);
            return received(buffer, reader, envelope, status);
        } catch (RuntimeException e) {
            throw comm.raised(Failures.ofMessage(e, MPI.PACKED, 0, tag == MPI.ANY_TAG ? 0 : tag));
        } finally {
            Native.close(reader);
            Reference.reachabilityFence(comm);
        }
    }

    private static Status received(Buffer buffer, long reader, long envelope, Status status) {
        try {
            Messages.received(buffer, reader);
            return status.received((int) (envelope >> Integer.SIZE), (int) envelope, buffer.getSize(), MPI.PACKED);
        } catch (BufferOverflowException e) {
            throw new MPIException(MPI.ERR_TRUNCATE, e.getMessage(), e);
        } catch (BufferException e) {
            throw failure(e);
        }
    }

    static Request irecv(CommFace comm, Buffer buffer, int source, int tag) {
        BufferRequest request = new BufferRequest(buffer);
        request.owner = comm;
        if (source == MPI.PROC_NULL) {
            return request.begin(Status.ofNull(MPI.PACKED));
        }
        Resource reader = new Resource(request, Messages.reader(buffer), Resource.BUFFER);
        try {
            long posted = Native.irecv(comm.handle(), reader.handle(), source, PointToPoint.wanted(tag));
            return request.begin(posted, reader, new Object[0], 0, 0, MPI.PACKED);
        } catch (RuntimeException e) {
            reader.close();
            throw comm.raised(Failures.ofMessage(e, MPI.PACKED, 0, tag == MPI.ANY_TAG ? 0 : tag));
        } finally {
            Reference.reachabilityFence(comm);
        }
    }

    /** A receive into a buffer. */
    private static final class BufferRequest extends Request {
        private final Buffer buffer;

        BufferRequest(Buffer buffer) {
            this.buffer = buffer;
        }

        @Override
        void store(Status status, long envelope, long reader) {
            received(buffer, reader, envelope, status);
        }

        @Override
        RuntimeException failure(RuntimeException thrown) {
            return thrown;
        }
    }

    private static MPIException failure(BufferException e) {
        int errorClass = e instanceof TypeMismatchException ? MPI.ERR_TYPE
                : e instanceof BufferOverflowException ? MPI.ERR_BUFFER : MPI.ERR_OTHER;
        return new MPIException(errorClass, e.getMessage(), e);
    }
}
