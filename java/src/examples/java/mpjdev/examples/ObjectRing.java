package mpjdev.examples;

import java.io.IOException;
import java.io.ObjectInputFilter;
import mpjdev.Buffer;
import mpjdev.Comm;
import mpjdev.ObjectReadBuffer;
import mpjdev.ObjectWriteBuffer;
import mpjdev.Status;
import mpjdev.Type;
import mpjdev.examples.Traffic.Kind;

/**
 * A ring: a token visits all ranks several times, and each rank adds to it.
 *
 * <p>A message holds the number of the hop (a section of one int, in the primary payload) and the token (a
 * section of one object, serialised in the secondary payload). When both payloads together are smaller than
 * the sender's buffer, they are one message, otherwise the secondary payload is a second one. The rounds
 * alternate between large buffers and buffers that fit the primary payload only. Sender and receiver have
 * buffers of the same capacity.
 */
final class ObjectRing {
    private static final int HOP = 3;
    private static final int HOPS = 160;
    private static final int PRIMARY =
            (int) (Buffer.requiredCapacity(Type.INT, 1) + Buffer.requiredCapacity(Type.OBJECT, 1));
    private static final int ROOMY = 8 << 20;
    /** A filter that allows only the classes of a token. */
    private static final ObjectInputFilter FILTER =
            ObjectInputFilter.Config.createFilter("mpjdev.examples.Token*;java.util.ArrayList;java.lang.Object;!*");

    private final Comm world;
    private final Traffic traffic;
    private final Progress progress;

    ObjectRing(Comm world, Traffic traffic, Progress progress) {
        this.world = world;
        this.traffic = traffic;
        this.progress = progress;
    }

    /** Even number of rounds: fewer if they are long, because the token grows with each hop. */
    static int rounds(int ranks) {
        return 2 * Math.max(1, HOPS / 2 / ranks);
    }

    /**
     * Takes part in all rounds. Collective; blocks.
     *
     * @return the token in rank 0 at the end, null in the others
     * @throws IllegalStateException if a token differs from the one that was sent
     */
    Token run() throws IOException {
        int ranks = world.size();
        int hops = rounds(ranks) * ranks;
        Token token = world.id() == 0 ? new Token() : null;
        // Hop h goes from rank h % ranks to the next one.
        for (int hop = 0; hop < hops; hop++) {
            if (hop % ranks == world.id()) {
                token.visit(world.id());
                send(token, hop);
            }
            if ((hop + 1) % ranks == world.id()) {
                token = receive(hop);
                if (token.visits() != hop + 1 || !token.isSound(ranks)) {
                    throw new IllegalStateException("the token is not what was sent, after hop " + hop);
                }
                if (world.id() == 0) {
                    progress.hops(hop + 1, hops);
                }
            }
        }
        progress.end();
        return world.id() == 0 ? token : null;
    }

    /** Returns the expected last stamp, computed without messages. */
    static long expectedStamp(int ranks) {
        Token token = new Token();
        for (int hop = 0; hop < rounds(ranks) * ranks; hop++) {
            token.visit(hop % ranks);
        }
        return token.stamp();
    }

    private boolean isRoomy(int hop) {
        return hop / world.size() % 2 == 0;
    }

    private Kind kind(int hop) {
        return isRoomy(hop) ? Kind.ROOMY : Kind.TIGHT;
    }

    private int capacity(int hop) {
        return isRoomy(hop) ? ROOMY : PRIMARY;
    }

    private void send(Token token, int hop) throws IOException {
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(capacity(hop))) {
            out.write(new int[] {hop}, 0, 1);
            out.write(new Object[] {token}, 0, 1);
            // A ring of one rank sends to itself, so this send must not wait for the receive.
            world.isend(out, (world.id() + 1) % world.size(), HOP);
            traffic.sent(kind(hop), out.toByteArray().length);
        }
    }

    private Token receive(int hop) throws IOException {
        try (ObjectReadBuffer in = new ObjectReadBuffer(capacity(hop))) {
            in.setObjectFilter(FILTER);
            Status status = world.recv(in, Comm.ANY_SOURCE, HOP);
            int[] number = new int[1];
            in.read(number, 0, 1);
            if (number[0] != hop) {
                throw new IllegalStateException("hop " + hop + " brought hop " + number[0]);
            }
            // The size is that of the first physical message. If it exceeds the primary payload, it is the
            // only one.
            if (status.size() > PRIMARY) {
                traffic.arrivedAsOne(kind(hop));
            } else {
                traffic.arrivedAsTwo(kind(hop));
            }
            Token[] token = new Token[1];
            in.read(token, 0, 1);
            return token[0];
        } catch (ClassNotFoundException e) {
            throw new IOException("a token of an unknown class", e);
        }
    }
}
