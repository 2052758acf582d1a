package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** How often a program at its memory limit collects, counted on a clock of the test. */
class ReclaimerTest {
    private static final long MILLI = 1_000_000;

    private long now;
    private long used = 100;
    private long freed;
    private int collections;

    /** Each look at the clock takes a millisecond, a collection a second. */
    private final Reclaimer reclaiming = new Reclaimer(() -> now += MILLI, () -> used, () -> {
        collections++;
        now += 1000 * MILLI;
        used -= freed;
    }, 0);

    @Test
    void shouldPauseAfterThreeCollectionsThatFreedNothing() {
        for (int i = 0; i < 500; i++) {
            assertFalse(reclaiming.run());
        }
        assertEquals(3, collections);
    }

    @Test
    void shouldCollectAgainAfterThePause() {
        for (int i = 0; i < 4; i++) {
            reclaiming.run();
        }
        assertEquals(3, collections);
        now += 18_000 * MILLI;
        assertFalse(reclaiming.run());
        assertEquals(3, collections);
        now += 3000 * MILLI;
        freed = 10;
        assertTrue(reclaiming.run());
        assertEquals(4, collections);
        freed = 0;
        for (int i = 0; i < 10; i++) {
            assertFalse(reclaiming.run());
        }
        assertEquals(7, collections, "three more after one that freed something");
    }

    @Test
    void shouldCollectEachTimeAsLongAsItFreesSomething() {
        freed = 1;
        for (int i = 1; i <= 50; i++) {
            assertTrue(reclaiming.run());
            assertEquals(i, collections);
        }
    }

    /** Whoever closes what was found begins late, and closes one at each look; the last one counts as well. */
    @Test
    void shouldWaitUntilNothingMoreIsFreed() {
        int late = 300;
        int[] looks = {0};
        Reclaimer room = new Reclaimer(() -> now += MILLI, () -> {
            looks[0]++;
            return used - Math.max(0, Math.min(50, looks[0] - late));
        }, () -> collections++, 100 * MILLI);
        assertTrue(room.run());
        assertTrue(looks[0] >= late + 50, looks[0] + " looks");
    }
}
