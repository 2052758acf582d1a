package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import mpjdev.core.Native;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** After a million messages of all kinds nothing is open that was not open before. */
@Timeout(120)
class LeakTest {
    private static final int MESSAGES = 1_000_000;
    private static final int BATCH = 50;

    @Test
    void shouldHaveNothingOpenAfterAMillionMessages() throws Exception {
        check(() -> Comm.runThreads(2, world -> {
            int other = 1 - world.id();
            long[] value = new long[1];
            try (WriteBuffer out = new WriteBuffer(16); ReadBuffer in = new ReadBuffer(16)) {
                for (int i = 0; i < MESSAGES / BATCH; i++) {
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

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldHaveNothingOpenAfterRequestsObjectsAndFailures(boolean split) throws Exception {
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
                        throw new AssertionError("it did not fit");
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
    void shouldHaveNothingOpenAfterJobsThatFail() throws Exception {
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
                    throw new AssertionError("it went well");
                } catch (ArithmeticException e) {
                    assertEquals("on purpose", e.getMessage());
                }
            }
        });
    }

    /** Something that should leave nothing behind. */
    private interface Work {
        void run() throws Exception;
    }

    private static void check(Work work) throws Exception {
        int buffers = Native.openBuffers();
        int requests = Native.openRequests();
        long memory = Native.usedMemory();
        work.run();
        // Requests and communicators that nobody has closed are the collector's.
        Wait.untilCollected("all is as before: " + buffers + " buffers, " + requests + " requests, " + memory
                + " octets",
                () -> Native.openBuffers() <= buffers && Native.openRequests() <= requests
                        && Native.usedMemory() <= memory);
    }
}
