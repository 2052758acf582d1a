package mpjdev.core;

/**
 * Collective calls with short parts of arrays, which pass through the {@link BounceBuffer} of the calling
 * thread. Internal.
 *
 * <p>Each method returns whether it has made the call. A call whose elements are too many, or outside their
 * array, has to be made by the methods of {@link Native} for arrays.
 */
public final class ShortCollectives {
    /** Octets of the longest block that pays in a call without slots. */
    private static final int LONGEST = 1024;

    private ShortCollectives() {}

    /**
     * Sends elements of the root to all.
     *
     * @param comm native communicator
     * @param isRoot whether this rank is the root
     * @param root root
     * @param type type code of the array
     * @param array array to send from, or to receive into
     * @param length its length
     * @param off index of the first element
     * @param count number of elements
     * @return whether it was made
     */
    public static boolean bcast(long comm, boolean isRoot, int root, int type, Object array, int length, int off,
            int count) {
        if (count > BounceBuffer.elements(type, LONGEST)) {
            return false;
        }
        BounceBuffer bounce = BounceBuffer.of(type, length, off, count);
        if (bounce == null) {
            return false;
        }
        // A receiver that gets fewer elements keeps those behind them.
        bounce.put(array, type, off, count);
        Native.bcastBounced(comm, bounce.address, count, type, root);
        if (!isRoot) {
            bounce.get(array, type, off, count);
        }
        return true;
    }

    /**
     * Moves equal blocks as {@code how} says. An array that only the root uses is not used elsewhere.
     *
     * @param comm native communicator
     * @param how {@link Native#GATHER}, {@link Native#SCATTER}, {@link Native#ALLGATHER} or
     *     {@link Native#ALLTOALL}; no other call is made
     * @param ranks number of ranks
     * @param isRoot whether this rank is the root
     * @param root root of a call that has one
     * @param type type code of both arrays
     * @param from array to send from
     * @param fromLength its length
     * @param fromOff index of the first element to send
     * @param to array to receive into
     * @param toLength its length
     * @param toOff index of the first element to receive
     * @param count number of elements of each block
     * @return whether it was made
     */
    public static boolean move(long comm, int how, int ranks, boolean isRoot, int root, int type, Object from,
            int fromLength, int fromOff, Object to, int toLength, int toOff, int count) {
        if (count < 0 || count > BounceBuffer.elements(type, LONGEST)) {
            return false;
        }
        switch (how) {
            case Native.GATHER:
                return gather(comm, ranks, isRoot, root, type, from, fromLength, fromOff, to, toLength, toOff, count);
            case Native.SCATTER:
                return scatter(comm, ranks, isRoot, root, type, from, fromLength, fromOff, to, toLength, toOff, count);
            case Native.ALLGATHER:
            case Native.ALLTOALL:
                return exchange(comm, how, ranks, type, from, fromLength, fromOff, to, toLength, toOff, count);
            default:
                return false;
        }
    }

    private static boolean gather(long comm, int ranks, boolean isRoot, int root, int type, Object from, int fromLength,
            int fromOff, Object to, int toLength, int toOff, int count) {
        if (fromOff < 0 || fromOff > fromLength - count) {
            return false;
        }
        BounceBuffer bounce = isRoot ? BounceBuffer.of(type, toLength, toOff, count * ranks)
                : BounceBuffer.of(type, fromLength, fromOff, count);
        if (bounce == null) {
            return false;
        }
        if (!isRoot) {
            bounce.put(from, type, fromOff, count);
            Native.moveAtRootBounced(comm, Native.GATHER, root, bounce.address, count, type);
            return true;
        }
        System.arraycopy(from, fromOff, to, toOff + root * count, count);
        bounce.put(to, type, toOff, count * ranks);
        Native.moveAtRootBounced(comm, Native.GATHER, root, bounce.address, count * ranks, type);
        bounce.get(to, type, toOff, count * ranks);
        return true;
    }

