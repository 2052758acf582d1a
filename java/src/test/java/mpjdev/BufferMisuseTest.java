package mpjdev;

import static mpjdev.Filled.check;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;

/** Wrong arguments of buffers: each is a specific exception with its numbers and changes nothing. */
@Timeout(60)
class BufferMisuseTest {
    private static final int[] NO_INTS = {};

    // ---- Writing

    @ParameterizedTest
    @EnumSource(value = Type.class, names = "OBJECT", mode = Mode.EXCLUDE)
    void shouldRejectWrongArgumentsOfEveryWrite(Type type) throws Exception {
        Object a = AnyArray.make(type, 10);
        int max = Integer.MAX_VALUE;
        int min = Integer.MIN_VALUE;
        Class<? extends Throwable> bounds = ArrayIndexOutOfBoundsException.class;
        try (Filled w = new Filled()) {
            WriteBuffer b = w.buffer;
            int[][] ranges = {{-1, 1}, {0, 11}, {10, 1}, {11, 0}, {0, -1}, {5, max}, {max, 1}, {max, max}, {min, 0},
                {1, min}};
            for (int[] r : ranges) {
                w.refuses(bounds, () -> AnyArray.write(b, a, r[0], r[1]), "source", r[0], r[1], "length 10");
            }
            for (int bad : new int[] {-1, 10, max, min}) {
                w.refuses(bounds, () -> AnyArray.gather(b, a, 3, 1, new int[] {0, 1, 2, bad}), bad, "position 2",
                        "length 10");
            }
            for (int[] r : ranges) {
                w.refuses(bounds, () -> AnyArray.gather(b, a, r[1], r[0], new int[10]), "index array", r[0], r[1],
                        "length 10");
            }
            // Extents and strides lie outside the index array.
            w.refuses(bounds, () -> AnyArray.strGather(b, a, 0, 2, 0, 1, new int[2]), "strides", 1, 2, "length 2");
            w.refuses(bounds, () -> AnyArray.strGather(b, a, 0, 2, -1, 0, new int[4]), "extents", -1, 2, "length 4");
            w.refuses(bounds, () -> AnyArray.strGather(b, a, 0, 1, 0, max, new int[4]), "strides", max, 1);
            w.refuses(bounds, () -> AnyArray.strGather(b, a, 0, -1, 0, 0, new int[4]), -1);
            w.refuses(bounds, () -> AnyArray.strGather(b, a, 0, max, 0, 0, new int[4]), max, "length 4");
            // Patches leave the array at either end.
            w.refuses(bounds, () -> AnyArray.strGather(b, a, 0, 1, 0, 1, new int[] {11, 1}), 0, 10, "length 10");
            w.refuses(bounds, () -> AnyArray.strGather(b, a, 1, 1, 0, 1, new int[] {3, -1}), -1, 1, "length 10");
            w.refuses(bounds, () -> AnyArray.strGather(b, a, 10, 0, 0, 0, NO_INTS), 10, "length 10");
            w.refuses(bounds, () -> AnyArray.strGather(b, a, -1, 0, 0, 0, NO_INTS), -1, "length 10");
            w.refuses(bounds, () -> AnyArray.strGather(b, a, 0, 1, 0, 1, new int[] {2, max}), max, "length 10");
            w.refuses(bounds, () -> AnyArray.strGather(b, a, 0, 1, 0, 1, new int[] {2, min}), min, "length 10");
            w.refuses(bounds, () -> AnyArray.strGather(b, a, max, 2, 0, 2, new int[] {2, 2, max, max}), "length 10");
            w.refuses(IllegalArgumentException.class,
                    () -> AnyArray.strGather(b, a, 0, 1, 0, 1, new int[] {-2, 1}), -2);
            // The product of the extents overflows an int, and a long.
            w.refuses(IllegalArgumentException.class,
                    () -> AnyArray.strGather(b, a, 0, 2, 0, 2, new int[] {1 << 16, 1 << 15, 0, 0}), max);
            w.refuses(IllegalArgumentException.class,
                    () -> AnyArray.strGather(b, a, 0, 3, 0, 3, new int[] {max, max, max, 0, 0, 0}), max);
        }
    }

