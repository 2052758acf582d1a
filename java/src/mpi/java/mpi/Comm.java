package mpi;

import java.lang.ref.Reference;
import mpjdev.core.Native;
import mpjdev.core.Waits;

/**
 * A communicator: a group of ranks whose messages are separate from those of all other communicators.
 *
 * <p>Any number of threads may use a communicator at once.
 */
public class Comm extends CommFace {
    private static final int STATUS_BITS = 255;

    private final Attributes attributes;

    Comm(long handle, Attributes attributes) {
        super(handle);
        this.attributes = attributes;
    }

    /** Returns a communicator of the class and with the topology of this one. */
    Comm made(long handle, Attributes copied) {
        return new Comm(handle, copied);
    }

    /**
     * Returns an attribute that is a number (MPI-1.1, section 5.7).
     *
     * @param keyval {@link MPI#TAG_UB}, {@link MPI#HOST}, {@link MPI#IO}, {@link MPI#WTIME_IS_GLOBAL}, or the
     *     key of an attribute that the program has set
     * @return the number
     * @throws MPIException if there is no such number
     */
    public Integer Attr_get(int keyval) throws MPIException {
        Object value = Get_attr(keyval);
        if (value instanceof Integer) {
            return (Integer) value;
        }
        throw raised(new MPIException(MPI.ERR_ARG, "attribute " + keyval + " is no number: call Get_attr", null));
    }

    /**
     * Sets an attribute of this communicator at this rank. A clone gets a copy.
     *
     * @param keyval a key above {@link MPI#WTIME_IS_GLOBAL}
     * @param value the number
     * @throws MPIException if the key is not above
     */
    public void Attr_put(int keyval, int value) throws MPIException {
        Set_attr(keyval, value);
    }

    /**
     * Removes an attribute that the program has set.
     *
     * @param keyval its key
     * @throws MPIException if there is no such attribute
     */
    public void Attr_delete(int keyval) throws MPIException {
        try {
            attributes.delete(keyval);
        } catch (MPIException e) {
            throw raised(e);
        }
    }

    /**
     * Returns an attribute: {@link #Attr_get} for values of any class, as in FastMPJ.
     *
     * @param keyval as for {@link #Attr_get}
     * @return the value
     * @throws MPIException if there is no such attribute
     */
    public Object Get_attr(int keyval) throws MPIException {
        switch (keyval) {
            case MPI.TAG_UB:
                return tagMax();
            case MPI.HOST:
                return MPI.PROC_NULL;
            case MPI.IO:
                return Rank();
            case MPI.WTIME_IS_GLOBAL:
                return 0;
            default:
                try {
                    return attributes.get(keyval);
                } catch (MPIException e) {
                    throw raised(e);
                }
        }
    }

    /**
     * Sets an attribute: {@link #Attr_put} for values of any class, as in FastMPJ.
     *
     * @param keyval a key above {@link MPI#WTIME_IS_GLOBAL}
     * @param value the value, not null
     * @throws MPIException if the key is not above, or the value is null
     */
    public void Set_attr(int keyval, Object value) throws MPIException {
        try {
            attributes.put(keyval, value);
        } catch (MPIException e) {
            throw raised(e);
        }
    }

    /**
     * Removes an attribute: {@link #Attr_delete} under its name in FastMPJ.
     *
     * @param keyval its key
     * @throws MPIException as {@link #Attr_delete}
     */
    public void Delete_attr(int keyval) throws MPIException {
        Attr_delete(keyval);
    }

