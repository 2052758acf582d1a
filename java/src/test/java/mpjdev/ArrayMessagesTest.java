package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import mpjdev.Mpjrun.Job;
import mpjdev.core.Native;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Messages from array to array, on every transport, alone and with a buffer at the other end. */
@Timeout(180)
class ArrayMessagesTest {
    /**
     * Octets of elements: nothing, around copies one by one and messages of few words, around bounce buffers
     * and region copies, inline, copied, by reference, several holds.
     */
    private static final int[] OCTETS = {
        0, 1, 8, 16, 17, 34, 64, 68, 72, 127, 128, 136, 256, 264, 1024, 1025, 1072, 1080, 2048, 2056, 2592, 2600,
        2608, 40_000, 49_152, 300_000, 1_200_000
    };

    private static final int TAG = 5;

    /** Calls the overload of a method of Comm for this array; the arguments after it are ints or arrays. */
    static Object call(Comm comm, String name, Object array, Object... rest) throws Exception {
        Class<?>[] types = new Class<?>[rest.length + 1];
        Object[] arguments = new Object[rest.length + 1];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = i == 0 ? array : rest[i - 1];
            types[i] = arguments[i] instanceof Integer ? int.class : arguments[i].getClass();
        }
        try {
            return Comm.class.getMethod(name, types).invoke(comm, arguments);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Exception) {
                throw (Exception) e.getCause();
            }
            throw (Error) e.getCause();
        }
    }

    // ---- Programs of two ranks, for every transport

    /** Samples that are made once: they take longer than their messages. */
    private static final Map<String, Object> SAMPLES = new ConcurrentHashMap<>();

    /** The elements that rank 0 sends, from the third element of an array that never changes. */
    private static Object sample(Type type, int count) {
        return SAMPLES.computeIfAbsent(type + " " + count, name -> AnyArray.random(type, count + 4, new Random(count)));
    }

    /** Asserts that an array has the elements of the sample from 3 on, and zeros around them. */
    private static void checkReceived(Type type, int count, Object array) {
        Object expected = AnyArray.make(type, AnyArray.length(array));
        System.arraycopy(sample(type, count), 2, expected, 3, count);
        assertTrue(AnyArray.same(expected, array), count + " x " + type);
    }

    private static void checkStatus(Type type, int count, int source, Status status) {
        assertEquals(source, status.source);
        assertEquals(TAG, status.tag);
        assertEquals(count, status.count());
        assertEquals(type, status.type());
        assertEquals(Buffer.requiredCapacity(type, count), status.size());
    }

    private static void send(Comm world, Type type, int count) throws Exception {
        Object array = sample(type, count);
        for (String name : List.of("send", "ssend", "isend", "issend")) {
            Object request = call(world, name, array, 2, count, 1, TAG);
            if (request != null) {
                ((Request) request).iwait();
            }
        }
        // Received into a buffer, and sent from buffers of both byte orders.
        call(world, "send", array, 2, count, 1, TAG);
        for (ByteOrder order : List.of(ByteOrder.BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN)) {
            try (WriteBuffer out = new WriteBuffer((int) Buffer.requiredCapacity(type, count), order)) {
                AnyArray.write(out, array, 2, count);
                world.send(out, 1, TAG);
            }
        }
    }

    private static void receive(Comm world, Type type, int count) throws Exception {
        int length = count + 20;
        for (int i = 0; i < 4; i++) {
            Object array = AnyArray.make(type, length);
            boolean isWild = i % 2 == 1;
            int source = isWild ? Comm.ANY_SOURCE : 0;
            int tag = isWild ? Comm.ANY_TAG : TAG;
            int room = i == 0 ? count : count + 10;
            Status status;
            if (i < 2) {
                status = (Status) call(world, "recv", array, 3, room, source, tag);
            } else {
                status = ((Request) call(world, "irecv", array, 3, room, source, tag)).iwait();
            }
            checkStatus(type, count, 0, status);
            checkReceived(type, count, array);
        }
        try (ReadBuffer in = new ReadBuffer((int) Buffer.requiredCapacity(type, count))) {
            checkStatus(type, count, 0, world.recv(in, 0, TAG));
            Object array = AnyArray.make(type, length);
            AnyArray.read(in, array, 3, count);
            checkReceived(type, count, array);
        }
        for (int i = 0; i < 2; i++) {
            Object array = AnyArray.make(type, length);
            checkStatus(type, count, 0, (Status) call(world, "recv", array, 3, count, 0, TAG));
            checkReceived(type, count, array);
        }
    }

    /** All types and lengths, each way of sending and receiving, and sendrecv of both ranks at once. */
    static void exchange(Comm world) throws Exception {
        int me = world.id();
        for (int octets : OCTETS) {
            for (Type type : AnyArray.TYPES) {
                int count = octets / type.size();
                if (me == 0) {
                    send(world, type, count);
                } else {
                    receive(world, type, count);
                }
                Object from = sample(type, count);
                Object to = AnyArray.make(type, count + 10);
                Object status = call(world, "sendrecv", from, 2, count, 1 - me, TAG, to, 3, count + 1, 1 - me, TAG);
                checkStatus(type, count, 1 - me, (Status) status);
                checkReceived(type, count, to);
            }
        }
    }

    /** Elements that the receives of the next test accept: an odd number of ints, so padding follows them. */
    private static final int ROOM = 19;
    /** Elements of longer messages: inline, by reference or eager, and synchronous ones follow. */
    private static final int[] LONGER = {ROOM + 3, 200, 3000};

    /** Sends what an int array cannot receive, and a good message behind that. */
    private static void sendOther(Comm world) throws Exception {
        world.send(new double[] {1}, 0, 1, 1, TAG);
        world.send(new boolean[] {true}, 0, 1, 1, TAG);
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(64)) {
            world.send(out, 1, TAG);
            out.write(new int[] {1}, 0, 1);
            out.write(new int[] {2}, 0, 1);
            world.send(out, 1, TAG);
            out.clear();
            out.write(new Object[] {null}, 0, 1);
            world.send(out, 1, TAG);
        }
        world.send(new int[ROOM + 1], 0, ROOM + 1, 1, TAG);
        for (int count : LONGER) {
            world.send(new int[count], 0, count, 1, TAG);
        }
        Request longer = world.issend(new int[500_000], 0, 500_000, 1, TAG);
        world.send(new int[] {7, 8}, 0, 2, 1, TAG);
        assertEquals(Comm.ANY_SOURCE, longer.iwait().source, "a send does not fail when its receive does");
    }

    /** The receives of at most {@link #ROOM} elements into an array. */
    private static List<Executable> receives(Comm world, int[] array) {
        int[] all = new int[ROOM];
        Arrays.setAll(all, k -> k);
        int[] shape = {ROOM, 1};
        return List.of(() -> world.recv(array, 0, ROOM, Comm.ANY_SOURCE, TAG), () -> world.recv(array, 0, ROOM, 0, TAG),
                () -> world.irecv(array, 0, ROOM, 0, TAG).iwait(),
                () -> world.recvScattered(array, ROOM, 0, all, 0, TAG),
                () -> world.recvPatch(array, 0, 1, 0, 1, shape, 0, TAG),
                () -> world.irecvScattered(array, ROOM, 0, all, 0, TAG).iwait(),
                () -> world.irecvPatch(array, 0, 1, 0, 1, shape, 0, TAG).iwait());
    }

    /** Each message that does not fit is lost with an error that names it, and the array is unchanged. */
    private static void receiveOther(Comm world, int form) {
        int[] array = new int[ROOM];
        Arrays.fill(array, -1);
        int[] before = array.clone();
        Executable receive = receives(world, array).get(form);
        for (String text : List.of("holds double", "holds boolean", "holds 0 sections", "holds 2 sections", "object")) {
            String found = assertThrows(ContentMismatchException.class, receive, text).getMessage();
            assertTrue(found.contains(text), found);
            assertArrayEquals(before, array);
        }
        List<String> truncated = new ArrayList<>(List.of("88 octets from rank 0 with tag 5, capacity 84"));
        for (int count : LONGER) {
            truncated.add(8 + 4 * count + " octets from rank 0 with tag 5, capacity 88");
        }
        truncated.add("2000008 octets from rank 0 with tag 5, capacity 88");
        for (String text : truncated) {
            String found = assertThrows(TruncationException.class, receive, text).getMessage();
            assertEquals("message truncated: " + text, found);
            assertArrayEquals(before, array);
        }
        assertEquals(2, world.recv(array, 0, ROOM, 0, TAG).count());
        assertArrayEquals(new int[] {7, 8, -1}, Arrays.copyOf(array, 3));
    }

    static void mismatches(Comm world) throws Exception {
        for (int form = 0; form < receives(world, new int[0]).size(); form++) {
            if (world.id() == 0) {
                sendOther(world);
            } else {
                receiveOther(world, form);
            }
        }
    }

    /** Many messages in flight, received in another order. */
    static void windows(Comm world) {
        int messages = 200;
        int other = 1 - world.id();
        int[][] in = new int[messages][3000];
        Request[] requests = new Request[2 * messages];
        for (int i = 0; i < messages; i++) {
            requests[i] = world.irecv(in[i], 0, 3000, other, i);
        }
        int[] out = new int[3000];
        for (int i = messages - 1; i >= 0; i--) {
            int count = i % 3 == 0 ? 3000 : i;
            Arrays.fill(out, 0, count, i + 1);
            requests[messages + i] = world.isend(out, 0, count, other, i);
        }
        Status[] all = Request.iwaitall(requests);
        for (int i = 0; i < messages; i++) {
            int count = i % 3 == 0 ? 3000 : i;
            assertEquals(count, all[i].count());
            int[] expected = new int[3000];
            Arrays.fill(expected, 0, count, i + 1);
            assertArrayEquals(expected, in[i], "message " + i);
        }
    }

    /** More short messages than the queues take, with none received meanwhile: they keep their order. */
    static void queues(Comm world) {
        int messages = 20_000;
        int[] array = new int[2];
        if (world.id() == 1) {
            world.recv(array, 0, 0, 0, TAG + 1);
            for (int i = 0; i < messages; i++) {
                assertEquals(2, world.recv(array, 0, 2, 0, TAG).count());
                assertArrayEquals(new int[] {i, -i}, array);
            }
            return;
        }
        Request[] sends = new Request[messages];
        for (int i = 0; i < messages; i++) {
            array[0] = i;
            array[1] = -i;
            sends[i] = world.isend(array, 0, 2, 1, TAG);
        }
        world.send(array, 0, 0, 1, TAG + 1);
        Request.iwaitall(sends);
    }

    /** Index lists and patches at both ends, with whole and with shorter messages. */
    static void shapes(Comm world) throws Exception {
        shapes(world, "recv");
        shapes(world, "irecv");
    }

    /** Receives into elements of an array by {@code recv} or {@code irecv} with this end of the name. */
    private static Status receive(Comm world, String name, Object array, Object... rest) throws Exception {
        Object received = call(world, name, array, rest);
        return received instanceof Request ? ((Request) received).iwait() : (Status) received;
    }

    private static void shapes(Comm world, String recv) throws Exception {
        int[] shape = {30, 7, 64, -2}; // extents, then strides
        for (Type type : AnyArray.TYPES) {
            Object array = sample(type, 4000);
            int[] indexes = new Random(3).ints(500, 0, 2000).distinct().limit(210).toArray();
            Object expected = AnyArray.make(type, 4000);
            if (world.id() == 0) {
                call(world, "sendGathered", array, 210, 0, indexes, 1, TAG);
                ((Request) call(world, "isendPatch", array, 20, 2, 0, 2, shape, 1, TAG)).iwait();
                ((Request) call(world, "isendGathered", array, 200, 10, indexes, 1, TAG)).iwait();
                call(world, "sendPatch", array, 20, 2, 0, 2, shape, 1, TAG);
                call(world, "send", array, 0, 25, 1, TAG);
                continue;
            }
            int[] patch = new int[210];
            Arrays.setAll(patch, k -> 20 + 64 * (k / 7) - 2 * (k % 7));
            int[][] from = {indexes, patch, Arrays.copyOfRange(indexes, 10, 210), patch, null};
            int[][] to = {patch, indexes, patch, null, patch};
            for (int i = 0; i < from.length; i++) {
                Object got = AnyArray.make(type, 4000);
                int source = i % 2 == 0 ? 0 : Comm.ANY_SOURCE;
                Status status;
                if (to[i] == patch) {
                    status = receive(world, recv + "Patch", got, 20, 2, 0, 2, shape, source, TAG);
                } else if (to[i] == indexes) {
                    status = receive(world, recv + "Scattered", got, 210, 0, indexes, source, TAG);
                } else {
                    status = receive(world, recv, got, 0, 210, 0, TAG);
                }
                int count = from[i] == null ? 25 : from[i].length;
                checkStatus(type, count, 0, status);
                Object wanted = AnyArray.copy(expected);
                for (int k = 0; k < count; k++) {
                    int at = from[i] == null ? k : from[i][k];
                    System.arraycopy(array, at, wanted, to[i] == null ? k : to[i][k], 1);
                }
                assertTrue(AnyArray.same(wanted, got), i + " " + type);
            }
        }
    }

    /** Runs all programs above in a process that is a rank. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            exchange(Comm.WORLD);
            mismatches(Comm.WORLD);
            windows(Comm.WORLD);
            queues(Comm.WORLD);
            shapes(Comm.WORLD);
            Comm.WORLD.barrier();
            assertEquals(0, Native.openRequests());
            System.out.println("done");
            Comm.finish();
        }
    }

    private static void check(Job job) {
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("done", "done"), job.lines(), job::toString);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldMoveElementsBetweenThreads(boolean split) throws Exception {
        Wait.<Exception>job(split, 2, world -> {
            exchange(world);
            mismatches(world);
            windows(world);
            queues(world);
            shapes(world);
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp"})
    void shouldMoveElementsBetweenProcesses(String transport) throws Exception {
        Mpjrun run = new Mpjrun(2);
        check((transport.equals("shm") ? run : run.with("--transport", transport)).run(Program.class));
    }

    @ParameterizedTest
    @MethodSource("mpjdev.Mpirun#launchers")
    void shouldMoveElementsUnderAnMpi(List<String> launcher) throws Exception {
        check(Mpirun.job(launcher, 2).run(Program.class));
    }

    // ---- Refused calls

    @Test
    void shouldChangeNothingWhenACallIsRefused() {
        Comm.runThreads(1, world -> {
            int[] array = {1, 2, 3};
            int[] none = null;
            world.send(array, 0, 3, 0, TAG);
            Executable[] bounds = {() -> world.send(array, 1, 3, 0, TAG), () -> world.isend(array, -1, 1, 0, TAG),
                () -> world.recv(array, 3, 1, 0, TAG), () -> world.irecv(array, 0, 4, 0, TAG),
                () -> world.ssend(array, Integer.MAX_VALUE, Integer.MAX_VALUE, 0, TAG),
                () -> world.send(array, 0, -1, 0, TAG), () -> world.recv(array, 0, -1, 0, TAG),
                () -> world.sendrecv(array, 0, 3, 0, TAG, array, 1, 3, 0, TAG)};
            for (Executable call : bounds) {
                assertThrows(ArrayIndexOutOfBoundsException.class, call);
            }
            Executable[] bad = {() -> world.send(array, 0, 3, 1, TAG), () -> world.isend(array, 0, 3, -1, TAG),
                () -> world.send(array, 0, 3, 0, -1), () -> world.recv(array, 0, 3, 1, TAG),
                () -> world.recv(array, 0, 3, 0, -3), () -> world.irecv(array, 0, 3, -5, TAG),
                () -> world.sendrecv(array, 0, 3, 0, TAG, array, 0, 3, 1, TAG)};
            for (Executable call : bad) {
                assertThrows(BadArgumentException.class, call);
            }
            assertThrows(NullPointerException.class, () -> world.send(none, 0, 0, 0, TAG));
            assertThrows(NullPointerException.class, () -> world.recv(none, 0, 0, 0, TAG));
            assertArrayEquals(new int[] {1, 2, 3}, array);
            int[] received = new int[3];
            assertEquals(3, world.recv(received, 0, 3, 0, TAG).count());
            assertArrayEquals(array, received);
            assertNull(world.iprobe(Comm.ANY_SOURCE, Comm.ANY_TAG), "nothing else was sent");
        });
    }

    @Test
    void shouldChangeNoElementWhenAnIndexIsOutside() {
        Comm.runThreads(1, world -> {
            int[] array = {1, 2, 3};
            int[] indexes = {0, 3, 2, 5};
            Executable[] sends = {() -> world.sendGathered(array, 2, 0, indexes, 0, TAG),
                () -> world.isendGathered(array, 2, 3, indexes, 0, TAG),
                () -> world.sendPatch(array, 0, 1, 2, 3, indexes, 0, TAG),
                () -> world.recvPatch(array, 0, 1, 2, 1, indexes, 0, TAG),
                () -> world.irecvPatch(array, 0, 1, 2, 1, indexes, 0, TAG),
                () -> world.irecvScattered(array, 5, 0, indexes, 0, TAG),
                () -> world.irecvScattered(array, -1, 0, indexes, 0, TAG)};
            for (Executable call : sends) {
                assertThrows(ArrayIndexOutOfBoundsException.class, call);
            }
            assertNull(world.iprobe(Comm.ANY_SOURCE, Comm.ANY_TAG), "nothing was sent");
            assertArrayEquals(new int[] {1, 2, 3}, array);
        });
    }

    /** More indices than are checked at once, of which one is outside an array of as many elements. */
    private static int[] oneOutside(int count, int position, int bad) {
        int[] indexes = new int[count];
        Arrays.setAll(indexes, k -> k);
        indexes[position] = bad;
        return indexes;
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3, 100, 16_384, 40_000})
    void shouldReceiveNothingWhenAnIndexIsOutside(int count) {
        Comm.runThreads(1, world -> {
            int[] array = new int[count];
            for (int bad : new int[] {-1, count, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
                int[] indexes = oneOutside(count, count - 1, bad);
                Executable[] receives = {() -> world.recvScattered(array, count, 0, indexes, 0, TAG),
                    () -> world.irecvScattered(array, count, 0, indexes, 0, TAG)};
                for (Executable receive : receives) {
                    String text = assertThrows(ArrayIndexOutOfBoundsException.class, receive).getMessage();
                    assertEquals("index " + bad + " at position " + (count - 1) + " is outside an array of length "
                            + count, text);
                }
                world.send(new int[] {7}, 0, 1, 0, TAG);
                for (Executable receive : receives) {
                    assertThrows(ArrayIndexOutOfBoundsException.class, receive, "the message does not need that index");
                }
                assertArrayEquals(new int[count], array);
                int[] received = new int[1];
                assertEquals(1, world.recv(received, 0, 1, 0, TAG).count(), "the message is there");
                assertEquals(7, received[0]);
            }
        });
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3, 100, 16_384, 40_000})
    void shouldSendNothingWhenAnIndexIsOutside(int count) {
        Comm.runThreads(1, world -> {
            long[] array = new long[count];
            int[] indexes = oneOutside(count, count / 2, count);
            long memory = Native.usedMemory();
            Executable[] sends = {() -> world.sendGathered(array, count, 0, indexes, 0, TAG),
                () -> world.isendGathered(array, count, 0, indexes, 0, TAG)};
            for (Executable send : sends) {
                assertThrows(ArrayIndexOutOfBoundsException.class, send);
            }
            assertNull(world.iprobe(Comm.ANY_SOURCE, Comm.ANY_TAG));
            assertTrue(Native.usedMemory() - memory <= 3 * (32 << 10), "the memory of the message is released");
        });
    }

    // ---- Requests

    @Test
    void shouldStoreElementsInTheThreadThatWaits() {
        Comm.runThreads(1, world -> {
            int[] array = new int[4];
            Request request = world.irecv(array, 1, 3, 0, TAG);
            assertNull(request.itest());
            assertThrows(TimedOutException.class, () -> request.iwait(1, TimeUnit.MICROSECONDS));
            world.send(new int[] {7, 8}, 0, 2, 0, TAG);
            assertArrayEquals(new int[4], array, "no thread has waited yet");
            assertEquals(2, request.itest().count());
            assertArrayEquals(new int[] {0, 7, 8, 0}, array);
            assertEquals(2, request.iwait().count(), "a repeated wait");
        });
    }

    @Test
    void shouldCancelAndFreeReceives() {
        int before = Native.openRequests();
        Comm.runThreads(1, world -> {
            int[] array = {1};
            Request cancelled = world.irecv(array, 0, 1, 0, TAG);
            assertTrue(cancelled.cancel());
            assertThrows(CancelledException.class, cancelled::iwait);
            Request freed = world.irecv(array, 0, 1, 0, TAG);
            freed.free();
            world.send(new int[] {2}, 0, 1, 0, TAG);
            world.send(new int[] {3}, 0, 1, 0, TAG + 1);
            Status status = Request.iwaitany(new Request[] {null, world.irecv(array, 0, 1, 0, TAG + 1)});
            assertEquals(1, status.index);
            assertArrayEquals(new int[] {3}, array, "the freed request has received and stored nothing");
            assertNull(world.iprobe(Comm.ANY_SOURCE, Comm.ANY_TAG));
        });
        assertEquals(before, Native.openRequests());
    }

    @Test
    void shouldCaptureTheElementsThatAPostedReceiveSelects() {
        Comm.runThreads(1, world -> {
            short[] array = new short[6];
            int[] list = {9, 5, 0, 3};
            Request scattered = world.irecvScattered(array, 3, 1, list, 0, TAG);
            int[] shape = {2, -2};
            Request patch = world.irecvPatch(array, 4, 1, 0, 1, shape, 0, TAG + 1);
            Arrays.fill(list, 77);
            Arrays.fill(shape, 77);
            assertNull(scattered.itest());
            assertThrows(TimedOutException.class, () -> patch.iwait(1, TimeUnit.MICROSECONDS));
            world.send(new short[] {1, 2}, 0, 2, 0, TAG);
            world.send(new short[] {3, 4}, 0, 2, 0, TAG + 1);
            assertEquals(1, Request.iwaitany(new Request[] {null, patch}).index);
            assertArrayEquals(new short[] {0, 0, 4, 0, 3, 0}, array, "the other request stores in its own wait");
            assertEquals(2, scattered.itest().count());
            assertArrayEquals(new short[] {2, 0, 4, 0, 3, 1}, array);
            assertEquals(2, scattered.iwait().count(), "a repeated wait");
        });
    }

    @Test
    void shouldCancelReceivesOfSelectedElements() {
        int before = Native.openRequests();
        Comm.runThreads(1, world -> {
            int[] array = {1, 1};
            Request[] requests = {world.irecvScattered(array, 2, 0, new int[] {1, 0}, 0, TAG),
                world.irecvPatch(array, 0, 1, 0, 1, new int[] {2, 1}, 0, TAG)};
            for (Request request : requests) {
                assertTrue(request.cancel());
                assertThrows(CancelledException.class, request::iwait);
            }
            world.irecvScattered(array, 2, 0, new int[] {1, 0}, 0, TAG).free();
            world.send(new int[] {5, 6}, 0, 2, 0, TAG);
            assertNull(world.iprobe(Comm.ANY_SOURCE, Comm.ANY_TAG), "the freed request has received it");
            assertArrayEquals(new int[] {1, 1}, array);
        });
        assertEquals(before, Native.openRequests());
    }

    @Test
    void shouldFreeARequestThatIsLost() throws Exception {
        int before = Native.openRequests();
        Comm.<Exception>runThreads(1, world -> {
            for (int i = 0; i < 10; i++) {
                world.irecv(new int[1000], 0, 1000, 0, TAG);
                world.irecvScattered(new int[1000], 1000, 0, new int[1000], 0, TAG);
                world.irecvPatch(new int[1000], 0, 1, 0, 1, new int[] {1000, 1}, 0, TAG);
            }
            Wait.untilCollected("the requests are freed", () -> Native.openRequests() == before);
        });
    }

    @Test
    void shouldWithdrawAReceiveThatIsInterrupted() {
        Comm.runThreads(1, world -> {
            int[] array = {1};
            Thread.currentThread().interrupt();
            assertThrows(InterruptedOperationException.class, () -> world.recv(array, 0, 1, 0, TAG));
            assertTrue(Thread.interrupted(), "the flag stays set");
            world.send(new int[] {2}, 0, 1, 0, TAG);
            assertArrayEquals(new int[] {1}, array);
            assertEquals(1, world.recv(array, 0, 1, 0, TAG).count());
            assertArrayEquals(new int[] {2}, array);
        });
    }

    @Test
    void shouldSendFromTheElementsThatItReceivesInto() {
        Comm.runThreads(2, world -> {
            long[] array = {world.id(), 5, 6};
            world.sendrecv(array, 0, 2, 1 - world.id(), TAG, array, 1, 2, 1 - world.id(), TAG);
            assertArrayEquals(new long[] {world.id(), 1 - world.id(), 5}, array);
        });
    }

    @Test
    void shouldFailWhenThePeerHasFailed() {
        assertThrows(ArithmeticException.class, () -> Comm.runThreads(2, world -> {
            int[] array = {1};
            if (world.id() == 1) {
                throw new ArithmeticException("on purpose");
            }
            assertThrows(PeerFailedException.class, () -> world.recv(array, 0, 1, 1, TAG));
            assertThrows(PeerFailedException.class, () -> world.irecv(array, 0, 1, 1, TAG).iwait());
            assertArrayEquals(new int[] {1}, array);
        }));
    }
}
