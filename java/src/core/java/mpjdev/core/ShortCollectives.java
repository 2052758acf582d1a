package mpjdev.core;

/**
 * Collective calls with short parts of arrays, which pass through the {@link BounceBuffer} of the calling
 * thread. Internal.
 *
 * <p>Each method returns whether it has made the call. A call whose elements are too many, or outside their
 * array, has to be made by the methods of {@link Native} for arrays.
 */
public final class ShortCollectives {
    /** Octets of the longest vector that pays. */
    private static final int LONGEST = 1024;

    private ShortCollectives() {}

    /**
     * Combines elements of all ranks by a predefined operation.
     *
     * @param comm native communicator
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
    public static boolean allreduce(long comm, int op, int type, Object from, int fromLength, int fromOff, Object to,
            int toLength, int toOff, int count) {
        if (count > BounceBuffer.elements(type, LONGEST) || toOff < 0 || toOff > toLength - count) {
            return false;
        }
        BounceBuffer bounce = BounceBuffer.of(type, fromLength, fromOff, count);
        if (bounce == null) {
            return false;
        }
        bounce.put(from, type, fromOff, count);
        Native.allreduceBounced(comm, op, bounce.address, count, type);
        bounce.get(to, type, toOff, count);
        return true;
    }

    /**
     * Moves equal blocks between all ranks.
     *
     * @param comm native communicator
     * @param how {@link Native#ALLGATHER} or {@link Native#ALLTOALL}
     * @param ranks number of ranks
     * @param type type code of both arrays
     * @param from array to send from
     * @param fromLength its length
     * @param fromOff index of the first element to send
     * @param to array to receive into
     * @param toLength its length
     * @param toOff index of the first element of the block of rank 0
     * @param count number of elements of each block
     * @return whether it was made
     */
    public static boolean move(long comm, int how, int ranks, int type, Object from, int fromLength, int fromOff,
            Object to, int toLength, int toOff, int count) {
        if (count < 0 || count > BounceBuffer.CAPACITY / ranks) {
            return false;
        }
        int all = count * ranks;
        BounceBuffer bounce = BounceBuffer.of(type, toLength, toOff, all);
        int sent = how == Native.ALLGATHER ? count : all;
        if (bounce == null || sent > BounceBuffer.elements(type, LONGEST) || fromOff < 0 || fromOff > fromLength - sent) {
            return false;
        }
        bounce.put(from, type, fromOff, sent);
        Native.moveBounced(comm, how, bounce.address, all, type);
        bounce.get(to, type, toOff, all);
        return true;
    }
}