    @ParameterizedTest
    @EnumSource(value = Type.class, names = "OBJECT", mode = Mode.EXCLUDE)
    void shouldRejectASectionThatDoesNotFit(Type type) throws Exception {
        int count = 25;
        Object a = AnyArray.make(type, count);
        int needed = 8 + (count * AnyArray.size(type) + 7) / 8 * 8;
        int[] indexes = Naive.range(0, count);
        try (WriteBuffer b = new WriteBuffer(needed + 8)) {
            b.write(new int[2], 0, 2);
            byte[] before = b.toByteArray();
            for (Executable call : new Executable[] {() -> AnyArray.write(b, a, 0, count),
                () -> AnyArray.gather(b, a, count, 0, indexes),
                () -> AnyArray.strGather(b, a, 0, 1, 0, 1, new int[] {count, 1}),
                () -> b.write(ByteBuffer.allocateDirect(needed), type, 0, count)}) {
                BufferOverflowException e = assertThrows(BufferOverflowException.class, call);
                check(e, needed + " octets needed", (needed - 8) + " available", "capacity " + (needed + 8));
                assertArrayEquals(before, b.toByteArray());
            }
            // A section that fits is still accepted.
            b.write(new byte[0], 0, 0);
        }
    }

    @ParameterizedTest
    @EnumSource(value = Type.class, names = "OBJECT", mode = Mode.EXCLUDE)
    void shouldRejectNullArraysInEveryWrite(Type type) throws Exception {
        Object a = AnyArray.make(type, 10);
        try (Filled w = new Filled()) {
            for (Executable call : new Executable[] {() -> AnyArray.gather(w.buffer, a, 1, 0, null),
                () -> AnyArray.strGather(w.buffer, a, 0, 0, 0, 0, null)}) {
                assertThrows(NullPointerException.class, call);
                assertArrayEquals(w.before, w.buffer.toByteArray());
            }
        }
    }

    @Test
    void shouldRejectNullSourcesAndDestinations() throws Exception {
        try (Filled w = new Filled(); ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            WriteBuffer b = w.buffer;
            in.load(w.before);
            for (Executable call : new Executable[] {() -> b.write((byte[]) null, 0, 0),
                () -> b.write((char[]) null, 0, 0),
                () -> b.write((short[]) null, 0, 0), () -> b.write((boolean[]) null, 0, 0),
                () -> b.write((int[]) null, 0, 0), () -> b.write((long[]) null, 0, 0),
                () -> b.write((float[]) null, 0, 0), () -> b.write((double[]) null, 0, 0),
                () -> b.gather((int[]) null, 0, 0, NO_INTS), () -> b.strGather((int[]) null, 0, 0, 0, 0, NO_INTS),
                () -> w.buffer.write((Object[]) null, 0, 0), () -> w.buffer.gather((Object[]) null, 0, 0, NO_INTS),
                () -> w.buffer.strGather((Object[]) null, 0, 0, 0, 0, NO_INTS),
                () -> w.buffer.gather(new Object[1], 1, 0, null),
                () -> w.buffer.strGather(new Object[1], 0, 0, 0, 0, null),
                () -> b.write((ByteBuffer) null, Type.INT, 0, 0),
                () -> b.write(ByteBuffer.allocateDirect(8), null, 0, 0),
                () -> in.load(null), () -> in.read((byte[]) null, 0, 0), () -> in.read((char[]) null, 0, 0),
                () -> in.read((short[]) null, 0, 0), () -> in.read((boolean[]) null, 0, 0),
                () -> in.read((int[]) null, 0, 2), () -> in.read((long[]) null, 0, 0),
                () -> in.read((float[]) null, 0, 0), () -> in.read((double[]) null, 0, 0),
                () -> in.scatter((int[]) null, 2, 0, NO_INTS), () -> in.scatter(new int[2], 2, 0, null),
                () -> in.strScatter((int[]) null, 0, 0, 0, 0, NO_INTS),
                () -> in.strScatter(new int[2], 0, 1, 0, 1, null),
                () -> in.read((Object[]) null, 0, 0), () -> in.scatter((Object[]) null, 0, 0, NO_INTS),
                () -> in.strScatter((Object[]) null, 0, 0, 0, 0, NO_INTS),
                () -> in.read((ByteBuffer) null, Type.INT, 0, 2),
                () -> in.read(ByteBuffer.allocateDirect(8), null, 0, 2),
                () -> new WriteBuffer(8, null).close()}) {
                Throwable e = assertThrows(Throwable.class, call);
                assertSame(NullPointerException.class, e.getClass(), e.toString());
                assertArrayEquals(w.before, b.toByteArray());
                assertEquals(2, in.nextCount());
            }
        }
    }

