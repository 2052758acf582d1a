package compat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteOrder;
import mpjbuf.Buffer;
import mpjbuf.BufferException;
import mpjbuf.BufferFactory;
import mpjbuf.BufferOverflowException;
import mpjbuf.BufferUnderflowException;
import mpjbuf.DynamicBufferException;
import mpjbuf.RawBuffer;
import mpjbuf.SectionSizeMismatchException;
import mpjbuf.Type;
import mpjbuf.TypeMismatchException;
import mpjbuf.WrongStateException;
import org.junit.jupiter.api.Test;

/** Buffers without a message. */
class BufferTest {
    private static final int ROOM = 1000;

    @Test
    void shouldReadInPiecesWhatWasWrittenInPieces() throws Exception {
        Buffer buffer = new Buffer(ROOM);
        buffer.putSectionHeader(Type.INT);
        buffer.write(new int[] {9, 1, 2}, 1, 2);
        buffer.write(new int[] {3}, 0, 1);
        assertEquals(3, buffer.getSectionSize());
        buffer.putSectionHeader(Type.BOOLEAN);
        buffer.write(new boolean[] {true, false, true}, 0, 3);
        assertEquals(24 + 16, buffer.getSize());
        for (int round = 0; round < 2; round++) {
            buffer.commit();
            assertFalse(buffer.isWritable());
            assertSame(Type.INT, buffer.getSectionHeader());
            int[] read = new int[4];
            buffer.read(read, 3, 1);
            assertEquals(2, buffer.getRemaining());
            buffer.read(read, 0, 2);
            assertArrayEquals(new int[] {2, 3, 0, 1}, read);
            assertSame(Type.BOOLEAN, buffer.getSectionHeader());
            assertEquals(3, buffer.getSectionSize());
        }
        buffer.clear();
        assertTrue(buffer.isWritable());
        assertEquals(0, buffer.getSize());
    }

    @Test
    void shouldMoveEveryType() throws Exception {
        Buffer buffer = new Buffer(ROOM);
        buffer.putSectionHeader(Type.BYTE);
        buffer.write(new byte[] {1}, 0, 1);
        buffer.putSectionHeader(Type.CHAR);
        buffer.gather(new char[] {'a', 'b'}, 1, 1, new int[] {0, 1});
        buffer.putSectionHeader(Type.SHORT);
        buffer.strGather(new short[] {0, 1, 2, 3, 4}, 1, 1, 0, 1, new int[] {2, 2});
        buffer.putSectionHeader(Type.LONG);
        buffer.write(new long[] {Long.MIN_VALUE}, 0, 1);
        buffer.putSectionHeader(Type.FLOAT);
        buffer.write(new float[] {1.5f}, 0, 1);
        buffer.putSectionHeader(Type.DOUBLE);
        buffer.gather(new double[] {1, 2, 3}, 2, 0, new int[] {2, 0});
        buffer.putSectionHeader(Type.OBJECT);
        buffer.write(new Object[] {"x", null, "y"}, 0, 3);
        buffer.commit();
        assertSame(Type.BYTE, buffer.getSectionHeader());
        byte[] bytes = new byte[1];
        buffer.read(bytes, 0, 1);
        assertEquals(1, bytes[0]);
        assertSame(Type.CHAR, buffer.getSectionHeader());
        char[] chars = new char[1];
        buffer.read(chars, 0, 1);
        assertEquals('b', chars[0]);
        assertSame(Type.SHORT, buffer.getSectionHeader());
        short[] shorts = new short[4];
        buffer.strScatter(shorts, 3, 1, 0, 1, new int[] {2, -3});
        assertArrayEquals(new short[] {3, 0, 0, 1}, shorts);
        assertSame(Type.LONG, buffer.getSectionHeader());
        assertSame(Type.FLOAT, buffer.getSectionHeader());
        float[] floats = new float[1];
        buffer.read(floats, 0, 1);
        assertEquals(1.5f, floats[0]);
        assertSame(Type.DOUBLE, buffer.getSectionHeader());
        double[] doubles = new double[2];
        buffer.scatter(doubles, 2, 0, new int[] {1, 0});
        assertArrayEquals(new double[] {1, 3}, doubles);
        assertSame(Type.OBJECT, buffer.getSectionHeader());
        Object[] objects = new Object[3];
        buffer.read(objects, 0, 3);
        assertArrayEquals(new Object[] {"x", null, "y"}, objects);
    }

