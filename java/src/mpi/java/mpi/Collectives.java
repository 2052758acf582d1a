package mpi;

import java.lang.ref.Reference;
import mpjdev.core.Backoff;
import mpjdev.core.Native;
import mpjdev.core.PlatformThread;
import mpjdev.core.ShortCollectives;

/** Calls that move data between all ranks of a communicator, after the checks of their arguments. */
final class Collectives {
    private Collectives() {}

    /** Sends items of the root to all. */
    static void bcast(CommCore comm, Object buf, int offset, int count, Datatype datatype, int root) {
        if (Backoff.isVirtual()) {
            PlatformThread.run(() -> bcastHere(comm, buf, offset, count, datatype, root));
        } else {
            bcastHere(comm, buf, offset, count, datatype, root);
        }
    }

    private static void bcastHere(CommCore comm, Object buf, int offset, int count, Datatype datatype, int root) {
        try {
            Object array = datatype.arrayOf(buf, count);
            int off = buf == null ? 0 : offset;
            int length = datatype.lengthOf(array);
            if (datatype.hasObjects()) {
                ObjectCollectives.bcast(comm, (Object[]) array, off, count, datatype, root);
            } else if (datatype.unit == 0 || !ShortCollectives.bcast(comm.handle(), comm.rank() == root, root,
                    datatype.element, array, length, off, datatype.elements(count))) {
                Native.bcast(comm.handle(), datatype.handle(), array, length, datatype.element, off, count, root);
            }
        } catch (RuntimeException e) {
            throw comm.raised(Failures.ofCollective(e, datatype, count));
        } finally {
            Reference.reachabilityFence(comm);
            Reference.reachabilityFence(datatype);
        }
    }

    /** Moves blocks as the call says. The root is 0 for calls without one. */
    static void move(CommCore comm, int how, int root, Blocks sent, Blocks received) {
        if (Backoff.isVirtual()) {
            PlatformThread.run(() -> moveHere(comm, how, root, sent, received));
        } else {
            moveHere(comm, how, root, sent, received);
        }
    }

    private static void moveHere(CommCore comm, int how, int root, Blocks sent, Blocks received) {
        if (sent.hasObjects() || received.hasObjects()) {
            ObjectCollectives.move(comm, how, root, sent, received);
        } else if (!moveShort(comm, how, root, sent, received)) {
            Native.moveBlocks(comm.handle(), how, root, sent.handle(), sent.array, sent.length, sent.element(),
                    sent.numbers, sent.numbers.length, received.handle(), received.array, received.length,
                    received.element(), received.numbers, received.numbers.length);
        }
        Reference.reachabilityFence(sent);
        Reference.reachabilityFence(received);
        Reference.reachabilityFence(comm);
    }

    /** Moves equal short blocks without gaps. Returns whether they are such blocks. */
    private static boolean moveShort(CommCore comm, int how, int root, Blocks sent, Blocks received) {
        Blocks own = how == Native.SCATTER ? received : sent;
        Blocks other = how == Native.SCATTER ? sent : received;
        int count = own.elements();
        boolean isRoot = comm.rank() == root;
        boolean hasOther = isRoot || how != Native.GATHER && how != Native.SCATTER;
        if (count < 0 || hasOther && (other.elements() != count || other.element() != own.element())) {
            return false;
        }
        return ShortCollectives.move(comm.handle(), how, comm.ranks(), isRoot, root, own.element(), sent.array,
                sent.length, sent.offset(), received.array, received.length, received.offset(), count);
    }

    /** Returns whether this rank is the root, which has to be a rank. */
    static boolean isRoot(CommCore comm, int root) {
        int size = Native.size(comm.handle());
        if (root < 0 || root >= size) {
            throw new MPIException(MPI.ERR_ROOT, "the root " + root + " is outside 0 to " + (size - 1), null);
        }
        return Native.rank(comm.handle()) == root;
    }
}
