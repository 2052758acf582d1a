package mpjdev.core;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.locks.LockSupport;

/**
 * The wait of a virtual thread: it tests and parks in Java, because a wait in native code keeps its carrier.
 * Internal.
 */
public final class Backoff {
    private static final MethodHandle IS_VIRTUAL = find();
    private static final int YIELDS = 64;
    private static final long FIRST_PARK_NANOS = 1_000;
    private static final long LAST_PARK_NANOS = 1_000_000;

    private int yields;
    private long park = FIRST_PARK_NANOS;

    /** Begins a wait. */
    public Backoff() {}

    private static MethodHandle find() {
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (NoSuchMethodException | IllegalAccessException e) {
            return null; // there are no virtual threads before JDK 21
        }
    }

    /**
     * Returns whether the calling thread is virtual.
     *
     * @return true for a virtual thread
     */
    public static boolean isVirtual() {
        if (IS_VIRTUAL == null) {
            return false;
        }
        try {
            return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
        } catch (Error e) {
            throw e; // an error of the JVM, such as a full stack
        } catch (Throwable t) {
            throw new AssertionError("Thread.isVirtual() throws nothing", t);
        }
    }

    /** Yields, after 64 calls parks. The park grows from call to call, up to a millisecond. */
    public void pause() {
        if (yields < YIELDS) {
            yields++;
            Thread.yield();
            return;
        }
        LockSupport.parkNanos(park);
        park = Math.min(2 * park, LAST_PARK_NANOS);
    }
}