    private int tagMax() {
        try {
            return Native.tagMax(handle());
        } catch (RuntimeException e) {
            throw raised(Failures.of(e));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Returns the octets that {@link #Pack} needs for items (MPI-1.1, section 3.13).
     *
     * @param incount number of items
     * @param datatype datatype of the items
     * @return the number of octets from a multiple of 8 on; for objects 8, which is no bound
     * @throws MPIException if the count is negative or too large
     */
    public int Pack_size(int incount, Datatype datatype) throws MPIException {
        try {
            return PackingUnits.size(incount, datatype);
        } catch (MPIException e) {
            throw raised(e);
        }
    }

    /**
     * Appends items to a packing unit, which a message of {@link MPI#PACKED} moves (MPI-1.1, section 3.13).
     *
     * @param inbuf array of the datatype's base type; null if {@code incount} is 0
     * @param offset index of the first element
     * @param incount number of items
     * @param datatype datatype of the items
     * @param outbuf array of the packing unit
     * @param position where the packing unit ends so far; 0 begins one. It is rounded up to a multiple of 8
     * @return where the packing unit ends now
     * @throws MPIException as {@link #Send}, or if the items do not fit
     */
    public int Pack(Object inbuf, int offset, int incount, Datatype datatype, byte[] outbuf, int position)
            throws MPIException {
        try {
            return PackingUnits.pack(inbuf, offset, incount, datatype, outbuf, position);
        } catch (MPIException e) {
            throw raised(e);
        }
    }

    /**
     * Stores items of a packing unit: all that one call of {@link #Pack} has appended.
     *
     * @param inbuf array of the packing unit
     * @param position where the items begin: 0, or the result of the call for the items before
     * @param outbuf array of the datatype's base type; null if {@code outcount} is 0
     * @param offset index of the first element
     * @param outcount number of items that fit; elements beyond the packed ones stay as they are
     * @param datatype datatype of the items
     * @return where the packed items end
     * @throws MPIException as {@link #Recv}, or if nothing is packed there
     */
    public int Unpack(byte[] inbuf, int position, Object outbuf, int offset, int outcount, Datatype datatype)
            throws MPIException {
        try {
            return PackingUnits.unpack(inbuf, position, outbuf, offset, outcount, datatype);
        } catch (MPIException e) {
            throw raised(e);
        }
    }

    /**
     * Compares two communicators (MPI-1.1, section 5.4.1).
     *
     * @param comm1 a communicator
     * @param comm2 a communicator
     * @return {@link MPI#IDENT} for the same one; {@link MPI#CONGRUENT} for the same members in the same
     *     order, {@link MPI#SIMILAR} in another order; {@link MPI#UNEQUAL} for other members
     * @throws MPIException if a communicator is null or was freed
     */
    public static int Compare(Comm comm1, Comm comm2) throws MPIException {
        if (comm1 == null || comm2 == null) {
            throw MPI.raised(new MPIException(MPI.ERR_COMM, "the communicator is null", null));
        }
        try {
            return Native.compareComms(comm1.handle(), comm2.handle());
        } catch (RuntimeException e) {
            throw comm1.raised(Failures.of(e));
        } finally {
            Reference.reachabilityFence(comm1);
            Reference.reachabilityFence(comm2);
        }
    }

    /**
     * Returns the members.
     *
     * @return their group
     * @throws MPIException if the communicator was freed
     */
    public Group Group() throws MPIException {
        int[] members = new int[Size()];
        try {
            Native.members(handle(), members, members.length);
        } catch (RuntimeException e) {
            throw raised(Failures.of(e));
        } finally {
            Reference.reachabilityFence(this);
        }
        return new Group(members, members[Rank()]);
    }

    /**
     * Makes a communicator of the same members, with the topology and attributes of this one (MPI-1.1,
     * section 5.4.2). Collective; blocks.
     *
     * @return a communicator of the class of this one
     * @throws MPIException if a rank has failed, or the communicator was freed
     */
    @Override
    public Object clone() {
        try {
            return inherit(made(Waits.complete(Native.startDup(handle())), new Attributes(attributes)));
        } catch (RuntimeException e) {
            throw raised(Failures.of(e));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Makes an intercommunicator of two groups (MPI-1.1, section 5.6.2). Collective over both local
     * communicators; blocks. The groups have no rank in common. This communicator, the other leader's rank in
     * it and the tag matter at the leaders only.
     *
     * @param local_comm the communicator of the own group
     * @param local_leader rank in it that leads the group
     * @param remote_leader rank in this communicator that leads the other group
     * @param tag tag of the leaders' messages: concurrent calls have different ones
     * @return the intercommunicator
     * @throws MPIException at all ranks of a group if an argument of its leader is invalid, or the groups
     *     overlap ({@link MPI#ERR_GROUP}); if a rank has failed, or the local communicator was freed
     */
    public Intercomm Create_intercomm(Comm local_comm, int local_leader, int remote_leader, int tag)
            throws MPIException {
        if (!(local_comm instanceof Intracomm)) {
            throw raised(new MPIException(MPI.ERR_COMM, "the local communicator is null or has two groups", null));
        }
        try {
            long operation = Native.startIntercomm(local_comm.handle(), local_leader, handle(), remote_leader, tag);
            return local_comm.inherit(new Intercomm(Waits.complete(operation), new Attributes()));
        } catch (RuntimeException e) {
            throw raised(Failures.ofMessage(e, null, 0, tag));
        } finally {
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(local_comm);
        }
    }

    /**
     * Frees this communicator at this rank (MPI-1.1, section 5.4.3). Later calls throw. Messages that no
     * receive has taken are dropped.
     *
     * @throws MPIException for {@link MPI#COMM_WORLD} and {@link MPI#COMM_SELF}
     */
    public void Free() throws MPIException {
        if (this == MPI.COMM_WORLD || this == MPI.COMM_SELF) {
            String text = "MPI.COMM_WORLD and MPI.COMM_SELF cannot be freed: MPI.Finalize does it";
            throw raised(new MPIException(MPI.ERR_COMM, text, null));
        }
        release();
    }

    /**
     * Returns whether messages go to another group.
     *
     * @return whether this is an {@link Intercomm}
     */
    public boolean Test_inter() {
        return false;
    }

    /**
     * Returns the kind of the topology.
     *
     * @return {@link MPI#GRAPH}, {@link MPI#CART}, or {@link MPI#UNDEFINED} without one
     */
    public int Topo_test() {
        return MPI.UNDEFINED;
    }

    /**
     * Sets what a failed call does: throw, or end the job. Calls are those of this communicator at this rank,
     * and waits and tests for its requests. The handler of {@link MPI#COMM_WORLD} is also that of calls
     * without a communicator. Communicators that are made of this one later inherit the handler.
     *
     * @param errhandler {@link MPI#ERRORS_RETURN}, as at first, or {@link MPI#ERRORS_ARE_FATAL}
     * @throws MPIException if it is null
     */
    public void Errhandler_set(Errhandler errhandler) throws MPIException {
        handler = present(errhandler, "the error handler");
    }

    /**
     * Returns what a failed call does.
     *
     * @return the handler that was set last
     */
    public Errhandler Errhandler_get() {
        return handler;
    }

    /**
     * Sets what a failed call does: {@link #Errhandler_set} under its name in the code of mpiJava.
     *
     * @param errhandler as for {@link #Errhandler_set}
     * @throws MPIException as {@link #Errhandler_set}
     */
    public void Errorhandler_set(Errhandler errhandler) throws MPIException {
        Errhandler_set(errhandler);
    }

    /**
     * Returns what a failed call does: {@link #Errhandler_get} under its name in the code of mpiJava.
     *
     * @return as {@link #Errhandler_get}
     */
    public Errhandler Errorhandler_get() {
        return Errhandler_get();
    }

    /** Gives a communicator that was made of this one its error handler. */
    final <T extends Comm> T inherit(T made) {
        made.handler = handler;
        return made;
    }

    /**
     * Ends all ranks of the job (MPI-1.1, section 7.5). Does not return.
     *
     * @param errorcode exit status of the job, of which a system has the lowest eight bits; 0 becomes 1
     */
    public void Abort(int errorcode) {
        end(errorcode, "MPI.Abort(" + errorcode + ")");
    }

    /** Ends all ranks of the job with this status. Does not return. */
    static void end(int errorcode, String why) {
        int status = (errorcode & STATUS_BITS) == 0 ? 1 : errorcode & STATUS_BITS;
        System.out.flush();
        System.err.flush();
        Native.endJob(status, why);
        System.err.println("mpjdev: rank " + MPI.worldRank() + " ends the job: " + why);
        // The launcher ends the other ranks. Shutdown hooks could wait for them.
        Runtime.getRuntime().halt(status);
    }
}
