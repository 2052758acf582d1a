package mpjdev.tools;

import mpjdev.Buffer;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.Request;
import mpjdev.WriteBuffer;

/**
 * One message from or to rank 1, which computes after its call without further calls of mpjdev. Rank 1 sleeps
 * before. Rank 0 measures the time of the message.
 */
abstract class BusyPeer extends Work.WithArray {
    /** Computing time, which is longer than the sleep of a progress thread. */
    private static final long COMPUTING_NANOS = 100_000_000;
    /** Additional sleep of rank 0, so that rank 1 sleeps while it waits. */
    private static final long ASLEEP_MILLIS = 20;

    private final WriteBuffer begin = new WriteBuffer(Buffer.SECTION_OVERHEAD);
    private final ReadBuffer begun = new ReadBuffer(Buffer.SECTION_OVERHEAD);

    BusyPeer(Comm world, int octets) {
        super(world, octets);
        write();
    }

    @Override
    final void run(long times) throws Exception {
        nanos = 0;
        for (long i = 0; i < times && other >= 0; i++) {
            if (me == 0) {
                Thread.sleep(COMPUTING_NANOS / 1_000_000 + ASLEEP_MILLIS);
                nanos += measured();
            } else {
                world.recv(begun, 0, TAG);
                answer();
            }
        }
    }

    /** Work of rank 0 while rank 1 sleeps. Returns the measured nanoseconds. */
    abstract long measured() throws Exception;

    /** Answer of rank 1. */
    abstract void answer();

    final void begin() {
        world.send(begin, 1, TAG);
    }

    static void compute() {
        long from = System.nanoTime();
        while (System.nanoTime() - from < COMPUTING_NANOS) {
            Thread.onSpinWait();
        }
    }

    @Override
    public void close() {
        begin.close();
        begun.close();
        super.close();
    }

    /** Rank 1 sends: time from the request of rank 0 until the message is received. */
    static final class Sender extends BusyPeer {
        Sender(Comm world, int octets) {
            super(world, octets);
        }

        @Override
        long measured() {
            long from = System.nanoTime();
            begin();
            world.recv(in, 1, TAG);
            return System.nanoTime() - from;
        }

        @Override
        void answer() {
            world.send(out, 0, TAG);
            compute();
        }
    }

    /** Rank 1 has posted a receive: time until a synchronous message is matched. */
    static final class Receiver extends BusyPeer {
        /** Time after which the receive is posted. */
        private static final long POSTED_MILLIS = 5;

        Receiver(Comm world, int octets) {
            super(world, octets);
        }

        @Override
        long measured() throws Exception {
            begin();
            Thread.sleep(POSTED_MILLIS);
            long from = System.nanoTime();
            world.ssend(out, 1, TAG);
            return System.nanoTime() - from;
        }

        @Override
        void answer() {
            Request request = world.irecv(in, 0, TAG);
            compute();
            request.iwait();
        }
    }
}
