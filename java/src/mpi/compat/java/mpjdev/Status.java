package mpjdev;

import mpjbuf.Type;
import mpjdev.core.NativeStatus;

/** The description of a received message. */
public class Status extends NativeStatus {
    /** Rank of the sender; -2 in an empty status. */
    public int source = -2;
    /** Tag of the message; -2 in an empty status. */
    public int tag = -2;
    /** Index of the request in the array of a call for several requests; else -1. */
    public int index = -1;
    /** Number of items of the receive's datatype; -1 if the last one is not whole. */
    public int count;
    /** Number of elements of the base type. */
    public int numEls;
    /** Octets of all elements. */
    public int countInBytes;
    /** Type of the elements; that of packed octets is {@code BYTE}. */
    public Type type = Type.UNDEFINED;

    /** Makes an empty status. */
    public Status() {}

    /**
     * Makes a status.
     *
     * @param source rank of the sender
     * @param tag tag of the message
     * @param index index of the request
     */
    public Status(int source, int tag, int index) {
        this.source = source;
        this.tag = tag;
        this.index = index;
    }
}
