package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.reflect.Field;
import org.junit.jupiter.api.Test;

/** Size, type and count of a message share one number without overlap. */
class NativeStatusTest {
    /** Stands for the public status. */
    private static final class Seen extends NativeStatus {
        /** Stores a value as native code does. */
        static Seen of(long size, long type, long count) throws ReflectiveOperationException {
            Seen seen = new Seen();
            Field detail = NativeStatus.class.getDeclaredField("detail");
            detail.setAccessible(true);
            detail.setLong(seen, size << 32 | type << 28 | count);
            return seen;
        }

        void is(int size, int type, int count) {
            assertEquals(size, receivedSize());
            assertEquals(type, receivedType());
            assertEquals(count, receivedCount());
        }
    }

    @Test
    void shouldUnpackSizeTypeAndCount() throws Exception {
        int[] sizes = {0, 1, 24, mpjdev.Buffer.MAX_CAPACITY, Integer.MAX_VALUE};
        int[] counts = {0, 1, 1 << 27, NativeStatus.COUNT_MAX - 1, NativeStatus.COUNT_MAX};
        for (int size : sizes) {
            for (int type = 0; type <= NativeStatus.NO_TYPE; type++) {
                for (int count : counts) {
                    Seen seen = Seen.of(size, type, count);
                    seen.is(size, type, count);
                    Seen copy = new Seen();
                    copy.copyFrom(seen);
                    copy.is(size, type, count);
                }
            }
        }
    }

    @Test
    void shouldAddATypeToSizeAndCount() throws Exception {
        int[] sizes = {8, mpjdev.Buffer.MAX_CAPACITY, Integer.MAX_VALUE};
        int[] counts = {0, 1, NativeStatus.COUNT_MAX - 1, NativeStatus.COUNT_MAX, 1 << 28, (1 << 28) + 1, 1 << 30,
            Integer.MAX_VALUE};
        for (int size : sizes) {
            for (int type = 0; type < Types.OBJECT; type++) {
                for (int count : counts) {
                    Seen seen = Seen.of(size, 0, count);
                    assertEquals(count, seen.setType(type));
                    seen.is(size, type, Math.min(count, NativeStatus.COUNT_MAX));
                }
            }
        }
    }

    @Test
    void shouldHaveNoSectionAfterSetNothing() throws Exception {
        Seen seen = Seen.of(Integer.MAX_VALUE, Types.OBJECT, NativeStatus.COUNT_MAX);
        seen.setNothing();
        seen.is(0, NativeStatus.NO_TYPE, 0);
    }
}
