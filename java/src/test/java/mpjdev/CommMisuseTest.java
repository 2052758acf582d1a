package mpjdev;

import static mpjdev.Filled.check;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/**
 * Wrong uses of communicators and messages that cannot be received: each is a specific exception and harms
 * nothing.
 */
@Timeout(60)
class CommMisuseTest {
    private static final int[] NO_INTS = {};

    // ---- Buffers of a pending receive

    @Test
    void shouldRejectEveryUseOfABufferWithAPendingReceive() {
        Comm.runThreads(2, world -> {
            if (world.id() == 1) {
                world.recv(new ReadBuffer(0), 0, 9);
                try (WriteBuffer out = new WriteBuffer(64)) {
                    out.write(new int[] {4}, 0, 1);
                    world.send(out, 0, 1);
                    world.send(out, 0, 2);
                }
                return;
            }
            ObjectWriteBuffer out = new ObjectWriteBuffer(64);
            ObjectReadBuffer in = new ObjectReadBuffer(64);
            out.write(new long[1], 0, 1);
            Request first = world.irecv(in, 1, 1);
            Request second = world.irecv(out, 1, 2);
            ByteBuffer direct = ByteBuffer.allocateDirect(8);
            Executable[] calls = {out::capacity, () -> out.ensureCapacity(1), out::restoreCapacity, out::toByteArray,
                out::sectionCount, () -> out.write(new int[1], 0, 1), () -> out.gather(new int[1], 1, 0, new int[1]),
                () -> out.strGather(new int[1], 0, 0, 0, 0, NO_INTS), () -> out.write(direct, Type.INT, 0, 1),
                () -> out.write(new Object[1], 0, 1), () -> out.gather(new Object[1], 1, 0, new int[1]),
                () -> out.strGather(new Object[1], 0, 0, 0, 0, NO_INTS),
                in::capacity, () -> in.ensureCapacity(1), in::restoreCapacity, in::nextType, in::nextCount,
                in::sectionCount, () -> in.load(new byte[16]), () -> in.read(new int[1], 0, 1),
                () -> in.scatter(new int[1], 1, 0, new int[1]), () -> in.strScatter(new int[1], 0, 0, 0, 0, NO_INTS),
                () -> in.read(direct, Type.INT, 0, 1), () -> in.read(new Object[1], 0, 1),
                () -> in.scatter(new Object[1], 1, 0, new int[1]),
                () -> in.strScatter(new Object[1], 0, 0, 0, 0, NO_INTS), () -> world.send(out, 1, 0),
                () -> world.ssend(in, 1, 0), () -> world.isend(out, 1, 0), () -> world.issend(out, 1, 0),
                () -> world.recv(in, 1, 5), () -> world.irecv(in, 1, 5), () -> world.irecv(out, 1, 5)};
            for (int i = 0; i < calls.length; i++) {
                IllegalStateException e = assertThrows(IllegalStateException.class, calls[i], "call " + i);
                check(e, "in use", "pending");
            }
            try (WriteBuffer go = new WriteBuffer(0)) {
                world.send(go, 1, 9);
            }
            // The rejected calls have harmed neither receive.
            assertEquals(1, first.iwait().count());
            assertEquals(Type.INT, second.iwait().type());
            int[] dest = new int[1];
            try {
                in.read(dest, 0, 1);
            } catch (BufferReadException e) {
                throw new AssertionError(e);
            }
            assertArrayEquals(new int[] {4}, dest);
            in.close();
            out.close();
        });
    }

