package mpjdev.core;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;

/**
 * Direct buffers of memory segments (JDK 22 and later): whether another thread may free their memory. Internal.
 *
 * <p>The memory of a shared arena is unmapped when any thread closes it. Java's own copies keep it for as long as they take;
 * native code cannot.
 */
public final class Segments {
    private static final MethodHandle OF_BUFFER;
    private static final MethodHandle SCOPE;
    /** Class of a shared arena's scope: the interface has no method that says it. */
    private static final Class<?> SHARED;

    static {
        MethodHandle ofBuffer = null;
        MethodHandle scope = null;
        Class<?> shared = null;
        // The classes are there before JDK 22 too, as a preview.
        if (Runtime.version().feature() >= 22) {
            try {
                MethodHandles.Lookup lookup = MethodHandles.publicLookup();
                Class<?> arenas = Class.forName("java.lang.foreign.Arena");
                Class<?> segment = Class.forName("java.lang.foreign.MemorySegment");
                Class<?> scopes = Class.forName("java.lang.foreign.MemorySegment$Scope");
                ofBuffer = lookup.findStatic(segment, "ofBuffer", MethodType.methodType(segment, java.nio.Buffer.class))
                        .asType(MethodType.methodType(Object.class, ByteBuffer.class));
                scope = lookup.findVirtual(segment, "scope", MethodType.methodType(scopes))
                        .asType(MethodType.methodType(Object.class, Object.class));
                Object arena = lookup.findStatic(arenas, "ofShared", MethodType.methodType(arenas)).invoke();
                shared = lookup.findVirtual(arenas, "scope", MethodType.methodType(scopes)).invoke(arena).getClass();
                ((AutoCloseable) arena).close();
            } catch (Throwable e) {
                throw new ExceptionInInitializerError(e);
            }
        }
        OF_BUFFER = ofBuffer;
        SCOPE = scope;
        SHARED = shared;
    }

    private Segments() {}

    /**
     * Whether another thread may free the memory of a direct buffer while it is used.
     *
     * @param direct a direct buffer
     * @return whether it may
     */
    public static boolean isShared(ByteBuffer direct) {
        if (OF_BUFFER == null) {
            return false;
        }
        try {
            // A confined arena is closed by the thread that is here; no other one is closed.
            return ((Object) SCOPE.invokeExact((Object) OF_BUFFER.invokeExact(direct))).getClass() == SHARED;
        } catch (Error | RuntimeException e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("these methods throw nothing", e);
        }
    }

    /**
     * Copies elements between two buffers, each in its own byte order, as Java does: memory that is freed meanwhile is an
     * IllegalStateException.
     *
     * @param from first element at its position, last one before its limit
     * @param to as many octets from its position on
     * @param size octets of an element
     */
    public static void copy(ByteBuffer from, ByteBuffer to, int size) {
        if (size == 1 || from.order() == to.order()) {
            to.put(from);
        } else if (size == 2) {
            to.asShortBuffer().put(from.asShortBuffer());
        } else if (size == 4) {
            to.asIntBuffer().put(from.asIntBuffer());
        } else {
            to.asLongBuffer().put(from.asLongBuffer());
        }
    }
}
