package mpjdev.tools;

import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.Header;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import mpjdev.Comm;
import org.agrona.BufferUtil;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Messages over a publication and a subscription of Aeron. Arrays are copied into direct memory, which is
 * offered, and out of the memory that a poll returns. A buffer is offered without a copy, and its receiver
 * reads the first word in place.
 */
abstract class AeronWork extends Work.WithArray {
    /** Limit of doubles that a loop copies faster than a view. */
    private static final int LOOP_MAX = 32;
    /** Empty polls before a yield. A message takes fewer. */
    private static final int POLLS = 4096;
    /** Limit of the messages of one poll. */
    private static final int POLL_MESSAGES = 16;
    /** Least octets of a term. The terms of both directions fit a processor's cache. */
    private static final int TERM_MIN = 1 << 20;
    /** Least messages of a term. */
    private static final int TERM_MESSAGES = 64;
    private static final int ALIGNMENT = 64;

    private final boolean isFromArray;
    private final int octets;
    private final AeronCarrier carrier;
    private final ExclusivePublication publication;
    private final Subscription subscription;
    private final Image image;
    private final FragmentHandler handler;
    private final UnsafeBuffer direct;
    private final DoubleBuffer doubles;
    /** Messages to be received. */
    private int missing;
    /** The first word of the last message. */
    private long first;

    /**
     * Case and streams of a work.
     *
     * @param what case
     * @param octets octets of the elements of a message
     * @param publication to the other rank
     * @param subscription to the other rank's publication
     */
    record Task(Case what, int octets, ExclusivePublication publication, Subscription subscription) {}

    private AeronWork(Comm world, AeronCarrier carrier, Task task) {
        super(world, task.octets);
        this.carrier = carrier;
        isFromArray = task.what != Case.BUFFERS && task.what != Case.RATE_BUFFERS;
        octets = task.octets;
        publication = task.publication;
        subscription = task.subscription;
        image = subscription.imageAtIndex(0);
        ByteBuffer memory = BufferUtil.allocateDirectAligned(octets, ALIGNMENT).order(ByteOrder.nativeOrder());
        direct = new UnsafeBuffer(memory);
        doubles = memory.asDoubleBuffer();
        boolean isWhole = octets <= publication.maxPayloadLength();
        handler = isWhole ? this::take : new FragmentAssembler(this::take, octets, true);
    }

    /** The work of a task. */
    static AeronWork of(Comm world, AeronCarrier carrier, Task task) {
        return switch (task.what) {
            case ARRAYS, DIRECT, BUFFERS -> new Trips(world, carrier, task);
            case RATE_ARRAYS, RATE_DIRECT, RATE_BUFFERS, RATE_REQUESTS -> new Window(world, carrier, task);
            default -> throw new IllegalArgumentException(task.what.word + " is not measured over Aeron");
        };
    }

    /** Octets of a term for messages of this length: a power of two. */
    static int termLength(int octets) {
        return Math.max(TERM_MIN, 2 * Integer.highestOneBit(octets) * TERM_MESSAGES);
    }

    @Override
    final void run(long times) throws Exception {
        for (long i = 0; i < times; i++) {
            once();
        }
        carrier.settle();
    }

    /** Runs one repetition. */
    abstract void once();

    final void sendMessage() {
        if (isFromArray) {
            pack();
        }
        send(octets);
    }

    final void send(int length) {
        long result = publication.offer(direct, 0, length);
        while (result < 0) {
            if (result != Publication.BACK_PRESSURED && result != Publication.ADMIN_ACTION) {
                throw new IllegalStateException("Aeron refuses a message: " + Publication.errorString(result));
            }
            carrier.idle();
            result = publication.offer(direct, 0, length);
        }
    }

    final void receive(int messages) {
        int polls = 0;
        missing = messages;
        while (missing > 0) {
            if (image.poll(handler, Math.min(missing, POLL_MESSAGES)) > 0) {
                polls = 0;
            } else if (++polls % POLLS == 0) {
                carrier.idle();
                Thread.yield();
            } else {
                carrier.poll();
            }
        }
    }

    private void pack() {
        if (array.length <= LOOP_MAX) {
            for (int i = 0; i < array.length; i++) {
                direct.putDouble(i * Double.BYTES, array[i]);
            }
        } else {
            doubles.clear();
            doubles.put(array);
        }
    }

    private void take(DirectBuffer buffer, int offset, int length, Header header) {
        missing--;
        if (length == 0) {
            return;
        }
        if (!isFromArray) {
            first = buffer.getLong(offset);
        } else if (array.length <= LOOP_MAX) {
            for (int i = 0; i < array.length; i++) {
                array[i] = buffer.getDouble(offset + i * Double.BYTES);
            }
        } else {
            ByteBuffer memory = buffer.byteBuffer().duplicate().order(ByteOrder.nativeOrder());
            memory.clear().position(buffer.wrapAdjustment() + offset);
            memory.asDoubleBuffer().get(array);
        }
    }

    /** The first word of the last message in place. */
    final long first() {
        return first;
    }

    @Override
    public void close() {
        super.close();
        publication.close();
        subscription.close();
    }

    /** Round trips. */
    private static final class Trips extends AeronWork {
        Trips(Comm world, AeronCarrier carrier, Task task) {
            super(world, carrier, task);
        }

        @Override
        void once() {
            if (me == 0) {
                sendMessage();
            }
            receive(1);
            if (me == 1) {
                sendMessage();
            }
        }
    }

    /** Windows of messages from rank 0 to rank 1, each with an empty answer. */
    private static final class Window extends AeronWork {
        private final int window;

        Window(Comm world, AeronCarrier carrier, Task task) {
            super(world, carrier, task);
            window = Windows.window(task.octets);
        }

        @Override
        void once() {
            if (me == 0) {
                for (int k = 0; k < window; k++) {
                    sendMessage();
                }
                receive(1);
            } else {
                receive(window);
                send(0);
            }
        }
    }
}