    @Test
    void shouldRejectWrongRangesOfDirectBuffers() throws Exception {
        ByteBuffer direct = ByteBuffer.allocateDirect(32);
        Class<? extends Throwable> bounds = ArrayIndexOutOfBoundsException.class;
        try (Filled w = new Filled(); ReadBuffer in = new ReadBuffer(64)) {
            w.refuses(bounds, () -> w.buffer.write(direct, Type.INT, 0, 9), 36, 32);
            w.refuses(bounds, () -> w.buffer.write(direct, Type.INT, 29, 1), 29, 4, 32);
            w.refuses(bounds, () -> w.buffer.write(direct, Type.INT, -1, 1), -1, 4, 32);
            w.refuses(bounds, () -> w.buffer.write(direct, Type.DOUBLE, 0, Integer.MAX_VALUE), 32);
            w.refuses(IllegalArgumentException.class, () -> w.buffer.write(direct, Type.INT, 0, -1), -1);
            w.refuses(IllegalArgumentException.class, () -> w.buffer.write(direct, Type.OBJECT, 0, 1), "primitive");
            w.refuses(IllegalArgumentException.class, () -> w.buffer.write(ByteBuffer.allocate(8), Type.INT, 0, 1),
                    "direct");
            in.load(new Naive(java.nio.ByteOrder.nativeOrder()).section(Type.INT, new int[] {1, 2}).toByteArray());
            for (int off : new int[] {25, 33, -1, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
                check(assertThrows(bounds, () -> in.read(direct, Type.INT, off, 2)), off, 8, 32);
            }
            assertThrows(IllegalArgumentException.class, () -> in.read(direct, Type.OBJECT, 0, 2));
            assertEquals(ByteBuffer.allocate(32), direct);
            assertEquals(2, in.nextCount());
        }
    }

    // ---- Reading

    @ParameterizedTest
    @EnumSource(value = Type.class, names = "OBJECT", mode = Mode.EXCLUDE)
    void shouldRejectWrongArgumentsOfEveryReadAndKeepThePosition(Type type) throws Exception {
        Object values = AnyArray.random(type, 6, new java.util.Random(1));
        Type other = type == Type.LONG ? Type.DOUBLE : Type.LONG;
        byte[] message = new Naive(java.nio.ByteOrder.nativeOrder()).section(Type.BYTE, new byte[1])
                .section(type, values).toByteArray();
        Class<? extends Throwable> bounds = ArrayIndexOutOfBoundsException.class;
        Object dest = AnyArray.random(type, 10, new java.util.Random(2));
        Object before = AnyArray.copy(dest);
        int[] six = Naive.range(0, 6);
        int max = Integer.MAX_VALUE;
        try (ReadBuffer in = new ReadBuffer(128)) {
            in.load(message);
            in.read(new byte[1], 0, 1);
            Map<Executable, Object[]> calls = new LinkedHashMap<>();
            calls.put(() -> AnyArray.read(in, dest, 0, 5), new Object[] {SectionSizeMismatchException.class,
                "section 1 holds 6 elements, 5 wanted"});
            calls.put(() -> AnyArray.read(in, dest, 0, 7), new Object[] {SectionSizeMismatchException.class, 6, 7});
            calls.put(() -> AnyArray.read(in, dest, 0, 0), new Object[] {SectionSizeMismatchException.class, 6, 0});
            calls.put(() -> AnyArray.scatter(in, dest, 5, 0, six),
                    new Object[] {SectionSizeMismatchException.class, 5});
            calls.put(() -> AnyArray.strScatter(in, dest, 0, 1, 0, 1, new int[] {7, 1}),
                    new Object[] {SectionSizeMismatchException.class, 7});
            calls.put(() -> in.read(ByteBuffer.allocateDirect(80), type, 0, 5),
                    new Object[] {SectionSizeMismatchException.class, 5});
            calls.put(() -> AnyArray.read(in, AnyArray.make(other, 6), 0, 6),
                    new Object[] {TypeMismatchException.class, "section 1 holds", "wanted"});
            calls.put(() -> in.read(ByteBuffer.allocateDirect(80), other, 0, 6),
                    new Object[] {TypeMismatchException.class, "section 1 holds"});
            calls.put(() -> AnyArray.read(in, dest, 5, 6), new Object[] {bounds, "destination", 5, 6, "length 10"});
            calls.put(() -> AnyArray.read(in, dest, -1, 6), new Object[] {bounds, "destination", -1, 6, "length 10"});
            calls.put(() -> AnyArray.read(in, dest, max, 6), new Object[] {bounds, max, 6, "length 10"});
            calls.put(() -> AnyArray.read(in, dest, 0, -6), new Object[] {bounds, 0, -6, "length 10"});
            calls.put(() -> AnyArray.scatter(in, dest, 6, 0, new int[] {0, 1, 2, 3, 4, 10}),
                    new Object[] {bounds, 10, "position 5", "length 10"});
            calls.put(() -> AnyArray.scatter(in, dest, 6, 0, new int[] {0, 1, -1, 3, 4, 5}),
                    new Object[] {bounds, -1, "position 2", "length 10"});
            calls.put(() -> AnyArray.scatter(in, dest, 6, 1, six),
                    new Object[] {bounds, "index array", 1, 6, "length 6"});
            calls.put(() -> AnyArray.strScatter(in, dest, 0, 1, 0, 1, new int[] {6, 2}),
                    new Object[] {bounds, 0, 10, "length 10"});
            calls.put(() -> AnyArray.strScatter(in, dest, 4, 1, 0, 1, new int[] {6, -1}), new Object[] {bounds, -1, 4});
            calls.put(() -> AnyArray.strScatter(in, dest, 0, 1, 0, 1, new int[] {-6, 1}),
                    new Object[] {IllegalArgumentException.class, -6});
            calls.put(() -> AnyArray.strScatter(in, dest, 0, 2, 0, 2, new int[] {max, max, 0, 0}),
                    new Object[] {IllegalArgumentException.class, max});
            for (Map.Entry<Executable, Object[]> call : calls.entrySet()) {
                Throwable e = assertThrows(Throwable.class, call.getKey());
                assertSame(call.getValue()[0], e.getClass(), e.toString());
                check(e, java.util.Arrays.copyOfRange(call.getValue(), 1, call.getValue().length));
                assertTrue(AnyArray.same(before, dest), "destination changed by a call that threw " + e);
                assertSame(type, in.nextType());
                assertEquals(6, in.nextCount());
            }
            AnyArray.read(in, dest, 0, 6);
            for (int k = 0; k < 6; k++) {
                assertEquals(AnyArray.bits(values, k), AnyArray.bits(dest, k));
            }
            BufferReadException end = assertThrows(BufferReadException.class, () -> AnyArray.read(in, dest, 0, 6));
            check(end, "all 2", type.name().toLowerCase(java.util.Locale.ROOT));
        }
    }

    @Test
    void shouldRejectReadsOfAnEmptyBuffer() throws Exception {
        try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
            check(assertThrows(BufferReadException.class, () -> in.read(new int[1], 0, 1)), "no further section");
            check(assertThrows(BufferReadException.class, () -> in.read(new Object[1], 0, 1)), "no further section");
            assertEquals(0, in.sectionCount());
            assertEquals(-1, in.nextCount());
        }
    }

