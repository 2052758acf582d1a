package mpjdev.core;

import java.util.function.LongConsumer;

/** What closes handles, each by its own method. A plain class: the first lambda takes a JVM some 5 ms. Internal. */
public final class Freeing implements LongConsumer {
    /** Closes a buffer. */
    public static final Freeing BUFFER = new Freeing(0);
    /** Frees a communicator. */
    public static final Freeing COMM = new Freeing(1);
    /** Frees a request. */
    public static final Freeing REQUEST = new Freeing(2);
    /** Frees a view. */
    static final Freeing VIEW = new Freeing(3);

    private final int what;

    private Freeing(int what) {
        this.what = what;
    }

    @Override
    public void accept(long handle) {
        switch (what) {
            case 0:
                Native.close(handle);
                break;
            case 1:
                Native.freeComm(handle);
                break;
            case 2:
                Native.freeRequest(handle);
                break;
            default:
                Native.freeView(handle);
                break;
        }
    }
}
