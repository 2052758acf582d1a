package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import mpjdev.core.Native;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Leaks: messages of all kinds leave no more open handles and no lost memory. The long tests send a million.
 */
@Timeout(120)
@Tag("jdk")
class LeakTest {
    private static final int MESSAGES = 200_000;
    private static final int MILLION = 1_000_000;
    private static final int BATCH = 50;

    @Test
    void shouldHaveNoMoreOpenAfterManyMessages() throws Exception {
        exchange(MESSAGES);
    }

    @Test
    @Tag("soak")
    void shouldHaveNoMoreOpenAfterAMillionMessages() throws Exception {
        exchange(MILLION);
    }

    private static void exchange(int messages) throws Exception {
        check(() -> Comm.runThreads(2, world -> {
            int other = 1 - world.id();
            long[] value = new long[1];
            try (WriteBuffer out = new WriteBuffer(16); ReadBuffer in = new ReadBuffer(16)) {
                for (int i = 0; i < messages / BATCH; i++) {
                    if (i % 2 == world.id()) {
                        for (int k = 0; k < BATCH; k++) {
                            value[0] = k;
                            out.clear();
                            out.write(value, 0, 1);
                            world.send(out, other, i & 0xff);
                        }
                    } else {
                        for (int k = 0; k < BATCH; k++) {
                            world.recv(in, other, i & 0xff);
                            in.read(value, 0, 1);
                            if (value[0] != k) {
                                throw new AssertionError(k + " expected, " + value[0]);
                            }
                        }
                    }
                }
            }
        }));
    }

    @Test
    void shouldHaveNoMoreOpenAfterMessagesBetweenArrays() throws Exception {
        check(() -> Comm.runThreads(2, world -> {
            int other = 1 - world.id();
            long[] value = new long[1000];
            for (int i = 0; i < 20_000; i++) {
                int count = i % 10 == 0 ? value.length : 1;
                value[0] = i;
                Request received = i % 2 == 0 ? world.irecv(value, 0, count, other, 1) : null;
                world.send(value, 0, count, other, 1);
                Status status = received == null ? world.recv(value, 0, count, other, 1) : received.iwait();
                if (status.count() != count || value[0] != i) {
                    throw new AssertionError(i + " expected, " + value[0]);
                }
            }
        }));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldHaveNoMoreOpenAfterRequestsObjectsAndFailures(boolean split) throws Exception {
        check(() -> Wait.job(split, 2, world -> {
            int other = 1 - world.id();
            for (int i = 0; i < 1500; i++) {
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(64); ObjectReadBuffer in = new ObjectReadBuffer(64);
                        ReadBuffer small = new ReadBuffer(8); ReadBuffer never = new ReadBuffer(8)) {
                    Request receive = world.irecv(in, other, 0);
                    Request truncated = world.irecv(small, other, 1);
                    Request cancelled = world.irecv(never, other, 99);
                    out.write(new int[] {i, i}, 0, 2);
                    out.write(new Object[] {"some text", "x".repeat(i % 100)}, 0, 2);
                    Request send = i % 2 == 0 ? world.isend(out, other, 0) : world.issend(out, other, 0);
                    world.isend(out, other, 1).iwait();
                    receive.iwait();
                    send.iwait();
                    in.read(new int[2], 0, 2);
                    if (i % 3 == 0) {
                        in.read(new Object[2], 0, 2);
                    }
                    try {
                        truncated.iwait();
                        throw new AssertionError("the message should not fit");
                    } catch (TruncationException e) {
                        assertEquals(0, small.sectionCount());
                    }
                    assertTrue(cancelled.cancel());
                    try {
                        cancelled.iwait();
                        throw new AssertionError("it was cancelled");
                    } catch (CancelledException e) {
                        assertEquals(8, never.capacity());
                    }
                    if (i % 100 == 0) {
                        Comm dup = world.dup();
                        dup.barrier();
                        dup.free();
                    }
                }
            }
            world.barrier();
        }));
    }

    @Test
    void shouldHaveNoMoreOpenAfterFailedJobs() throws Exception {
        check(() -> {
            for (int i = 0; i < 30; i++) {
                int failing = i % 3;
                try {
                    Comm.runThreads(3, world -> {
                        try (ObjectWriteBuffer out = new ObjectWriteBuffer(1 << 16);
                                ReadBuffer in = new ReadBuffer(1 << 16)) {
                            out.write(new byte[50_000], 0, 50_000);
                            out.write(new Object[] {"left behind"}, 0, 1);
                            for (int k = 0; k < 3; k++) {
                                world.isend(out, (world.id() + 1) % 3, k);
                            }
                            if (world.id() == failing) {
                                throw new ArithmeticException("on purpose");
                            }
                            world.irecv(in, failing, 77).iwait();
                        }
                    });
                    throw new AssertionError("the job should fail");
                } catch (ArithmeticException e) {
                    assertEquals("on purpose", e.getMessage());
                }
            }
        });
    }

