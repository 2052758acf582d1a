package mpjdev.core;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;

/**
 * Access to direct buffers of memory segments (JDK 22 and later), whose memory another thread may free.
 * Internal.
 *
 * <p>Any thread may close a shared arena, and that unmaps its memory. Java keeps the memory during its own
 * copies; native code cannot.
 */
public final class Segments {
    private static final MethodHandle OF_BUFFER;
    private static final MethodHandle SCOPE;
    /**
     * Class of the scope of a shared arena. The interface has no method that distinguishes such a scope from
     * others.
     */
    private static final Class<?> SHARED;

    static {
        MethodHandle ofBuffer = null;
        MethodHandle scope = null;
        Class<?> shared = null;
        // Before JDK 22 the classes exist as a preview only.
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
     * Returns whether another thread may free the memory of a direct buffer during its use.
     *
     * @param direct a direct buffer
     * @return true for memory of a shared arena
     */
    public static boolean isShared(ByteBuffer direct) {
        if (OF_BUFFER == null) {
            return false;
        }
        try {
            // Only the calling thread closes its confined arena, and no thread closes an arena of another
            // kind.
            return ((Object) SCOPE.invokeExact((Object) OF_BUFFER.invokeExact(direct))).getClass() == SHARED;
        } catch (Error | RuntimeException e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("these methods throw nothing", e);
        }
    }

    /**
     * Copies elements between two buffers in Java, each in its own byte order. Memory that is freed during
     * the copy is an {@link IllegalStateException}.
     *
     * @param from the elements between its position and its limit
     * @param to the same number of octets from its position on
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