    @Test
    void shouldDropTheMessageOfAReceiveWhoseBufferIsClosed() {
        Comm.runThreads(2, world -> {
            try (WriteBuffer out = new WriteBuffer(1 << 16); ReadBuffer next = new ReadBuffer(1 << 16)) {
                out.write(new byte[60_000], 0, 60_000);
                ReadBuffer in = new ReadBuffer(1 << 16);
                Request request = world.irecv(in, 1 - world.id(), 0);
                in.close();
                assertThrows(IllegalStateException.class, in::capacity);
                world.barrier();
                world.send(out, 1 - world.id(), 0);
                out.write(new byte[1], 0, 1);
                world.send(out, 1 - world.id(), 0);
                assertEquals(60_000, request.iwait().count());
                assertThrows(IllegalStateException.class, in::capacity);
                world.recv(next, 1 - world.id(), 0);
                assertEquals(2, read(next));
            }
        });
    }

    private static int read(ReadBuffer in) {
        try {
            return in.sectionCount();
        } catch (BufferReadException e) {
            throw new AssertionError(e);
        }
    }

    // ---- Ranks, tags, communicators

    @Test
    void shouldRejectWrongRanksAndTagsAndKeepTheBuffer() throws Exception {
        Comm.runThreads(2, world -> {
            try (Filled w = new Filled(); ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                in.load(w.before);
                in.read(new int[2], 0, 2);
                for (int rank : new int[] {-1, Comm.ANY_SOURCE, 2, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
                    for (Executable call : new Executable[] {() -> world.send(w.buffer, rank, 0),
                        () -> world.ssend(w.buffer, rank, 0), () -> world.isend(w.buffer, rank, 0),
                        () -> world.issend(in, rank, 0)}) {
                        w.refuses(BadArgumentException.class, call, "rank " + rank, "0 to 1");
                    }
                    if (rank == Comm.ANY_SOURCE) {
                        continue;
                    }
                    for (Executable call : new Executable[] {() -> world.recv(in, rank, 0),
                        () -> world.irecv(in, rank, 0), () -> world.probe(rank, 0), () -> world.iprobe(rank, 0)}) {
                        w.refuses(BadArgumentException.class, call, "rank " + rank, "0 to 1");
                        assertSame(Type.OBJECT, in.nextType(), "a rejected receive has emptied its buffer");
                    }
                }
                for (int tag : new int[] {-1, -2, Integer.MIN_VALUE}) {
                    for (Executable call : new Executable[] {() -> world.send(w.buffer, 0, tag),
                        () -> world.ssend(w.buffer, 0, tag), () -> world.isend(w.buffer, 0, tag),
                        () -> world.issend(in, 0, tag)}) {
                        w.refuses(BadArgumentException.class, call, "tag " + tag, "2147483647");
                    }
                    if (tag == Comm.ANY_TAG) {
                        continue;
                    }
                    for (Executable call : new Executable[] {() -> world.recv(in, 0, tag),
                        () -> world.irecv(in, 0, tag), () -> world.probe(0, tag), () -> world.iprobe(0, tag)}) {
                        w.refuses(BadArgumentException.class, call, "tag " + tag, "2147483647");
                        assertSame(Type.OBJECT, in.nextType(), "a rejected receive has emptied its buffer");
                    }
                }
                Object[] objects = new Object[1];
                in.read(objects, 0, 1);
                assertEquals("x", objects[0]);
                // None of these calls has sent anything.
                world.barrier();
                assertSame(null, world.iprobe(Comm.ANY_SOURCE, Comm.ANY_TAG));
                world.barrier();
            }
        });
    }

    @Test
    void shouldAllowTheLargestTag() {
        Comm.runThreads(1, world -> {
            try (WriteBuffer out = new WriteBuffer(8); ReadBuffer in = new ReadBuffer(8)) {
                world.send(out, 0, Integer.MAX_VALUE);
                assertEquals(Integer.MAX_VALUE, world.recv(in, 0, Comm.ANY_TAG).tag);
            }
        });
    }

    @Test
    void shouldRejectNullBuffersAndLists() {
        Comm.runThreads(1, world -> {
            for (Executable call : new Executable[] {() -> world.send(null, 0, 0), () -> world.ssend(null, 0, 0),
                () -> world.isend(null, 0, 0), () -> world.issend(null, 0, 0), () -> world.recv(null, 0, 0),
                () -> world.irecv(null, 0, 0), () -> world.create(null), () -> world.abort(null),
                () -> Request.iwaitany(null), () -> Request.iwaitall(null), () -> Request.itestany(null)}) {
                assertSame(NullPointerException.class, assertThrows(Throwable.class, call).getClass());
            }
            // None of these calls has posted or sent anything.
            assertSame(null, world.iprobe(Comm.ANY_SOURCE, Comm.ANY_TAG));
        });
    }

    @Test
    void shouldRejectAFreedCommunicator() {
        Comm.runThreads(1, world -> {
            Comm dup = world.dup();
            dup.free();
            dup.free();
            try (WriteBuffer out = new WriteBuffer(8); ReadBuffer in = new ReadBuffer(8)) {
                for (Executable call : new Executable[] {dup::size, dup::id, dup::dup, dup::barrier,
                    () -> dup.create(new int[] {0}), () -> dup.split(0, 0), () -> dup.send(out, 0, 0),
                    () -> dup.isend(out, 0, 0), () -> dup.recv(in, 0, 0), () -> dup.irecv(in, 0, 0),
                    () -> dup.probe(0, 0), () -> dup.iprobe(0, 0), () -> dup.abort("no")}) {
                    assertEquals("the communicator is closed",
                            assertThrows(IllegalStateException.class, call).getMessage());
                }
                assertEquals(8, in.capacity(), "the buffers are not in use");
                assertEquals(8, out.capacity());
            }
        });
    }

    @Test
    void shouldGiveAThreadWithoutARankARemedy() {
        try (WriteBuffer out = new WriteBuffer(8); ReadBuffer in = new ReadBuffer(8)) {
            for (Executable call : new Executable[] {Comm.WORLD::size, Comm.WORLD::id, Comm.WORLD::dup,
                Comm.WORLD::barrier, () -> Comm.WORLD.create(new int[0]), () -> Comm.WORLD.split(0, 0),
                () -> Comm.WORLD.send(out, 0, 0), () -> Comm.WORLD.ssend(out, 0, 0),
                () -> Comm.WORLD.isend(out, 0, 0), () -> Comm.WORLD.issend(out, 0, 0),
                () -> Comm.WORLD.recv(in, 0, 0), () -> Comm.WORLD.irecv(in, 0, 0), () -> Comm.WORLD.probe(0, 0),
                () -> Comm.WORLD.iprobe(0, 0), () -> Comm.WORLD.abort("no"), Comm::finish}) {
                check(assertThrows(IllegalStateException.class, call), "runThreads", "Comm.init");
            }
            check(assertThrows(IllegalStateException.class, Comm.WORLD::free), "WORLD");
            assertEquals(8, in.capacity());
        }
    }

    @Test
    void shouldRejectASendOfABufferWithoutAMessage() {
        Comm.runThreads(1, world -> {
            try (ReadBuffer empty = new ReadBuffer(8)) {
                check(assertThrows(IllegalStateException.class, () -> world.send(empty, 0, 0)), "empty");
                check(assertThrows(IllegalStateException.class, () -> world.isend(empty, 0, 0)), "empty");
            }
        });
    }

    // ---- Messages that cannot be received

    @Test
    void shouldDeliverAMessageWithADamagedSectionAndRejectItsRead() throws Exception {
        byte[] good = new Naive(java.nio.ByteOrder.nativeOrder()).section(Type.INT, new int[] {1, 2})
                .section(Type.SHORT, new short[] {3}).toByteArray();
        byte[] first = good.clone();
        first[8] = 99;
        byte[] second = good.clone();
        second[24] = 99;
        for (boolean split : new boolean[] {false, true}) {
            Wait.job(split, 2, world -> {
                try (ReadBuffer in = new ReadBuffer(64)) {
                    if (world.id() == 0) {
                        for (byte[] octets : new byte[][] {first, second, good}) {
                            in.load(octets);
                            world.send(in, 1, 0);
                        }
                        return;
                    }
                    Status status = world.recv(in, 0, 0);
                    assertSame(null, status.type());
                    assertEquals(32, status.size());
                    check(assertThrows(BufferReadException.class, () -> in.read(new int[2], 0, 2)), "offset 8", 99);
                    check(assertThrows(BufferReadException.class, in::sectionCount), "offset 8", 99);
                    assertSame(Type.INT, world.recv(in, 0, 0).type());
                    in.read(new int[2], 0, 2);
                    check(assertThrows(BufferReadException.class, () -> in.read(new short[1], 0, 1)), "offset 24", 99);
                    world.recv(in, 0, 0);
                    assertEquals(2, in.sectionCount());
                }
            });
        }
    }

    @Test
    void shouldDropAMessageLargerThanTheBufferAndNoOther() throws Exception {
        for (boolean split : new boolean[] {false, true}) {
            for (int count : new int[] {3, 2000}) {
                truncate(split, count);
            }
        }
    }

    private static void truncate(boolean split, int count) throws Exception {
        Wait.job(split, 2, world -> {
            int capacity = 8 + 8 * count;
            if (world.id() == 0) {
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(capacity)) {
                    for (int pass = 0; pass < 3; pass++) {
                        out.clear();
                        out.write(new long[count], 0, count);
                        world.send(out, 1, 7);
                        out.clear();
                        out.write(new Object[] {"y".repeat(9 * count)}, 0, 1);
                        world.send(out, 1, 7);
                        out.clear();
                        out.write(new int[] {42}, 0, 1);
                        world.send(out, 1, 7);
                    }
                }
                return;
            }
            try (ObjectReadBuffer in = new ObjectReadBuffer(capacity - 8);
                    ObjectReadBuffer tiny = new ObjectReadBuffer(0)) {
                for (int pass = 0; pass < 3; pass++) {
                    for (int way = 0; way < 2; way++) {
                        ObjectReadBuffer into = way == 0 ? in : tiny;
                        into.load(way == 0 ? new Naive(java.nio.ByteOrder.nativeOrder())
                                .section(Type.INT, new int[1]).toByteArray()
                                : new Naive(java.nio.ByteOrder.nativeOrder()).toByteArray());
                        Request request = pass == 1 ? world.irecv(into, 0, 7) : null;
                        TruncationException e = assertThrows(TruncationException.class,
                                () -> take(world, request, into, 7));
                        check(e, "rank 0", "tag 7", way == 0 ? capacity : 8,
                                "capacity " + (way == 0 ? capacity - 8 : 0));
                        assertEquals(0, into.sectionCount(), "the buffer is empty");
                        assertEquals(way == 0 ? capacity - 8 : 0, into.capacity());
                        if (request != null) {
                            assertThrows(TruncationException.class, request::iwait, "a repeated wait throws the same");
                        }
                    }
                    // The message after them is intact.
                    Status status = world.recv(in, 0, 7);
                    assertEquals(Type.INT, status.type());
                    int[] dest = new int[1];
                    in.read(dest, 0, 1);
                    assertEquals(42, dest[0]);
                }
            }
        });
    }

    /** The list is longer than the number of ranks. The check allocates no list of that length. */
    @Test
    void shouldRejectAListOfMillionsOfRanks() throws Exception {
        Comm.runThreads(2, world -> {
            int[] ranks = new int[20_000_000];
            assertThrows(BadArgumentException.class, () -> world.create(ranks));
            java.util.Arrays.setAll(ranks, i -> i);
            assertThrows(BadArgumentException.class, () -> world.create(ranks));
        });
    }

    private static Status take(Comm world, Request request, ReadBuffer into, int tag) {
        return request != null ? request.iwait() : world.recv(into, 0, tag);
    }
}
