package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * All public methods on damaged, closed, freed and finished objects: none throws a core class or a null
 * pointer.
 */
@Timeout(60)
class FaceTest {
    private final List<String> found = new ArrayList<>();
    private int calls;

    /** Returns a value for a parameter; buffers and requests are those under test. */
    private static Object argument(Class<?> type, Buffer buffer, Request request) {
        if (type == int.class) {
            return 0;
        }
        if (type == long.class) {
            return 0L;
        }
        if (type == int[].class) {
            return new int[] {0, 0, 0};
        }
        if (type == Object.class) {
            return null;
        }
        if (type == Request[].class) {
            return new Request[] {request, null, Request.MPI_REQUEST_NULL};
        }
        if (type.isArray()) {
            return java.lang.reflect.Array.newInstance(type.getComponentType(), 1);
        }
        if (type == ByteBuffer.class) {
            return ByteBuffer.allocateDirect(8);
        }
        if (type == Buffer.class) {
            return buffer;
        }
        if (type == Op.class) {
            return Op.MAX;
        }
        return type == Type.class ? Type.INT : type == TimeUnit.class ? TimeUnit.NANOSECONDS : type == String.class ? "x" : null;
    }

    private void callAll(Object target, Buffer buffer, Request request, String state, List<String> without) {
        for (Method method : target.getClass().getMethods()) {
            boolean isOurs = method.getDeclaringClass().getName().startsWith("mpjdev.")
                    && !method.getDeclaringClass().getName().startsWith("mpjdev.core.");
            boolean isUsed = !Modifier.isStatic(method.getModifiers()) || target instanceof Request;
            if (isOurs && isUsed && !without.contains(method.getName())) {
                call(target, method, buffer, request, state);
            }
        }
    }

    private void call(Object target, Method method, Buffer buffer, Request request, String state) {
        Object[] arguments = new Object[method.getParameterCount()];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = argument(method.getParameterTypes()[i], buffer, request);
        }
        try {
            calls++;
            method.setAccessible(true);
            method.invoke(target, arguments);
        } catch (InvocationTargetException e) {
            Throwable t = e.getCause();
            if (t.getClass().getName().startsWith("mpjdev.core.") || t instanceof NullPointerException) {
                found.add(state + ": " + method + ": " + t);
            }
        } catch (IllegalAccessException e) {
            throw new AssertionError(e);
        }
    }

    /**
     * Messages with sections that contradict the payload: counts too large or negative, types that do not
     * exist.
     */
    private static List<byte[]> damaged() {
        List<byte[]> all = new ArrayList<>();
        for (byte[] header : new byte[][] {{4, 0, 0, 0, 9, 0, 0, 0}, {4, 0, 0, 0, 0, 0, 0, -1}, {9, 0, 0, 0, 1, 0, 0, 0}}) {
            byte[] message = new byte[8 + 16 + 8];
            message[0] = 1;
            message[4] = 16;
            System.arraycopy(header, 0, message, 8, header.length);
            all.add(message);
        }
        return all;
    }

    private static List<Buffer> damagedBuffers() throws BufferReadException {
        List<Buffer> all = new ArrayList<>();
        for (byte[] message : damaged()) {
            for (ReadBuffer in : new ReadBuffer[] {new ReadBuffer(64), new ObjectReadBuffer(64)}) {
                in.load(message);
                all.add(in);
            }
        }
        return all;
    }

    private static List<Buffer> buffers() {
        return List.of(new ReadBuffer(64), new ObjectReadBuffer(64), new WriteBuffer(64, ByteOrder.BIG_ENDIAN),
                new ObjectWriteBuffer(64));
    }

    private void check(int atLeast) {
        assertEquals(List.of(), found);
        assertTrue(calls >= atLeast, calls + " calls");
    }

    @Test
    void shouldThrowNothingInternalOnDamagedAndClosedBuffers() throws Exception {
        List<String> ends = List.of("close", "free", "ensureCapacity", "restoreCapacity", "load", "setObjectFilter");
        for (Buffer in : damagedBuffers()) {
            callAll(in, in, null, "damaged", ends);
            callAll(in, in, null, "damaged, then emptied", List.of());
        }
        for (Buffer buffer : buffers()) {
            buffer.close();
            callAll(buffer, buffer, null, "closed", List.of());
        }
        check(400);
    }

    @Test
    void shouldThrowNothingInternalOnFreedAndFinishedCommunicators() throws Exception {
        Comm[] worlds = new Comm[2];
        Comm.runThreads(1, world -> {
            worlds[0] = world;
            worlds[1] = world.dup();
            Comm freed = world.dup();
            freed.free();
            onComm(freed, "freed");
        });
        for (Comm comm : worlds) {
            onComm(comm, "finished");
        }
        check(200);
    }

    private void onComm(Comm comm, String state) {
        try {
            for (Buffer buffer : damagedBuffers()) {
                callAll(comm, buffer, null, state + " with a damaged buffer", List.of("free"));
            }
        } catch (BufferReadException e) {
            throw new AssertionError(e);
        }
        for (Buffer buffer : buffers()) {
            callAll(comm, buffer, null, state, List.of("free"));
            buffer.close();
            callAll(comm, buffer, null, state + " with a closed buffer", List.of());
        }
    }

    @Test
    void shouldThrowNothingInternalOnFinishedRequests() throws Exception {
        Comm.runThreads(1, world -> {
            for (String state : new String[] {"done", "cancelled", "closed buffer", "freed"}) {
                ReadBuffer in = new ReadBuffer(64);
                Request request = world.irecv(in, 0, 1);
                if (state.equals("done")) {
                    try (WriteBuffer out = new WriteBuffer(8)) {
                        world.send(out, 0, 1);
                    }
                    request.iwait();
                } else if (state.equals("freed")) {
                    request.free();
                } else {
                    request.cancel();
                    if (state.equals("closed buffer")) {
                        in.close();
                    }
                }
                callAll(request, in, request, state, List.of());
            }
        });
        check(30);
    }
}
