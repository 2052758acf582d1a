package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Closing of handles, exactly once: by the owner, or by the cleaner of an unreachable owner. */
@Timeout(60)
class ResourceTest {
    /** A resource whose handle this closes. */
    private static Resource resource(Object owner, long handle, LongConsumer closer) {
        return new Resource(owner, handle, Resource.BUFFER) {
            @Override
            public void run() {
                closer.accept(handle());
            }
        };
    }

    @Test
    void shouldCloseOnce() {
        AtomicInteger closed = new AtomicInteger();
        Resource resource = resource(this, 42, handle -> closed.addAndGet((int) handle));
        assertEquals(42, resource.handle());
        resource.close();
        resource.close();
        assertEquals(42, closed.get());
        assertEquals(42, resource.handle(), "a closed resource keeps its handle");
    }

    @Test
    void shouldCloseOnceWhenManyThreadsClose() throws Exception {
        for (int round = 0; round < 200; round++) {
            AtomicInteger closed = new AtomicInteger();
            Resource resource = resource(new Object(), 1, handle -> closed.incrementAndGet());
            Thread[] threads = new Thread[3];
            CountDownLatch go = new CountDownLatch(1);
            for (int i = 0; i < threads.length; i++) {
                threads[i] = new Thread(() -> {
                    try {
                        go.await();
                    } catch (InterruptedException e) {
                        return;
                    }
                    resource.close();
                });
                threads[i].start();
            }
            go.countDown();
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(1, closed.get());
        }
    }

    @Test
    void shouldCloseTheHandleOfAnUnreachableOwner() throws Exception {
        CountDownLatch closed = new CountDownLatch(1);
        own(handle -> closed.countDown());
        for (int i = 0; i < 3000 && closed.getCount() > 0; i++) {
            System.gc();
            closed.await(10, TimeUnit.MILLISECONDS);
        }
        assertEquals(0, closed.getCount());
    }

    private static void own(LongConsumer how) {
        assertTrue(resource(new Object(), 7, how).handle() == 7);
    }

    @Test
    void shouldKeepTheHandleOpenWhileTheOwnerIsReachable() {
        Object owner = new Object();
        AtomicInteger closed = new AtomicInteger();
        Resource resource = resource(owner, 7, handle -> closed.incrementAndGet());
        for (int i = 0; i < 5; i++) {
            System.gc();
        }
        assertEquals(0, closed.get());
        java.lang.ref.Reference.reachabilityFence(owner);
        resource.close();
        assertEquals(1, closed.get());
    }
}
