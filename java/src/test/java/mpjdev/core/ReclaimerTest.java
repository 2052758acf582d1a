package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Number of collections of a program at its memory limit, on a clock of the test. */
class ReclaimerTest {
    private static final long MILLI = 1_000_000;

    private long now;
    private long used = 100;
    private long freed;
    private int collections;

    /** Each reading of the clock takes a millisecond, a collection a second. */
    private final Reclaimer reclaimer = new Reclaimer(() -> now += MILLI, () -> used, () -> {
        collections++;
        now += 1000 * MILLI;
        used -= freed;
    }, 0);

    @Test
    void shouldPauseAfterThreeCollectionsThatFreedNothing() {
        for (int i = 0; i < 500; i++) {
            assertFalse(reclaimer.run());
        }
        assertEquals(3, collections);
    }

    @Test
    void shouldCollectAgainAfterAPause() {
        for (int i = 0; i < 4; i++) {
            reclaimer.run();
        }
        assertEquals(3, collections);
        now += 18_000 * MILLI;
        assertFalse(reclaimer.run());
        assertEquals(3, collections);
        now += 3000 * MILLI;
        freed = 10;
        assertTrue(reclaimer.run());
        assertEquals(4, collections);
        freed = 0;
        for (int i = 0; i < 10; i++) {
            assertFalse(reclaimer.run());
        }
        assertEquals(7, collections, "three more after the one that freed something");
    }

    @Test
    void shouldCollectEachTimeWhileCollectionsFreeSomething() {
        freed = 1;
        for (int i = 1; i <= 50; i++) {
            assertTrue(reclaimer.run());
            assertEquals(i, collections);
        }
    }

    /** The cleaner begins late and closes one handle at each reading. The last one counts too. */
    @Test
    void shouldWaitUntilNothingMoreIsFreed() {
        int late = 300;
        int[] readings = {0};
        Reclaimer room = new Reclaimer(() -> now += MILLI, () -> {
            readings[0]++;
            return used - Math.max(0, Math.min(50, readings[0] - late));
        }, () -> collections++, 100 * MILLI);
        assertTrue(room.run());
        assertTrue(readings[0] >= late + 50, readings[0] + " readings");
    }
}
