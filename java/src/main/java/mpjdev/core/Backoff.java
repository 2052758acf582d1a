package mpjdev.core;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.locks.LockSupport;

/**
 * How virtual threads wait: they test and park in Java, since a wait in native code would keep their carrier. Internal.
 */
public final class Backoff {
    private static final MethodHandle IS_VIRTUAL = find();
    private static final int YIELDS = 64;
    private static final long FIRST_PARK_NANOS = 1_000;
    private static final long LAST_PARK_NANOS = 1_000_000;

    private int yields;
    private long park = FIRST_PARK_NANOS;

    /** The beginning of a wait. */
    public Backoff() {}

    private static MethodHandle find() {
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (NoSuchMethodException | IllegalAccessException e) {
            return null; // before JDK 21 there are none
        }
    }

    /**
     * Whether the calling thread is a virtual one.
     *
     * @return whether it is
     */
    public static boolean isVirtual() {
        if (IS_VIRTUAL == null) {
            return false;
        }
        try {
            return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
        } catch (Error e) {
            throw e; // of the JVM: the stack is used up
        } catch (Throwable t) {
            throw new AssertionError("Thread.isVirtual() throws nothing", t);
        }
    }

    /** Lets others run for a while that grows from call to call, up to a millisecond. */
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
