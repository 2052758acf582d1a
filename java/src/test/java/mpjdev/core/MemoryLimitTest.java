package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import mpjdev.Buffer;
import mpjdev.Fork;
import mpjdev.ObjectWriteBuffer;
import mpjdev.ReadBuffer;
import mpjdev.WriteBuffer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** The limit on message memory: collections free memory below it, and errors state the numbers. */
@Timeout(120)
@Execution(ExecutionMode.CONCURRENT)
class MemoryLimitTest {
    private static final int PIECE = 1 << 20;

    @Test
    void shouldParseSizes() {
        assertEquals(0, MemoryLimit.parse("0"));
        assertEquals(4096, MemoryLimit.parse("4096"));
        assertEquals(64 << 10, MemoryLimit.parse("64k"));
        assertEquals(512L << 20, MemoryLimit.parse(" 512M "));
        assertEquals(2L << 30, MemoryLimit.parse("2g"));
        assertEquals(Long.MAX_VALUE, MemoryLimit.parse("9223372036854775807"));
        assertEquals(8589934591L << 30, MemoryLimit.parse("8589934591g"));
    }

    @Test
    void shouldNameThePropertyOfAnInvalidSize() {
        for (String bad : new String[] {"", "k", "12q", "-1", "-1k", "1.5g", "0x10", "1 k", "1kk", "8589934592g",
            "9223372036854775808"}) {
            IllegalArgumentException e = assertThrows(IllegalArgumentException.class, () -> MemoryLimit.parse(bad), bad);
            assertTrue(e.getMessage().contains("-Dmpjdev.memory=" + bad), e.getMessage());
        }
    }

    /** Takes buffers up to the limit, then checks that closed and unreachable buffers release memory. */
    static final class Exhaust {
        private Exhaust() {}

        public static void main(String[] args) {
            List<Buffer> held = new ArrayList<>();
            String text = fill(held);
            System.out.println(text);
            int most = held.size();
            check(most >= 12 && most <= 16, "1 MiB buffers in 16 MiB: " + most);
            // A failed write changes nothing, and the buffer works again once memory is free.
            try (WriteBuffer b = new WriteBuffer(PIECE - 4096)) {
                try {
                    b.write(new byte[10], 0, 10);
                    check(false, "memory was left");
                } catch (OutOfMemoryError e) {
                    check(b.sectionCount() == 0, "something was written");
                }
                held.remove(0).close();
                b.write(new byte[10], 0, 10);
                check(b.sectionCount() == 1, "nothing was written");
            }
            // The collection at the limit closes unreachable buffers.
            for (int round = 0; round < Integer.parseInt(args[0]); round++) {
                held.clear();
                fill(held);
                check(held.size() >= most - 2, "only " + held.size() + " of " + most + " came back");
            }
            held.clear();
            objects();
            loads();
            System.out.println("done");
        }

        private static String fill(List<Buffer> held) {
            while (true) {
                WriteBuffer b = new WriteBuffer(PIECE - 4096);
                try {
                    b.write(new byte[10], 0, 10);
                } catch (OutOfMemoryError e) {
                    b.close();
                    return e.getMessage();
                }
                held.add(b);
            }
        }

        /** Checks that the secondary payload counts too. */
        private static void objects() {
            try (ObjectWriteBuffer b = new ObjectWriteBuffer(64)) {
                b.write(new Object[] {"first"}, 0, 1);
                byte[] before = b.toByteArray();
                try {
                    b.write(new Object[] {new byte[20 << 20]}, 0, 1);
                    check(false, "20 MiB fitted into 16");
                } catch (OutOfMemoryError e) {
                    check(e.getMessage().contains("16777216"), e.getMessage());
                }
                check(java.util.Arrays.equals(before, b.toByteArray()), "a failed write has changed the message");
                b.write(new Object[] {"second"}, 0, 1);
                check(b.sectionCount() == 2, "later writes do not work");
            } catch (java.io.IOException e) {
                throw new AssertionError(e);
            }
        }

        private static void loads() {
            byte[] message;
            try (WriteBuffer b = new WriteBuffer(6 << 20); ReadBuffer in = new ReadBuffer(6 << 20);
                    ReadBuffer more = new ReadBuffer(6 << 20)) {
                b.write(new byte[5 << 20], 0, 5 << 20);
                message = b.toByteArray();
                in.load(message);
                try {
                    more.load(message);
                    check(false, "three times 5 MiB fitted into 16");
                } catch (OutOfMemoryError e) {
                    check(more.sectionCount() == 0 && in.sectionCount() == 1, "changed by a failed load");
                }
            } catch (java.io.IOException e) {
                throw new AssertionError(e);
            }
        }

        private static void check(boolean good, String what) {
            if (!good) {
                throw new AssertionError(what);
            }
        }
    }

    @Test
    void shouldCollectOnceAtTheLimitAndThenNameTheNumbers() throws Exception {
        exhaust(2);
    }

    @Test
    @Tag("soak")
    void shouldCollectAtTheLimitAgainAndAgain() throws Exception {
        exhaust(20);
    }

    /** An allocation beyond the limit fails about a second after its collection. */
    private static void exhaust(int rounds) throws Exception {
        String output = new Fork().with("-Dmpjdev.memory=16m", "-Xmx256m").run(Exhaust.class, "" + rounds).ok();
        assertTrue(output.matches("(?s).*message memory: [0-9]+ octets asked, [0-9]+ of 16777216 in use.*"), output);
        assertTrue(output.contains("done"), output);
    }

    /** Prints the result of the first write. */
    static final class FirstWrite {
        private FirstWrite() {}

        public static void main(String[] args) {
            try (WriteBuffer b = new WriteBuffer(100 << 20)) {
                b.write(new byte[10], 0, 10);
                System.out.println("written");
            } catch (OutOfMemoryError e) {
                System.out.println(e.getMessage());
            } catch (Error e) {
                System.out.println(e + " because of " + e.getCause());
            }
        }
    }

    @Test
    void shouldUseTheLargestHeapAsDefaultLimit() throws Exception {
        String output = new Fork().with("-Xmx64m").run(FirstWrite.class).ok();
        assertTrue(output.contains("message memory:"), output);
        output = new Fork().with("-Xmx64m", "-Dmpjdev.memory=200m").run(FirstWrite.class).ok();
        assertTrue(output.contains("written"), output);
    }

    @Test
    void shouldRejectALimitThatIsNoSize() throws Exception {
        String output = new Fork().with("-Dmpjdev.memory=much").run(FirstWrite.class).output;
        assertTrue(output.contains("-Dmpjdev.memory=much is not a size"), output);
    }
}
