package compat;

import java.nio.ByteOrder;
import mpjbuf.Buffer;
import mpjbuf.BufferException;
import mpjbuf.BufferFactory;
import mpjbuf.RawBuffer;
import mpjbuf.Type;
import mpjdev.Comm;
import mpjdev.MPJDev;
import mpjdev.MPJDevException;
import mpjdev.Request;
import mpjdev.Status;

/**
 * Names every public member of packages mpjbuf and mpjdev that the specification lists, with its types.
 * Nothing here runs: it has to compile.
 */
final class EveryCompatSignature {
    private EveryCompatSignature() {}

    static void buffer(RawBuffer raw, byte[] octets, ByteOrder order) throws BufferException {
        Buffer buffer = new Buffer(Buffer.SECTION_OVERHEAD);
        buffer = new Buffer(raw, 0, Buffer.ALIGNMENT_UNIT);
        buffer.putSectionHeader(Type.BYTE);
        buffer.commit();
        Type type = buffer.getSectionHeader();
        int number = buffer.getSectionSize() + buffer.getRemaining() + buffer.offset() + buffer.getSize()
                + buffer.getCapacity();
        boolean is = buffer.isWritable();
        buffer.clear();
        buffer.free();
        buffer.setSize(number);
        buffer.setStaticBuffer(buffer.getStaticBuffer());
        buffer.setDynamicBuffer(buffer.getDynamicBuffer());
        buffer.setEncoding(buffer.getEncoding());
    }

    static void memory() {
        RawBuffer raw = BufferFactory.create(8);
        BufferFactory.destroy(raw);
        BufferFactory.init("nio");
        boolean is = BufferFactory.initialized();
        BufferFactory.shut();
    }

    static Type[] types() {
        Type type = Type.getType(Type.BYTE.getCode());
        return new Type[] {type, Type.BYTE, Type.CHAR, Type.SHORT, Type.BOOLEAN, Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE,
            Type.OBJECT, Type.BYTE_DYNAMIC, Type.CHAR_DYNAMIC, Type.SHORT_DYNAMIC, Type.BOOLEAN_DYNAMIC, Type.INT_DYNAMIC,
            Type.LONG_DYNAMIC, Type.FLOAT_DYNAMIC, Type.DOUBLE_DYNAMIC, Type.UNDEFINED};
    }

    static void elements(Buffer buffer, byte[] a, int[] i) throws BufferException {
        buffer.write(a, 0, 1);
        buffer.read(a, 0, 1);
        buffer.gather(a, 1, 0, i);
        buffer.scatter(a, 1, 0, i);
        buffer.strGather(a, 0, 1, 0, 1, i);
        buffer.strScatter(a, 0, 1, 0, 1, i);
    }

    static void elements(Buffer buffer, char[] a, int[] i) throws BufferException {
        buffer.write(a, 0, 1);
        buffer.read(a, 0, 1);
        buffer.gather(a, 1, 0, i);
        buffer.scatter(a, 1, 0, i);
        buffer.strGather(a, 0, 1, 0, 1, i);
        buffer.strScatter(a, 0, 1, 0, 1, i);
    }

    static void elements(Buffer buffer, short[] a, int[] i) throws BufferException {
        buffer.write(a, 0, 1);
        buffer.read(a, 0, 1);
        buffer.gather(a, 1, 0, i);
        buffer.scatter(a, 1, 0, i);
        buffer.strGather(a, 0, 1, 0, 1, i);
        buffer.strScatter(a, 0, 1, 0, 1, i);
    }

    static void elements(Buffer buffer, boolean[] a, int[] i) throws BufferException {
        buffer.write(a, 0, 1);
        buffer.read(a, 0, 1);
        buffer.gather(a, 1, 0, i);
        buffer.scatter(a, 1, 0, i);
        buffer.strGather(a, 0, 1, 0, 1, i);
        buffer.strScatter(a, 0, 1, 0, 1, i);
    }

    static void elements(Buffer buffer, int[] a, int[] i) throws BufferException {
        buffer.write(a, 0, 1);
        buffer.read(a, 0, 1);
        buffer.gather(a, 1, 0, i);
        buffer.scatter(a, 1, 0, i);
        buffer.strGather(a, 0, 1, 0, 1, i);
        buffer.strScatter(a, 0, 1, 0, 1, i);
    }

    static void elements(Buffer buffer, long[] a, int[] i) throws BufferException {
        buffer.write(a, 0, 1);
        buffer.read(a, 0, 1);
        buffer.gather(a, 1, 0, i);
        buffer.scatter(a, 1, 0, i);
        buffer.strGather(a, 0, 1, 0, 1, i);
        buffer.strScatter(a, 0, 1, 0, 1, i);
    }

    static void elements(Buffer buffer, float[] a, int[] i) throws BufferException {
        buffer.write(a, 0, 1);
        buffer.read(a, 0, 1);
        buffer.gather(a, 1, 0, i);
        buffer.scatter(a, 1, 0, i);
        buffer.strGather(a, 0, 1, 0, 1, i);
        buffer.strScatter(a, 0, 1, 0, 1, i);
    }

    static void elements(Buffer buffer, double[] a, int[] i) throws BufferException {
        buffer.write(a, 0, 1);
        buffer.read(a, 0, 1);
        buffer.gather(a, 1, 0, i);
        buffer.scatter(a, 1, 0, i);
        buffer.strGather(a, 0, 1, 0, 1, i);
        buffer.strScatter(a, 0, 1, 0, 1, i);
    }

    static void elements(Buffer buffer, Object[] a, int[] i) throws BufferException {
        buffer.write(a, 0, 1);
        buffer.read(a, 0, 1);
        buffer.gather(a, 1, 0, i);
        buffer.scatter(a, 1, 0, i);
        buffer.strGather(a, 0, 1, 0, 1, i);
        buffer.strScatter(a, 0, 1, 0, 1, i);
    }

    static void device(String[] args, Buffer buffer, Status status, Request[] requests) throws MPJDevException {
        MPJDev.init(args);
        Comm world = MPJDev.WORLD;
        int number = world.id() + world.size() + MPJDev.getSendOverhead() + MPJDev.getRecvOverhead();
        world.send(buffer, 0, 0, true);
        world.ssend(buffer, 0, 0, true);
        Request request = world.isend(buffer, 0, 0, true);
        request = world.issend(buffer, 0, 0, true);
        request = world.irecv(buffer, 0, 0, status, true);
        Status received = world.recv(buffer, 0, 0, true);
        received = world.probe(0, 0);
        received = world.iprobe(0, 0);
        received = request.iwait();
        received = request.itest();
        received = Request.iwaitany(requests);
        boolean is = request.isnull() && request.cancel();
        number = received.source + received.tag + received.index + received.count + received.countInBytes
                + received.numEls;
        Type type = received.type;
        world.barrier();
        world.free();
        MPJDev.finish();
    }

    static void faces(mpi.Status status, mpi.MPIException failure, mpi.Comm comm) {
        Status device = status;
        MPJDevException above = failure;
        xdev.XDevException top = above;
        RuntimeException unchecked = top;
        Comm world = comm.mpjdevComm;
    }
}
