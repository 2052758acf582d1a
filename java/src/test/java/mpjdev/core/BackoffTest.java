package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The backoff of a wait in Java: yields first, then parks that grow up to a millisecond. */
@Timeout(60)
class BackoffTest {
    private static final int YIELDS = 64;

    private static long nanosOf(Runnable work) {
        long begun = System.nanoTime();
        work.run();
        return System.nanoTime() - begun;
    }

    @Test
    void shouldReportAPlatformThreadAsNotVirtual() {
        assertFalse(Backoff.isVirtual());
    }

    @Test
    void shouldYieldBeforeItParks() {
        Backoff backoff = new Backoff();
        // A permit lets the first park of this thread return at once.
        LockSupport.unpark(Thread.currentThread());
        for (int i = 0; i < YIELDS; i++) {
            backoff.pause();
        }
        long nanos = nanosOf(() -> LockSupport.parkNanos(TimeUnit.SECONDS.toNanos(20)));
        assertTrue(nanos < TimeUnit.SECONDS.toNanos(10), "a pause has consumed the permit");
        LockSupport.unpark(Thread.currentThread());
        backoff.pause();
        assertTrue(nanosOf(() -> LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(50)))
                >= TimeUnit.MILLISECONDS.toNanos(25), "the pause after the yields did not park");
    }

    @Test
    void shouldGrowParksUpToAMillisecond() {
        Backoff backoff = new Backoff();
        for (int i = 0; i < YIELDS + 10; i++) {
            backoff.pause();
        }
        long[] nanos = new long[15];
        for (int i = 0; i < nanos.length; i++) {
            nanos[i] = nanosOf(backoff::pause);
        }
        long[] last = Arrays.copyOfRange(nanos, 10, nanos.length);
        Arrays.sort(nanos);
        Arrays.sort(last);
        // A park may end early without a reason, and late on a loaded machine.
        assertTrue(nanos[nanos.length / 2] >= TimeUnit.MICROSECONDS.toNanos(900), Arrays.toString(nanos));
        assertTrue(last[0] < TimeUnit.SECONDS.toNanos(10), Arrays.toString(last));
    }

    @Test
    void shouldYieldFirstInEveryWait() {
        Backoff old = new Backoff();
        for (int i = 0; i < YIELDS + 15; i++) {
            old.pause();
        }
        LockSupport.unpark(Thread.currentThread());
        new Backoff().pause();
        assertTrue(nanosOf(() -> LockSupport.parkNanos(TimeUnit.SECONDS.toNanos(20))) < TimeUnit.SECONDS.toNanos(10));
    }
}