    private static boolean scatter(long comm, int ranks, boolean isRoot, int root, int type, Object from,
            int fromLength, int fromOff, Object to, int toLength, int toOff, int count) {
        if (toOff < 0 || toOff > toLength - count) {
            return false;
        }
        BounceBuffer bounce = isRoot ? BounceBuffer.of(type, fromLength, fromOff, count * ranks)
                : BounceBuffer.of(type, toLength, toOff, count);
        if (bounce == null) {
            return false;
        }
        if (!isRoot) {
            bounce.put(to, type, toOff, count);
            Native.moveAtRootBounced(comm, Native.SCATTER, root, bounce.address, count, type);
            bounce.get(to, type, toOff, count);
            return true;
        }
        bounce.put(from, type, fromOff, count * ranks);
        Native.moveAtRootBounced(comm, Native.SCATTER, root, bounce.address, count * ranks, type);
        System.arraycopy(from, fromOff + root * count, to, toOff, count);
        return true;
    }

    /**
     * Combines elements of the ranks by a predefined operation.
     *
     * @param comm native communicator
     * @param how {@link Native#REDUCE}, {@link Native#ALLREDUCE} or {@link Native#SCAN}; no other call is
     *     made
     * @param hasResult whether this rank gets a result; otherwise the array for it is not used
     * @param root root of a call that has one
     * @param op code of the operation
     * @param type type code of both arrays
     * @param from array to combine
     * @param fromLength its length
     * @param fromOff index of its first element
     * @param to array for the result
     * @param toLength its length
     * @param toOff index of the first element of the result
     * @param count number of elements
     * @return whether it was made
     */
    public static boolean reduce(long comm, int how, boolean hasResult, int root, int op, int type, Object from,
            int fromLength, int fromOff, Object to, int toLength, int toOff, int count) {
        int longest = how == Native.ALLREDUCE ? BounceBuffer.CAPACITY : LONGEST;
        if (how == Native.REDUCE_SCATTER || count > BounceBuffer.elements(type, longest)
                || hasResult && (toOff < 0 || toOff > toLength - count)) {
            return false;
        }
        BounceBuffer bounce = BounceBuffer.of(type, fromLength, fromOff, count);
        if (bounce == null) {
            return false;
        }
        bounce.put(from, type, fromOff, count);
        Native.reduceBounced(comm, how, root, op, bounce.address, count, type);
        if (hasResult) {
            bounce.get(to, type, toOff, count);
        }
        return true;
    }

    /**
     * Combines vectors by a predefined operation. Each rank gets a block of the result, all of one length.
     *
     * @param comm native communicator
     * @param ranks number of ranks
     * @param op code of the operation
     * @param type type code of both arrays
     * @param from array to combine, with a block for each rank
     * @param fromLength its length
     * @param fromOff index of its first element
     * @param to array for the block of this rank
     * @param toLength its length
     * @param toOff index of the first element of the block
     * @param count number of elements of each block
     * @return whether it was made
     */
    public static boolean reduceScatter(long comm, int ranks, int op, int type, Object from, int fromLength, int fromOff,
            Object to, int toLength, int toOff, int count) {
        if (count < 0 || count > BounceBuffer.elements(type, LONGEST) || toOff < 0 || toOff > toLength - count) {
            return false;
        }
        BounceBuffer bounce = BounceBuffer.of(type, fromLength, fromOff, count * ranks);
        if (bounce == null) {
            return false;
        }
        bounce.put(from, type, fromOff, count * ranks);
        Native.reduceBounced(comm, Native.REDUCE_SCATTER, 0, op, bounce.address, count * ranks, type);
        bounce.get(to, type, toOff, count);
        return true;
    }

    private static boolean exchange(long comm, int how, int ranks, int type, Object from, int fromLength, int fromOff,
            Object to, int toLength, int toOff, int count) {
        int all = count * ranks;
        BounceBuffer bounce = BounceBuffer.of(type, toLength, toOff, all);
        int sent = how == Native.ALLGATHER ? count : all;
        if (bounce == null || fromOff < 0 || fromOff > fromLength - sent) {
            return false;
        }
        bounce.put(from, type, fromOff, sent);
        Native.moveBounced(comm, how, bounce.address, all, type);
        bounce.get(to, type, toOff, all);
        return true;
    }
}
