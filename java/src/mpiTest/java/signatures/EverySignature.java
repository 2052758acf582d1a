package signatures;

import java.nio.ByteBuffer;
import mpi.CartParms;
import mpi.Cartcomm;
import mpi.Comm;
import mpi.Datatype;
import mpi.Errhandler;
import mpi.GraphParms;
import mpi.Graphcomm;
import mpi.Group;
import mpi.Intercomm;
import mpi.Intracomm;
import mpi.MPI;
import mpi.MPIException;
import mpi.Op;
import mpi.Prequest;
import mpi.Request;
import mpi.ShiftParms;
import mpi.Status;
import mpi.User_function;

/**
 * Names every public class, field, constructor and method of package mpi once, each with the types that the
 * specification gives it. Nothing here runs: it has to compile. {@code SignaturesTest} finds members that are
 * missing here.
 *
 * <p>It covers environment, point to point, requests, datatypes, groups, communicators and topologies. The
 * collective calls with data are not in the package yet, nor are their operations.
 */
final class EverySignature {
    private EverySignature() {}

    // ---- MPI

    static void environment(String[] args) throws MPIException {
        String[] own = MPI.Init(args);
        own = MPI.initThread(MPI.THREAD_MULTIPLE, MPI.THREAD_SINGLE, own);
        boolean is = MPI.Initialized();
        is = MPI.Finalized();
        is = MPI.isMainThread();
        int level = MPI.queryThread();
        double time = MPI.Wtime();
        time = MPI.Wtick();
        String host = MPI.Get_processor_name();
        MPI.Buffer_attach(new byte[MPI.BSEND_OVERHEAD]);
        MPI.Buffer_attach(ByteBuffer.allocate(MPI.BSEND_OVERHEAD));
        byte[] buffer = MPI.Buffer_detach();
        MPI.Finalize();
        MPI.COMM_WORLD = null;
    }

    /** The constants are usable where Java wants constants. */
    static String constant(int value) {
        switch (value) {
            case MPI.IDENT:
                return "IDENT";
            case MPI.SIMILAR:
                return "SIMILAR";
            case MPI.CONGRUENT:
                return "CONGRUENT";
            default:
                return "";
        }
    }

    static int[] numbers() {
        return new int[] {MPI.UNDEFINED, MPI.ANY_SOURCE, MPI.ANY_TAG, MPI.PROC_NULL, MPI.IDENT, MPI.SIMILAR, MPI.UNEQUAL,
            MPI.CONGRUENT, MPI.GRAPH, MPI.CART, MPI.TAG_UB, MPI.HOST, MPI.IO, MPI.WTIME_IS_GLOBAL, MPI.THREAD_SINGLE,
            MPI.THREAD_FUNNELED, MPI.THREAD_SERIALIZED, MPI.THREAD_MULTIPLE, MPI.SEND_OVERHEAD, MPI.RECV_OVERHEAD,
            MPI.BSEND_OVERHEAD};
    }

    static int[] errorClasses() {
        return new int[] {MPI.ERR_BUFFER, MPI.ERR_COUNT, MPI.ERR_TYPE, MPI.ERR_TAG, MPI.ERR_COMM, MPI.ERR_RANK,
            MPI.ERR_REQUEST, MPI.ERR_ROOT, MPI.ERR_GROUP, MPI.ERR_OP, MPI.ERR_TOPOLOGY, MPI.ERR_DIMS, MPI.ERR_ARG,
            MPI.ERR_UNKNOWN, MPI.ERR_TRUNCATE, MPI.ERR_OTHER, MPI.ERR_INTERN};
    }

    static Datatype[] types() {
        return new Datatype[] {MPI.BYTE, MPI.CHAR, MPI.SHORT, MPI.BOOLEAN, MPI.INT, MPI.LONG, MPI.FLOAT, MPI.DOUBLE,
            MPI.PACKED, MPI.LB, MPI.UB, MPI.OBJECT, MPI.NULL, MPI.SHORT2, MPI.INT2, MPI.LONG2, MPI.FLOAT2, MPI.DOUBLE2};
    }

    static void objects() {
        Intracomm world = MPI.COMM_WORLD;
        MPI.COMM_SELF = world;
        Comm none = MPI.COMM_NULL;
        Group empty = MPI.GROUP_EMPTY;
        Group noGroup = MPI.GROUP_NULL;
        Request idle = MPI.REQUEST_NULL;
        Status nothing = MPI.EMPTY_STATUS;
        int processors = MPI.NUM_OF_PROCESSORS;
        boolean traces = MPI.DEBUG;
        MPI.isOldSelected = traces;
        MPI.Errorhandler_set(MPI.ERRORS_ARE_FATAL);
        Errhandler handler = MPI.Errorhandler_get();
        handler = MPI.ERRORS_RETURN;
    }