    @Test
    void shouldRejectALoadAboveTheCapacity() throws Exception {
        byte[] message = new Naive(java.nio.ByteOrder.nativeOrder()).section(Type.LONG, new long[4]).toByteArray();
        try (ReadBuffer in = new ReadBuffer(32)) {
            check(assertThrows(BufferReadException.class, () -> in.load(message)), 40, 32);
            assertEquals(0, in.sectionCount());
            assertEquals(32, in.capacity());
        }
    }

    // ---- Closed

    @Test
    void shouldRejectEveryUseOfAClosedBuffer() {
        ObjectWriteBuffer out = new ObjectWriteBuffer(64);
        ObjectReadBuffer in = new ObjectReadBuffer(64);
        out.close();
        in.close();
        ByteBuffer direct = ByteBuffer.allocateDirect(8);
        Executable[] calls = {out::capacity, () -> out.ensureCapacity(1), out::restoreCapacity, out::toByteArray,
            out::sectionCount, () -> out.write(new int[1], 0, 1), () -> out.write(new int[1000], 0, 1000),
            () -> out.gather(new int[1], 1, 0, new int[1]),
            () -> out.strGather(new int[1], 0, 0, 0, 0, NO_INTS), () -> out.write(direct, Type.INT, 0, 1),
            () -> out.write(new Object[1], 0, 1), () -> out.gather(new Object[1], 1, 0, new int[1]),
            () -> out.strGather(new Object[1], 0, 0, 0, 0, NO_INTS),
            in::capacity, () -> in.ensureCapacity(1), in::restoreCapacity, in::nextType, in::nextCount,
            in::sectionCount, () -> in.load(new byte[16]), () -> in.read(new int[1], 0, 1),
            () -> in.scatter(new int[1], 1, 0, new int[1]), () -> in.strScatter(new int[1], 0, 0, 0, 0, NO_INTS),
            () -> in.read(direct, Type.INT, 0, 1), () -> in.read(new Object[1], 0, 1),
            () -> in.scatter(new Object[1], 1, 0, new int[1]), () -> in.strScatter(new Object[1], 0, 0, 0, 0, NO_INTS)};
        for (int i = 0; i < calls.length; i++) {
            IllegalStateException e = assertThrows(IllegalStateException.class, calls[i], "call " + i);
            assertEquals("the buffer is closed", e.getMessage());
        }
        Comm.runThreads(1, world -> {
            for (Executable call : new Executable[] {() -> world.send(out, 0, 0), () -> world.ssend(out, 0, 0),
                () -> world.isend(in, 0, 0), () -> world.issend(out, 0, 0), () -> world.recv(in, 0, 0),
                () -> world.irecv(in, 0, 0), () -> world.recv(out, 0, 0)}) {
                assertEquals("the buffer is closed", assertThrows(IllegalStateException.class, call).getMessage());
            }
        });
    }
}
