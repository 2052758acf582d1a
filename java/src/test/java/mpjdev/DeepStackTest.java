package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Blocking calls near the end of the stack: an upcall throws, and that ends the wait and loses no message.
 */
@Timeout(120)
@Tag("jdk")
class DeepStackTest {
    private static final int STACK = 512 << 10;

    /** Runs an action at every depth, from the deepest one up, until it returns true. */
    private static final class Descent {
        private final java.util.function.BooleanSupplier call;
        private boolean done;
        private int overflows;

        Descent(java.util.function.BooleanSupplier call) {
            this.call = call;
        }

        void down() {
            try {
                down();
            } finally {
                if (!done) {
                    attempt();
                }
            }
        }

        private void attempt() {
            try {
                done = call.getAsBoolean();
            } catch (StackOverflowError e) {
                overflows++;
            }
        }

        /** Runs a task on a new stack. */
        Thread start(AtomicReference<Throwable> failure) {
            Thread thread = new Thread(null, () -> {
                try {
                    down();
                } catch (StackOverflowError e) {
                    // The descent itself throws it, at the end of the stack.
                } catch (Throwable e) {
                    failure.set(e);
                }
            }, "deep", STACK);
            thread.start();
            return thread;
        }
    }

    private static boolean isReceiving(Thread thread) {
        StackTraceElement[] stack = thread.getStackTrace();
        return !thread.isAlive() || stack.length > 0 && stack[0].getMethodName().equals("recvFrom");
    }

    @Test
    void shouldEndAWaitWithoutAMessageWhenItsUpcallOverflowsTheStack() throws Exception {
        Comm.runThreads(2, world -> {
            try (WriteBuffer out = new WriteBuffer(16); ReadBuffer in = new ReadBuffer(16)) {
                if (world.id() == 1) {
                    world.recv(in, 0, 2);
                    out.write(new int[] {42}, 0, 1);
                    world.send(out, 0, 1);
                    return;
                }
                AtomicReference<Throwable> failure = new AtomicReference<>();
                Descent descent = new Descent(() -> {
                    try {
                        world.recv(in, 1, 1);
                        throw new AssertionError("no rank has sent a message");
                    } catch (InterruptedOperationException e) {
                        return true;
                    }
                });
                Thread thread = descent.start(failure);
                Wait.until("the interrupt ends the wait", () -> {
                    thread.interrupt();
                    return !thread.isAlive();
                });
                assertNull(failure.get());
                assertTrue(descent.done, "the last receive had enough stack and was interrupted");
                assertTrue(descent.overflows > 0, "no receive was at the end of the stack");
                // The failed receives were cancelled, so this receive gets the only message.
                world.send(out, 1, 2);
                assertEquals(1, world.recv(in, 1, 1).count());
            }
        });
    }

    /** Every receive begins at the end of the stack and repeats further up until its message arrives. */
    @Test
    void shouldLoseNoMessageInReceivesThatOverflowTheStack() throws Exception {
        int messages = 20;
        AtomicReference<Thread> receiver = new AtomicReference<>();
        Comm.runThreads(2, world -> {
            try (WriteBuffer out = new WriteBuffer(16)) {
                for (int k = 0; k < messages; k++) {
                    out.clear();
                    out.write(new int[] {k}, 0, 1);
                    try (ReadBuffer in = new ReadBuffer(16)) {
                        if (world.id() == 1) {
                            world.recv(in, 0, 2);
                            // The wait has run for some time and has checked for an interrupt.
                            int[] seen = new int[1];
                            Wait.until("the receive waits", () -> isReceiving(receiver.get()) && ++seen[0] > 3);
                            world.ssend(out, 0, 1);
                            continue;
                        }
                        AtomicReference<Throwable> failure = new AtomicReference<>();
                        Descent descent = new Descent(() -> {
                            // The stack may also end after the native call. The message is in its buffer
                            // then.
                            if (!in.hasContent()) {
                                world.recv(in, 1, 1);
                            }
                            return true;
                        });
                        Thread thread = descent.start(failure);
                        receiver.set(thread);
                        world.send(out, 1, 2);
                        Wait.join(thread);
                        assertNull(failure.get());
                        int[] value = new int[1];
                        in.reset();
                        in.read(value, 0, 1);
                        assertEquals(k, value[0]);
                    }
                }
            }
        });
    }
}
