package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.Externalizable;
import java.io.IOException;
import java.io.ObjectInput;
import java.io.ObjectOutput;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Large objects: they are streamed in chunks, and the Java heap never holds a second copy. */
class BigObjectsTest {
    /** An object that is small in memory and large in the stream: it makes its octets when it is written. */
    public static final class Lazy implements Externalizable {
        private static final long serialVersionUID = 1L;
        private static final int OCTETS = 1 << 20;

        private int seed;

        /** Deserialisation needs it. */
        public Lazy() {}

        Lazy(int seed) {
            this.seed = seed;
        }

        private static byte[] octets(int seed) {
            byte[] octets = new byte[OCTETS];
            new Random(seed).nextBytes(octets);
            return octets;
        }

        @Override
        public void writeExternal(ObjectOutput out) throws IOException {
            out.writeInt(seed);
            out.write(octets(seed));
        }

        @Override
        public void readExternal(ObjectInput in) throws IOException {
            seed = in.readInt();
            byte[] got = new byte[OCTETS];
            in.readFully(got);
            assertArrayEquals(octets(seed), got);
        }
    }

    /** Sends objects whose stream is several times as large as the heap. */
    static final class Streaming {
        private Streaming() {}

        public static void main(String[] args) throws Exception {
            int count = Integer.parseInt(args[0]);
            boolean split = Boolean.parseBoolean(args[1]);
            Wait.job(split, 2, world -> {
                Object[] objects = new Object[count];
                if (world.id() == 0) {
                    for (int i = 0; i < count; i++) {
                        objects[i] = new Lazy(i);
                    }
                    try (ObjectWriteBuffer out = new ObjectWriteBuffer(64)) {
                        out.write(objects, 0, count / 2);
                        out.write(objects, count / 2, count - count / 2);
                        out.write(new Object[] {objects[0], objects[count - 1]}, 0, 2);
                        world.send(out, 1, 0);
                    }
                } else {
                    try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                        world.recv(in, 0, 0);
                        in.read(objects, 0, count / 2);
                        in.read(objects, count / 2, count - count / 2);
                        Object[] ends = new Object[2];
                        in.read(ends, 0, 2);
                        assertTrue(ends[0] == objects[0] && ends[1] == objects[count - 1]);
                        for (int i = 0; i < count; i++) {
                            assertEquals(i, ((Lazy) objects[i]).seed);
                        }
                        System.out.println("received " + count);
                    }
                }
            });
        }
    }

    @Test
    @Timeout(120)
    void shouldStreamMoreThanTheHeapHolds() throws Exception {
        for (boolean split : new boolean[] {false, true}) {
            String output = new Fork().with("-Xmx20m", "-Dmpjdev.memory=1g").run(Streaming.class, "60",
                    "" + split).ok();
            assertTrue(output.contains("received 60"), output);
        }
    }

    @Test
    @Timeout(60)
    void shouldKeepEightMegabytesOfObjects() throws Exception {
        exchange(8 << 20);
    }

    @Test
    @Tag("soak")
    @Timeout(1200)
    void shouldKeepAHundredMegabytesOfObjects() throws Exception {
        exchange(100 << 20);
        String output = new Fork().with("-Xmx32m", "-Dmpjdev.memory=6g").run(Streaming.class, "1500", "true").ok();
        assertTrue(output.contains("received 1500"), output);
    }

    private static void exchange(int octets) throws Exception {
        for (boolean split : new boolean[] {false, true}) {
            Wait.job(split, 2, world -> {
                Random random = new Random(octets);
                byte[] large = new byte[octets / 2];
                random.nextBytes(large);
                List<String> many = new ArrayList<>();
                for (int left = octets / 2; left > 0; left -= 100) {
                    many.add(Integer.toHexString(random.nextInt()).repeat(12));
                }
                if (world.id() == 0) {
                    try (ObjectWriteBuffer out = new ObjectWriteBuffer(64)) {
                        out.write(new Object[] {large, many}, 0, 2);
                        world.send(out, 1, 0);
                    }
                } else {
                    try (ObjectReadBuffer in = new ObjectReadBuffer(64)) {
                        world.recv(in, 0, 0);
                        Object[] got = new Object[2];
                        in.read(got, 0, 2);
                        assertArrayEquals(large, (byte[]) got[0]);
                        assertEquals(many, got[1]);
                    }
                }
            });
        }
    }
}