    static int exceptions(String text, Throwable cause) {
        MPIException e = new MPIException();
        e = new MPIException(text);
        e = new MPIException(cause);
        e = new MPIException(text, cause);
        RuntimeException unchecked = e;
        return e.getErrorClass();
    }

    // ---- Comm

    static void send(Comm comm, Object buf, int offset, int count, Datatype type, int dest, int tag) throws MPIException {
        comm.Send(buf, offset, count, type, dest, tag);
        comm.Bsend(buf, offset, count, type, dest, tag);
        comm.Ssend(buf, offset, count, type, dest, tag);
        comm.Rsend(buf, offset, count, type, dest, tag);
        Request request = comm.Isend(buf, offset, count, type, dest, tag);
        request = comm.Ibsend(buf, offset, count, type, dest, tag);
        request = comm.Issend(buf, offset, count, type, dest, tag);
        request = comm.Irsend(buf, offset, count, type, dest, tag);
        Prequest persistent = comm.Send_init(buf, offset, count, type, dest, tag);
        persistent = comm.Bsend_init(buf, offset, count, type, dest, tag);
        persistent = comm.Ssend_init(buf, offset, count, type, dest, tag);
        persistent = comm.Rsend_init(buf, offset, count, type, dest, tag);
    }

    /** A function of a program. */
    static final class Function extends User_function {
        @Override
        public void Call(Object invec, int inoffset, Object inoutvec, int inoutoffset, int count, Datatype datatype)
                throws MPIException {
            datatype.Size();
        }
    }

    static boolean operations(User_function function, Object vector, Datatype type) throws MPIException {
        function.Call(vector, 0, vector, 0, 1, type);
        Op[] predefined = {MPI.MAX, MPI.MIN, MPI.SUM, MPI.PROD, MPI.LAND, MPI.BAND, MPI.LOR, MPI.BOR, MPI.LXOR, MPI.BXOR,
            MPI.MAXLOC, MPI.MINLOC};
        Op op = new Op(function, predefined[0].opCode > 0);
        op.free();
        return op.Is_null();
    }

    static void collectives(Intracomm comm, Object sendbuf, int[] counts, int[] displs, Object recvbuf, int offset, int count,
            Datatype type, Op op, int root) throws MPIException {
        comm.Bcast(sendbuf, offset, count, type, root);
        comm.Gather(sendbuf, offset, count, type, recvbuf, offset, count, type, root);
        comm.Gatherv(sendbuf, offset, count, type, recvbuf, offset, counts, displs, type, root);
        comm.Scatter(sendbuf, offset, count, type, recvbuf, offset, count, type, root);
        comm.Scatterv(sendbuf, offset, counts, displs, type, recvbuf, offset, count, type, root);
        comm.Allgather(sendbuf, offset, count, type, recvbuf, offset, count, type);
        comm.Allgatherv(sendbuf, offset, count, type, recvbuf, offset, counts, displs, type);
        comm.Alltoall(sendbuf, offset, count, type, recvbuf, offset, count, type);
        comm.Alltoallv(sendbuf, offset, counts, displs, type, recvbuf, offset, counts, displs, type);
        comm.Reduce(sendbuf, offset, recvbuf, offset, count, type, op, root);
        comm.Allreduce(sendbuf, offset, recvbuf, offset, count, type, op);
        comm.Reduce_scatter(sendbuf, offset, recvbuf, offset, counts, type, op);
        comm.Scan(sendbuf, offset, recvbuf, offset, count, type, op);
    }

    static int pack(Comm comm, Object buf, int offset, int count, Datatype type, byte[] unit, int position)
            throws MPIException {
        position = comm.Pack_size(count, type);
        position = comm.Pack(buf, offset, count, type, unit, position);
        return comm.Unpack(unit, position, buf, offset, count, type);
    }

    static void receive(Comm comm, Object buf, int offset, int count, Datatype type, int source, int tag)
            throws MPIException {
        Status status = comm.Recv(buf, offset, count, type, source, tag);
        Request request = comm.Irecv(buf, offset, count, type, source, tag);
        Prequest persistent = comm.Recv_init(buf, offset, count, type, source, tag);
        status = comm.Probe(source, tag);
        status = comm.Iprobe(source, tag);
        status = comm.Sendrecv(buf, offset, count, type, source, tag, buf, offset, count, type, source, tag);
        status = comm.Sendrecv_replace(buf, offset, count, type, source, tag, source, tag);
    }

