package mpjdev.core;

import java.util.concurrent.CountDownLatch;

/** Platform threads for calls of virtual threads that wait in native code. Internal. */
public final class PlatformThread {
    private PlatformThread() {}

    /**
     * Runs a call on a thread of its own, while the calling virtual thread is parked. An interrupt is passed
     * on to that thread, and stays set.
     *
     * @param call the call, whose exception is thrown here
     */
    public static void run(Runnable call) {
        CountDownLatch done = new CountDownLatch(1);
        Throwable[] thrown = new Throwable[1];
        Thread thread = new Thread(() -> {
            try {
                call.run();
            } catch (RuntimeException | Error e) {
                thrown[0] = e;
            } finally {
                done.countDown();
            }
        }, "mpjdev-collective");
        thread.setDaemon(true);
        thread.start();
        boolean wasInterrupted = false;
        while (done.getCount() > 0) {
            try {
                done.await();
            } catch (InterruptedException e) {
                wasInterrupted = true;
                thread.interrupt();
            }
        }
        if (wasInterrupted) {
            Thread.currentThread().interrupt();
        }
        if (thrown[0] instanceof Error) {
            throw (Error) thrown[0];
        }
        if (thrown[0] != null) {
            throw (RuntimeException) thrown[0];
        }
    }
}
