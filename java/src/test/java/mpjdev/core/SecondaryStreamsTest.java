package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The two streams of the secondary payload keep octets, in pieces of sizes around that of the chunk. */
@Timeout(60)
class SecondaryStreamsTest {
    private static final int[] SIZES = {1, 2, 100, 8190, 8191, 8192, 8193, 16384, 40_000};

    @Test
    void shouldKeepOctetsInPiecesOfEverySize() {
        Random random = new Random(5);
        byte[] octets = new byte[300_000];
        random.nextBytes(octets);
        long writer = Native.newWriter(64, 1);
        long reader = Native.newReader(64);
        try {
            SecondaryOutput out = new SecondaryOutput(writer);
            for (int at = 0; at < octets.length; ) {
                int n = Math.min(SIZES[random.nextInt(SIZES.length)], octets.length - at);
                if (n == 1) {
                    out.write(octets[at]);
                } else {
                    out.write(octets, at, n);
                }
                at += n;
            }
            out.flush();
            out.flush();
            Native.writeObjects(writer, 1, 0);
            byte[] message = new byte[(int) Native.logicalLength(writer, 0)];
            assertEquals(16 + 8 + octets.length, message.length);
            Native.copyLogical(writer, message, message.length, 0);
            Native.load(reader, message, message.length);
            SecondaryInput in = new SecondaryInput(reader);
            byte[] back = new byte[octets.length];
            for (int at = 0; at < back.length; ) {
                int n = Math.min(SIZES[random.nextInt(SIZES.length)], back.length - at);
                if (n == 1) {
                    back[at++] = (byte) in.read();
                } else {
                    at += in.read(back, at, n);
                }
            }
            assertArrayEquals(octets, back);
            assertEquals(-1, in.read());
            assertEquals(-1, in.read(back, 0, 10));
            assertEquals(-1, in.read(back, 0, 10_000));
            assertEquals(0, in.read(back, 0, 0));
            assertEquals(0, in.available());
        } finally {
            Native.close(writer);
            Native.close(reader);
        }
    }

    @Test
    void shouldDiscardDroppedOctets() {
        long writer = Native.newWriter(64, 1);
        try {
            SecondaryOutput out = new SecondaryOutput(writer);
            out.write(new byte[10], 0, 10);
            out.drop();
            out.flush();
            assertEquals(0, Native.secondaryLength(writer, 0));
        } finally {
            Native.close(writer);
        }
    }

    @Test
    void shouldRejectRangesOutsideTheArray() {
        long writer = Native.newWriter(64, 1);
        try {
            SecondaryOutput out = new SecondaryOutput(writer);
            assertThrows(IndexOutOfBoundsException.class, () -> out.write(new byte[3], 2, 2));
            SecondaryInput in = new SecondaryInput(writer);
            assertThrows(IndexOutOfBoundsException.class, () -> in.read(new byte[3], -1, 2));
        } finally {
            Native.close(writer);
        }
    }
}
