package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Abandoned collective operations: no other operation ever completes them. */
@Timeout(60)
class AbandonedCollectivesTest {
    /** A collective operation. */
    private interface Call {
        void run() throws Exception;
    }

    /** Interrupts its thread before it waits in the operation. */
    private static void interrupted(Call call) {
        Thread.currentThread().interrupt();
        assertThrows(InterruptedOperationException.class, call::run);
        assertTrue(Thread.interrupted(), "the flag stays set");
    }

    private static void abandoned(int by, Call call) {
        CollectiveAbandonedException e = assertThrows(CollectiveAbandonedException.class, call::run);
        assertEquals(by, e.rank());
        assertTrue(e.getMessage().contains("make another communicator from one that is whole, or finish"), e::getMessage);
    }

    @Test
    void shouldRejectBarriersAfterAnInterruptedBarrier() throws Exception {
        CountDownLatch left = new CountDownLatch(1);
        Comm.<Exception>runThreads(2, world -> {
            if (world.id() == 0) {
                interrupted(world::barrier);
                left.countDown();
            } else {
                left.await();
                // All packets of rank 0 for its first barrier may have arrived.
                try {
                    world.barrier();
                } catch (CollectiveAbandonedException e) {
                    assertEquals(0, e.rank());
                }
            }
            abandoned(0, world::barrier);
            abandoned(0, world::dup);
            abandoned(0, () -> world.create(new int[] {0}));
            abandoned(0, () -> world.split(0, 0));
        });
    }

    @Test
    void shouldNotMatchTheSecondDupOfARankWithTheFirstOfAnother() throws Exception {
        CountDownLatch left = new CountDownLatch(1);
        Comm.<Exception>runThreads(2, world -> {
            Comm spare = world.dup();
            if (world.id() == 1) {
                interrupted(world::dup);
                left.countDown();
            } else {
                left.await();
            }
            abandoned(1, world::dup);
            spare.dup().barrier();
        });
    }

    @Test
    void shouldSendAndReceiveAfterAnAbandonedCollective() throws Exception {
        CountDownLatch left = new CountDownLatch(1);
        Comm.<Exception>runThreads(2, world -> {
            if (world.id() == 0) {
                interrupted(world::dup);
                left.countDown();
            } else {
                left.await();
                abandoned(0, world::dup);
            }
            try (WriteBuffer out = new WriteBuffer(16); ReadBuffer in = new ReadBuffer(16)) {
                out.write(new int[] {world.id()}, 0, 1);
                Request sent = world.isend(out, 1 - world.id(), 1);
                assertEquals(1 - world.id(), world.recv(in, 1 - world.id(), 1).source);
                sent.iwait();
            }
        });
    }
}
