package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A collective operation that is interrupted in one rank is never paired with another one. */
@Timeout(60)
class AbandonedCollectivesTest {
    /** A collective operation. */
    private interface Call {
        void run() throws Exception;
    }

    /** Interrupts itself before it waits in this. */
    private static void interrupted(Call call) {
        Thread.currentThread().interrupt();
        assertThrows(InterruptedOperationException.class, call::run);
        assertTrue(Thread.interrupted(), "the flag stays");
    }

    private static void abandoned(int by, Call call) {
        CollectiveAbandonedException e = assertThrows(CollectiveAbandonedException.class, call::run);
        assertEquals(by, e.rank());
        assertTrue(e.getMessage().contains("make another communicator from one that is whole, or finish"), e::getMessage);
    }

    @Test
    void shouldRefuseBarriersAfterAnInterruptedOne() throws Exception {
        CountDownLatch left = new CountDownLatch(1);
        Comm.<Exception>runThreads(2, world -> {
            if (world.id() == 0) {
                interrupted(world::barrier);
                left.countDown();
            } else {
                left.await();
                // All that rank 0 had to send for its first barrier may be here.
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
    void shouldNotGiveOneRanksSecondDupTheOthersFirst() throws Exception {
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
    void shouldSendAndReceiveWhereACollectiveWasAbandoned() throws Exception {
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
