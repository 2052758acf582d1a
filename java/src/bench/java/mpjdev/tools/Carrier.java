package mpjdev.tools;

/** Carrier of the messages of a rank: mpjdev, or a peer that it is compared with. */
interface Carrier extends AutoCloseable {
    /** Work of this rank with messages of this length. All ranks call it with the same arguments. */
    Work work(Case what, int octets) throws Exception;

    @Override
    default void close() {}
}