    static void communicator(Comm comm, Comm other) throws MPIException {
        int number = comm.Size();
        number = comm.Rank();
        number = comm.Topo_test();
        number = Comm.Compare(comm, other);
        Group group = comm.Group();
        boolean is = comm.Is_null();
        is = comm.Test_inter();
        Comm copy = (Comm) comm.clone();
        copy.Free();
        comm.Abort(number);
    }

    static void handlers(Comm comm) throws MPIException {
        Errhandler handler = comm.Errhandler_get();
        comm.Errhandler_set(handler);
        handler = comm.Errorhandler_get();
        comm.Errorhandler_set(handler);
    }

    static void attributes(Comm comm, int key) throws MPIException {
        int number = comm.Attr_get(key);
        Object value = comm.Attr_get(key);
        comm.Attr_put(key, number);
        comm.Attr_delete(key);
        value = comm.Get_attr(key);
        comm.Set_attr(key, value);
        comm.Delete_attr(key);
    }

    // ---- Intracomm, topologies

    static void intracomm(Intracomm comm, Group group, int[] numbers, boolean[] flags) throws MPIException {
        Intracomm made = comm.Split(MPI.UNDEFINED, 0);
        made = comm.Create(group);
        made = comm.Creat(group);
        made.Barrier();
        Cartcomm grid = comm.Create_cart(numbers, flags, false);
        Graphcomm graph = comm.Create_graph(numbers, numbers, false);
    }

    static void intercomm(Comm peer, Comm local) throws MPIException {
        Intercomm inter = peer.Create_intercomm(local, 0, 0, 0);
        int number = inter.Remote_size();
        Group group = inter.Remote_group();
        Intracomm merged = inter.Merge(false);
        Comm comm = inter;
    }

    static void grid(Cartcomm grid, int[] dims, boolean[] flags) throws MPIException {
        Cartcomm.Dims_create(grid.Size(), dims);
        CartParms parms = grid.Get();
        parms = new CartParms(parms.dims, parms.periods, parms.coords);
        int rank = grid.Rank(parms.coords);
        int[] coords = grid.Coords(rank);
        ShiftParms shift = grid.Shift(0, 1);
        shift = new ShiftParms(shift.rank_source, shift.rank_dest);
        Cartcomm part = grid.Sub(flags);
        rank = grid.Map(dims, flags);
    }

    static void graph(Graphcomm graph) throws MPIException {
        GraphParms parms = graph.Get();
        parms = new GraphParms(parms.index, parms.edges);
        int[] neighbours = graph.Neighbours(0);
        neighbours = graph.Neighbors(0);
        int rank = graph.Map(parms.index, parms.edges);
    }

    // ---- Group

    static void group(Group group, Group other, int[] ranks, int[][] ranges) throws MPIException {
        int number = group.Size();
        number = group.Rank();
        number = Group.Compare(group, other);
        int[] translated = Group.Translate_ranks(group, ranks, other);
        Group made = Group.Union(group, other);
        made = Group.Intersection(group, other);
        made = Group.Difference(group, other);
        made = group.Incl(ranks);
        made = group.Excl(ranks);
        made = group.Range_incl(ranges);
        made = group.Range_excl(ranges);
        made.free();
    }

    // ---- Datatype

    static void datatype(Datatype old, int[] blocks, int[] displacements, Datatype[] types) throws MPIException {
        Datatype type = Datatype.Contiguous(1, old);
        type = Datatype.Vector(1, 1, 1, old);
        type = Datatype.Hvector(1, 1, 1, old);
        type = Datatype.Indexed(blocks, displacements, old);
        type = Datatype.Hindexed(blocks, displacements, old);
        type = Datatype.Struct(blocks, displacements, types);
        type.Commit();
        int number = type.Extent() + type.Size() + type.Lb() + type.Ub();
        number = type.baseType + type.getType() + type.getByteSize();
        String name = type.Get_name();
        type.Set_name(name);
        type.free();
    }

    // ---- Request, Prequest, Status

    static void requests(Request request, Request[] requests) throws MPIException {
        Status status = request.Wait();
        status = request.Test();
        status = request.Get_status();
        boolean is = request.Is_null();
        request.Cancel();
        request.Free();
        status = Request.Waitany(requests);
        status = Request.Testany(requests);
        Status[] statuses = Request.Waitall(requests);
        statuses = Request.Testall(requests);
        statuses = Request.Waitsome(requests);
        statuses = Request.Testsome(requests);
    }

    static void persistent(Prequest request, Prequest[] requests) throws MPIException {
        request.Start();
        Prequest.Startall(requests);
        Request same = request;
    }

    static int status(Datatype type) throws MPIException {
        Status status = new Status();
        boolean is = status.Test_cancelled();
        int number = status.Get_count(type) + status.Get_elements(type);
        return number + status.source + status.tag + status.index + status.count + status.numEls + status.countInBytes
                + status.error;
    }
}
