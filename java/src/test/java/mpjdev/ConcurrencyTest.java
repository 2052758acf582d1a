package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import mpjdev.core.Native;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Races with other threads that change arrays, use the same buffer, close it, interrupt or collect garbage.
 * The result is a possible one or a specific exception, never a crash and never an impossible value.
 */
@Timeout(90)
class ConcurrencyTest {
    private static final long SHORT_NANOS = TimeUnit.MILLISECONDS.toNanos(700);

    /** A thread that repeats an action until it is closed. The close throws what the action threw. */
    private static final class Repeating implements AutoCloseable {
        private final AtomicBoolean over = new AtomicBoolean();
        private final AtomicReference<Throwable> thrown = new AtomicReference<>();
        private final Thread thread;

        Repeating(Step step) {
            thread = new Thread(() -> {
                try {
                    for (int i = 0; !over.get(); i++) {
                        step.run(i);
                    }
                } catch (Throwable t) {
                    thrown.set(t);
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        @Override
        public void close() {
            over.set(true);
            try {
                Wait.join(thread);
            } catch (Exception e) {
                throw new AssertionError(e);
            }
            assertNull(thrown.get());
        }
    }

    /** The repeated action; its argument is the number of repetitions so far. */
    private interface Step {
        void run(int i) throws Exception;
    }

    private static void forAWhile(Step step) throws Exception {
        long end = System.nanoTime() + SHORT_NANOS;
        for (int i = 0; i < 20 || System.nanoTime() < end; i++) {
            step.run(i);
        }
    }

    @Test
    void shouldWriteOldOrNewValuesOfAChangingArray() throws Exception {
        int[] source = new int[20_000];
        int[] every = new int[source.length];
        for (int i = 0; i < every.length; i++) {
            every[i] = every.length - 1 - i;
        }
        int[] dest = new int[source.length];
        try (Repeating changing = new Repeating(i -> java.util.Arrays.fill(source, i % 2 == 0 ? 0x11111111 : 0));
                WriteBuffer out = new WriteBuffer(1 << 17); ReadBuffer in = new ReadBuffer(1 << 17)) {
            forAWhile(i -> {
                out.clear();
                if (i % 3 == 0) {
                    out.write(source, 0, source.length);
                } else if (i % 3 == 1) {
                    out.gather(source, source.length, 0, every);
                } else {
                    out.strGather(source, source.length - 1, 2, 0, 2, new int[] {100, 200, -200, -1});
                }
                in.load(out.toByteArray());
                in.read(dest, 0, dest.length);
                for (int value : dest) {
                    assertTrue(value == 0 || value == 0x11111111, "a value that the array never held: " + value);
                }
            });
            assertTrue(changing.thread.isAlive());
        }
    }

    @Test
    void shouldStayInsideTheArrayWhenIndicesChange() throws Exception {
        int length = 1000;
        int count = 9000;
        long[] source = new long[length];
        java.util.Arrays.fill(source, 7);
        long[] dest = new long[length];
        long[] sevens = new long[count];
        java.util.Arrays.fill(sevens, 7);
        int[] indexes = new int[count];
        Random random = new Random(6);
        int[] wild = {0, 999, 1000, -1, Integer.MAX_VALUE, Integer.MIN_VALUE, 1 << 28};
        AtomicInteger good = new AtomicInteger();
        AtomicInteger refused = new AtomicInteger();
        byte[] message = new Naive(java.nio.ByteOrder.nativeOrder()).section(Type.LONG, sevens).toByteArray();
        try (Repeating changing = new Repeating(i -> {
                    int at = random.nextInt(count);
                    indexes[at] = wild[i % wild.length];
                    if (i % 3 > 0) {
                        java.util.Arrays.fill(indexes, i % length);
                    }
                });
                WriteBuffer out = new WriteBuffer(message.length); ReadBuffer in = new ReadBuffer(message.length);
                ReadBuffer check = new ReadBuffer(message.length)) {
            forAWhile(i -> {
                try {
                    if (i % 2 == 0) {
                        out.clear();
                        out.gather(source, count, 0, indexes);
                        check.load(out.toByteArray());
                        long[] got = new long[count];
                        check.read(got, 0, count);
                        for (long value : got) {
                            assertEquals(7, value, "from outside the array");
                        }
                    } else {
                        in.load(message);
                        in.scatter(dest, count, 0, indexes);
                    }
                    good.incrementAndGet();
                } catch (ArrayIndexOutOfBoundsException e) {
                    refused.incrementAndGet();
                    assertTrue(e.getMessage().contains("outside an array of length 1000"), e.getMessage());
                    assertEquals(i % 2 == 0 ? 0 : 1, i % 2 == 0 ? out.sectionCount() : in.sectionCount());
                } catch (IllegalStateException e) {
                    // Another thread has replaced the bad index, so the text cannot name it.
                    refused.incrementAndGet();
                    assertTrue(e.getMessage().contains("another thread changes it"), e.getMessage());
                }
            });
            assertTrue(changing.thread.isAlive());
        }
        assertTrue(good.get() + refused.get() > 0);
        for (long value : dest) {
            assertTrue(value == 0 || value == 7);
        }
    }

    @Test
    void shouldStayInsideTheArrayWhenExtentsAndStridesChange() throws Exception {
        byte[] source = new byte[64];
        java.util.Arrays.fill(source, (byte) 7);
        byte[] dest = new byte[64];
        int[] indexes = {8, 8, 8, 1};
        int[][] values = {{8, 8, 8, 1}, {8, 8, 1, 8}, {64, 1, 1, 0}, {1 << 20, 1 << 20, 1, 1}, {-1, 8, 8, 1},
            {8, 8, 1 << 30, 1}, {2, 32, 32, 1}};
        try (Repeating changing = new Repeating(i -> System.arraycopy(values[i % values.length], 0, indexes, 0, 4));
                WriteBuffer out = new WriteBuffer(1 << 17); ReadBuffer in = new ReadBuffer(1 << 17)) {
            byte[] message = new Naive(java.nio.ByteOrder.nativeOrder()).section(Type.BYTE, source).toByteArray();
            forAWhile(i -> {
                try {
                    out.clear();
                    out.strGather(source, 0, 2, 0, 2, indexes);
                    in.load(out.toByteArray());
                    byte[] got = new byte[in.nextCount()];
                    in.read(got, 0, got.length);
                    for (byte value : got) {
                        assertEquals(7, value, "from outside the array");
                    }
                    in.load(message);
                    in.strScatter(dest, 0, 2, 0, 2, indexes);
                } catch (ArrayIndexOutOfBoundsException | IllegalArgumentException | SectionSizeMismatchException e) {
                    assertTrue(e.getMessage().matches(".*[0-9].*"), e.getMessage());
                }
            });
            assertTrue(changing.thread.isAlive());
        }
    }

    @Test
    void shouldDetectOrTolerateTwoThreadsOnOneBuffer() throws Exception {
        int[] values = new int[500];
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(1 << 16);
                ObjectReadBuffer in = new ObjectReadBuffer(1 << 16)) {
            byte[] message;
            try (WriteBuffer b = new WriteBuffer(1 << 12)) {
                b.write(values, 0, 500);
                b.write(values, 0, 10);
                message = b.toByteArray();
            }
            Step step = i -> {
                try {
                    switch (i % 7) {
                        case 0:
                            out.clear();
                            break;
                        case 1:
                            out.toByteArray();
                            break;
                        case 2:
                            in.load(message);
                            break;
                        case 3:
                            in.read(new int[500], 0, 500);
                            break;
                        case 4:
                            in.reset();
                            break;
                        default:
                            out.write(values, 0, 500);
                            break;
                    }
                } catch (IllegalStateException e) {
                    assertTrue(e.getMessage().contains("another thread"), e.getMessage());
                } catch (BufferOverflowException | BufferReadException e) {
                    assertTrue(e.getMessage() != null);
                }
            };
            try (Repeating a = new Repeating(step); Repeating b = new Repeating(i -> step.run(i * 3 + 1))) {
                forAWhile(step);
                assertTrue(a.thread != b.thread);
            }
            out.clear();
            out.write(values, 0, 500);
            assertEquals(1, out.sectionCount());
            in.load(message);
            assertEquals(2, in.sectionCount());
        }
    }

    @Test
    void shouldSurviveACloseDuringACall() throws Exception {
        int open = Native.openBuffers();
        long used = Native.usedMemory();
        int[] large = new int[50_000];
        forAWhile(round -> {
            WriteBuffer out = new WriteBuffer(300_000);
            ReadBuffer in = new ReadBuffer(300_000);
            AtomicReference<Throwable> thrown = new AtomicReference<>();
            Thread user = new Thread(() -> {
                try {
                    while (true) {
                        out.clear();
                        out.write(large, 0, large.length);
                        in.load(out.toByteArray());
                        in.read(large, 0, large.length);
                    }
                } catch (Throwable t) {
                    thrown.set(t);
                }
            });
            user.start();
            for (int spin = 0; spin < round % 40 * 1000; spin++) {
                Thread.onSpinWait();
            }
            Thread second = new Thread(out::close);
            second.start();
            in.close();
            out.close();
            Wait.join(user, second);
            assertTrue(thrown.get() instanceof IllegalStateException, "" + thrown.get());
        });
        assertTrue(Native.openBuffers() <= open, "buffers stay open");
        assertTrue(Native.usedMemory() <= used, "memory stays in use");
    }

    @Test
    void shouldSurviveACloseDuringCommunication() throws Exception {
        int requests = Native.openRequests();
        for (int round = 0; round < 20; round++) {
            boolean split = round % 2 == 0;
            Wait.job(split, 2, world -> {
                ObjectWriteBuffer out = new ObjectWriteBuffer(1 << 16);
                ObjectReadBuffer in = new ObjectReadBuffer(1 << 16);
                out.write(new byte[60_000], 0, 60_000);
                out.write(new Object[] {"o".repeat(10_000)}, 0, 1);
                world.barrier();
                Thread closer = new Thread(() -> {
                    in.close();
                    out.close();
                });
                closer.start();
                boolean sent = false;
                try {
                    world.send(out, 1 - world.id(), 0);
                    sent = true;
                    world.recv(in, 1 - world.id(), 0);
                } catch (IllegalStateException e) {
                    assertTrue(e.getMessage().contains("closed"), e.getMessage());
                    if (!sent) {
                        try (WriteBuffer instead = new WriteBuffer(8)) {
                            world.send(instead, 1 - world.id(), 0);
                        }
                    }
                    try (ReadBuffer instead = new ReadBuffer(1 << 16)) {
                        world.recv(instead, 1 - world.id(), 0);
                    }
                }
                Wait.join(closer);
                world.barrier();
            });
        }
        Wait.until("no request is left", () -> Native.openRequests() <= requests);
    }

    @Test
    void shouldWriteUnderConstantCollection() throws Exception {
        AtomicLong garbage = new AtomicLong();
        try (Repeating collecting = new Repeating(i -> System.gc());
                Repeating allocating = new Repeating(i -> garbage.addAndGet(new byte[100_000 + i % 1000].length));
                Repeating smaller = new Repeating(i -> garbage.addAndGet(new long[i % 100].length))) {
            Random random = new Random(8);
            forAWhile(i -> {
                Type type = AnyArray.TYPES[i % 8];
                int count = 40_000 + random.nextInt(200_000);
                Object source = AnyArray.make(type, count);
                for (int k = 0; k < count; k += 997) {
                    AnyArray.set(source, k, k * 31L);
                }
                Object dest = AnyArray.make(type, count);
                int capacity = (int) Buffer.requiredCapacity(type, count);
                try (WriteBuffer out = new WriteBuffer(capacity); ReadBuffer in = new ReadBuffer(capacity)) {
                    if (i % 2 == 0) {
                        AnyArray.write(out, source, 0, count);
                    } else {
                        AnyArray.strGather(out, source, count - 1, 1, 0, 1, new int[] {count, -1});
                    }
                    in.load(out.toByteArray());
                    if (i % 2 == 0) {
                        AnyArray.read(in, dest, 0, count);
                    } else {
                        AnyArray.strScatter(in, dest, count - 1, 1, 0, 1, new int[] {count, -1});
                    }
                }
                for (int k = 0; k < count; k++) {
                    assertEquals(AnyArray.bits(source, k), AnyArray.bits(dest, k));
                }
            });
            assertTrue(collecting.thread.isAlive() && allocating.thread.isAlive() && smaller.thread.isAlive());
        }
    }

    @Test
    void shouldKeepObjectsThatACallStillUses() throws Exception {
        // Only the call itself refers to these buffers and communicators.
        try (Repeating collecting = new Repeating(i -> System.gc())) {
            Comm.runThreads(2, world -> {
                int other = 1 - world.id();
                for (int i = 0; i < 30; i++) {
                    // The communicator is unreachable at once. Its messages still arrive.
                    world.split(0, world.id()).isend(filled(i), world.id(), 5);
                    Request send = world.isend(filled(i), other, 6);
                    assertEquals(1, world.recv(new ReadBuffer(1 << 16), other, 6).count());
                    send.iwait();
                }
            });
            assertTrue(collecting.thread.isAlive());
        }
    }

    private static WriteBuffer filled(int i) {
        WriteBuffer b = new WriteBuffer(1 << 16);
        b.write(new int[] {i}, 0, 1);
        return b;
    }

    @Test
    void shouldLoseNoMessageToRandomInterrupts() throws Exception {
        Random random = new Random(3);
        for (boolean split : new boolean[] {false, true}) {
            AtomicInteger interrupts = new AtomicInteger();
            // Only a thread that parks notices an interrupt, so it may take several jobs to hit one.
            Wait.until("a wait was interrupted", () -> {
                Thread[] ranks = new Thread[2];
                try (Repeating interrupting = new Repeating(i -> {
                    synchronized (ranks) {
                        Thread rank = ranks[i % 2];
                        if (rank != null && random.nextInt(5) == 0) {
                            rank.interrupt();
                        }
                    }
                    Thread.yield();
                })) {
                    Wait.job(split, 2, world -> {
                        ranks[world.id()] = Thread.currentThread();
                        try {
                            traffic(world, interrupts);
                        } finally {
                            synchronized (ranks) {
                                ranks[world.id()] = null;
                            }
                            // The end of a rank waits too. The last interrupt is not meant for it.
                            Thread.interrupted();
                        }
                    });
                    assertTrue(interrupting.thread.isAlive());
                }
                return interrupts.get() >= 5;
            });
        }
    }

    private static void traffic(Comm world, AtomicInteger interrupts) throws Exception {
        int messages = 300;
        int other = 1 - world.id();
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(64); ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            for (int i = 0; i < messages; i++) {
                out.clear();
                out.write(new int[] {i}, 0, 1);
                if (i % 5 == 0) {
                    out.write(new Object[] {"text " + i, "x".repeat(100)}, 0, 2);
                }
                Request send = i % 2 == 0 ? world.isend(out, other, 0) : world.issend(out, other, 0);
                if (i % 3 == 0) {
                    until(interrupts, () -> world.recv(in, other, 0));
                } else {
                    Request receive = world.irecv(in, other, 0);
                    until(interrupts, i % 3 == 1 ? receive::iwait : () -> Request.iwaitany(new Request[] {receive}));
                }
                until(interrupts, send::iwait);
                int[] got = new int[1];
                in.read(got, 0, 1);
                assertEquals(i, got[0], "lost, doubled or overtaken");
                if (i % 5 == 0) {
                    Object[] objects = new Object[2];
                    in.read(objects, 0, 2);
                    assertEquals("text " + i, objects[0]);
                }
            }
        }
    }

    private static void until(AtomicInteger interrupts, java.util.concurrent.Callable<Status> call) throws Exception {
        while (true) {
            try {
                call.call();
                return;
            } catch (InterruptedOperationException e) {
                assertTrue(Thread.interrupted(), "the flag stays set");
                interrupts.incrementAndGet();
            }
        }
    }

    @Test
    void shouldServeManyThreadsOfARank() throws Exception {
        int threads = 6;
        int messages = 60;
        for (boolean split : new boolean[] {false, true}) {
            Wait.job(split, 2, world -> {
                List<Thread> all = new ArrayList<>();
                AtomicReference<Throwable> thrown = new AtomicReference<>();
                AtomicLong sum = new AtomicLong();
                for (int t = 0; t < threads; t++) {
                    int number = t;
                    all.add(new Thread(() -> {
                        try (ObjectWriteBuffer out = new ObjectWriteBuffer(40);
                                ObjectReadBuffer in = new ObjectReadBuffer(40)) {
                            for (int i = 0; i < messages; i++) {
                                out.clear();
                                out.write(new int[] {number * messages + i}, 0, 1);
                                out.write(new Object[] {"text of some length " + number + "." + i}, 0, 1);
                                // Half of the messages go to any receiver.
                                Request send = world.isend(out, 1 - world.id(), number % 2 == 0 ? 100 : number);
                                world.recv(in, Comm.ANY_SOURCE, number % 2 == 0 ? 100 : number);
                                int[] got = new int[1];
                                in.read(got, 0, 1);
                                sum.addAndGet(got[0]);
                                Object[] text = new Object[1];
                                in.read(text, 0, 1);
                                assertEquals("text of some length " + got[0] / messages + "." + got[0] % messages,
                                        text[0]);
                                if (number % 2 != 0) {
                                    assertEquals(number * messages + i, got[0]);
                                }
                                send.iwait();
                            }
                        } catch (Throwable e) {
                            thrown.set(e);
                        }
                    }));
                }
                all.forEach(Thread::start);
                Wait.join(all.toArray(new Thread[0]));
                assertNull(thrown.get());
                long n = (long) threads * messages;
                assertEquals(n * (n - 1) / 2, sum.get());
            });
        }
    }
}
