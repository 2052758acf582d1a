package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.function.Executable;

/** A buffer with content and a copy of its octets, to check that they stay. */
final class Filled implements AutoCloseable {
    final ObjectWriteBuffer buffer = new ObjectWriteBuffer(64);
    final byte[] before;

    Filled() throws Exception {
        buffer.write(new int[] {1, 2}, 0, 2);
        buffer.write(new Object[] {"x"}, 0, 1);
        before = buffer.toByteArray();
    }

    /**
     * Asserts that the call throws exactly this, that its text has these words, and that the message is
     * unchanged.
     */
    void refuses(Class<? extends Throwable> expected, Executable call, Object... words) {
        Throwable e = assertThrows(Throwable.class, call);
        assertSame(expected, e.getClass(), e.toString());
        check(e, words);
        assertArrayEquals(before, buffer.toByteArray(), "changed by a call that threw " + e);
        assertEquals(2, buffer.sectionCount());
    }

    @Override
    public void close() {
        buffer.close();
    }

    /** Asserts that the text has these words. */
    static void check(Throwable e, Object... words) {
        for (Object word : words) {
            assertTrue(e.getMessage() != null && e.getMessage().contains(word.toString()),
                    word + " is missing in: " + e.getMessage());
        }
    }
}