    /**
     * Resident memory of the process shows leaks of the engine or of malloc that no counter shows. The test
     * touches the heap first, so that the heap does not grow.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldLoseNoMemoryInManyMessages(boolean split) throws Exception {
        checkResident(split, 2 * MESSAGES);
    }

    @Tag("soak")
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldLoseNoMemoryInAMillionMessages(boolean split) throws Exception {
        checkResident(split, MILLION);
    }

    /** Allows a growth of one octet for each message. The actual growth is 20 to 100 KiB. */
    private static void checkResident(boolean split, int messages) throws Exception {
        String output = new Fork().with("-Xms48m", "-Xmx48m", "-XX:+AlwaysPreTouch", "-Dmpjdev.messageOriented=" + split)
                .run(Mixture.class, "" + messages).ok();
        Matcher found = Pattern.compile("(-?[0-9]+) octets more").matcher(output);
        assertTrue(found.find(), output);
        assertTrue(Long.parseLong(found.group(1)) < messages, output);
    }

    /** Exchanges messages of every kind and prints the growth of resident memory during the last ones. */
    static final class Mixture {
        private static final int WARM = 100_000;
        private static final int EACH = 100;
        private static final int LARGE = 512;

        private final Comm world;
        private final int other;
        private final long[] small = new long[1];
        private final double[] large = new double[LARGE];
        private final Object[] objects = {"some text"};
        /** Exactly full with one section of objects, so the objects travel in a second message. */
        private final ObjectWriteBuffer textOut = new ObjectWriteBuffer(8);
        private final ObjectReadBuffer textIn = new ObjectReadBuffer(8);
        private final WriteBuffer out = new WriteBuffer(8 + 8 * LARGE);
        private final ReadBuffer in = new ReadBuffer(8 + 8 * LARGE);

        private Mixture(Comm world) {
            this.world = world;
            other = 1 - world.id();
        }

        public static void main(String[] args) throws Exception {
            long[] resident = new long[2];
            int all = WARM + Integer.parseInt(args[0]);
            Comm.<Exception>runThreads(2, world -> {
                Mixture own = new Mixture(world);
                own.exchange(0, WARM / EACH);
                own.look(resident, 0);
                own.exchange(WARM / EACH, all / EACH);
                own.look(resident, 1);
            });
            System.out.println(resident[0] + " octets resident, then " + (resident[1] - resident[0]) + " octets more");
        }

        private void look(long[] resident, int at) throws Exception {
            world.barrier();
            if (world.id() == 0) {
                System.gc();
                resident[at] = resident();
            }
            world.barrier();
        }

        /** Returns the resident memory in octets. /proc/self/statm has it in pages only. */
        private static long resident() throws IOException {
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                if (line.startsWith("VmRSS:")) {
                    return 1024 * Long.parseLong(line.replaceAll("[^0-9]", ""));
                }
            }
            throw new IOException("no VmRSS in /proc/self/status");
        }

        private void exchange(int from, int to) throws Exception {
            for (int batch = from; batch < to; batch++) {
                for (int k = 0; k < EACH; k++) {
                    if (batch % 2 == world.id()) {
                        send(k);
                    } else {
                        receive(k);
                    }
                }
                cancelled();
            }
        }

        private static boolean isText(int k) {
            return k % 20 == 19;
        }

        private static int count(int k) {
            return k % 10 == 5 ? LARGE : 1;
        }

        private void send(int k) throws IOException {
            if (isText(k)) {
                textOut.clear();
                textOut.write(objects, 0, 1);
                world.send(textOut, other, k);
                return;
            }
            out.clear();
            if (count(k) == LARGE) {
                out.write(large, 0, LARGE);
            } else {
                small[0] = k;
                out.write(small, 0, 1);
            }
            if (k % 4 == 2) {
                (k % 50 == 2 ? world.issend(out, other, k) : world.isend(out, other, k)).iwait();
            } else {
                world.send(out, other, k);
            }
        }

        private void receive(int k) throws Exception {
            ReadBuffer into = isText(k) ? textIn : in;
            if (k % 8 == 3) {
                assertEquals(k, world.probe(other, Comm.ANY_TAG).tag);
            }
            if (k % 10 == 0) {
                world.irecv(into, other, k).iwait();
            } else {
                world.recv(into, other, k);
            }
            if (isText(k)) {
                textIn.read(objects, 0, 1);
                assertEquals("some text", objects[0]);
            } else if (count(k) == LARGE) {
                in.read(large, 0, LARGE);
            } else {
                in.read(small, 0, 1);
                assertEquals(k, small[0]);
            }
        }

        /** Posts a receive without a message, into a new buffer. */
        private void cancelled() {
            try (ReadBuffer never = new ReadBuffer(100)) {
                Request request = world.irecv(never, other, EACH);
                assertTrue(request.cancel());
                try {
                    request.iwait();
                    throw new AssertionError("it was cancelled");
                } catch (CancelledException e) {
                    assertEquals(104, never.capacity());
                }
            }
        }
    }

    /** Work that should leave nothing open. */
    private interface Work {
        void run() throws Exception;
    }

    private static void check(Work work) throws Exception {
        int buffers = Native.openBuffers();
        int requests = Native.openRequests();
        long memory = Native.usedMemory();
        work.run();
        // The collector closes unreachable requests and communicators.
        Wait.untilCollected("handles are as before: " + buffers + " buffers, " + requests + " requests, " + memory
                + " octets",
                () -> Native.openBuffers() <= buffers && Native.openRequests() <= requests
                        && Native.usedMemory() <= memory);
    }
}