    @Test
    void shouldTakeNoCapacityForObjectsAndDynamicTypes() throws Exception {
        Buffer buffer = new Buffer(3 * Buffer.SECTION_OVERHEAD);
        buffer.putSectionHeader(Type.INT_DYNAMIC);
        buffer.write(new int[] {1, 2}, 0, 2);
        buffer.write(new int[] {3}, 0, 1);
        buffer.putSectionHeader(Type.OBJECT);
        buffer.write(new Object[] {"only"}, 0, 1);
        buffer.putSectionHeader(Type.OBJECT);
        buffer.write(new Object[] {"skipped", "text"}, 0, 2);
        assertThrows(BufferOverflowException.class, () -> buffer.putSectionHeader(Type.OBJECT));
        for (int round = 0; round < 2; round++) {
            buffer.commit();
            assertSame(Type.INT_DYNAMIC, buffer.getSectionHeader());
            assertEquals(3, buffer.getSectionSize());
            int[] read = new int[3];
            buffer.read(read, 0, 3);
            assertArrayEquals(new int[] {1, 2, 3}, read);
            assertSame(Type.OBJECT, buffer.getSectionHeader());
            Object[] object = new Object[1];
            buffer.read(object, 0, 1);
            assertEquals("only", object[0]);
            assertSame(Type.OBJECT, buffer.getSectionHeader());
        }
        assertTrue(buffer.getDynamicBuffer().length > 0);
        assertNull(new Buffer(ROOM).getDynamicBuffer());
    }

    @Test
    void shouldRejectWhatItCannotDo() throws Exception {
        Buffer buffer = new Buffer(24);
        assertThrows(WrongStateException.class, buffer::getSectionHeader);
        assertThrows(WrongStateException.class, () -> buffer.write(new int[1], 0, 1));
        buffer.putSectionHeader(Type.INT);
        assertThrows(TypeMismatchException.class, () -> buffer.write(new long[1], 0, 1));
        assertThrows(BufferOverflowException.class, () -> buffer.write(new int[5], 0, 5));
        assertThrows(mpjbuf.IllegalArgumentException.class, () -> buffer.write(new int[3], 1, 3));
        assertThrows(mpjbuf.IllegalArgumentException.class, () -> buffer.gather(new int[3], 1, 0, new int[] {3}));
        buffer.write(new int[4], 0, 4);
        assertThrows(BufferOverflowException.class, () -> buffer.putSectionHeader(Type.BYTE));
        assertThrows(mpjbuf.IllegalArgumentException.class, () -> buffer.putSectionHeader(Type.UNDEFINED));
        buffer.commit();
        assertThrows(WrongStateException.class, () -> buffer.putSectionHeader(Type.INT));
        assertThrows(WrongStateException.class, buffer::getSectionSize);
        buffer.getSectionHeader();
        assertThrows(SectionSizeMismatchException.class, () -> buffer.read(new int[9], 0, 5));
        assertThrows(TypeMismatchException.class, () -> buffer.read(new float[4], 0, 4));
        assertThrows(BufferUnderflowException.class, buffer::getSectionHeader);
        buffer.clear();
        buffer.putSectionHeader(Type.OBJECT);
        BufferException e = assertThrows(DynamicBufferException.class,
                () -> buffer.write(new Object[] {new Object()}, 0, 1));
        assertTrue(e.getMessage().startsWith("an object cannot be serialised"), e::toString);
    }

    @Test
    void shouldRoundCapacityUpAndKeepItsMemory() throws Exception {
        RawBuffer memory = BufferFactory.create(108);
        Buffer buffer = new Buffer(memory, 0, 108);
        buffer.putSectionHeader(Type.BYTE);
        buffer.write(new byte[100], 0, 100);
        assertEquals(112, buffer.getSize());
        assertEquals(108, buffer.getCapacity());
        assertSame(memory, buffer.getStaticBuffer());
        BufferFactory.destroy(buffer.getStaticBuffer());
        buffer.setSize(0);
        assertEquals(0, buffer.getSize());
        buffer.setEncoding(ByteOrder.BIG_ENDIAN);
        assertSame(ByteOrder.BIG_ENDIAN, buffer.getEncoding());
    }

    @Test
    void shouldNameTypesByTheirCodes() {
        assertSame(Type.DOUBLE, Type.getType(Type.DOUBLE.getCode()));
        assertEquals(17, Type.UNDEFINED.getCode());
        assertSame(Type.UNDEFINED, Type.getType(99));
    }
}
