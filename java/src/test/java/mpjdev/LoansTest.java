package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Loans of message memory whose borrower or owner ends. */
@Timeout(180)
@Tag("jdk")
class LoansTest {
    private static final int MESSAGES = 30;
    private static final int LENGTH = 1_000_000;
    private static final int CAPACITY = LENGTH + Buffer.SECTION_OVERHEAD;

    /** Rank 1 keeps the messages that it has received, and ends. */
    static final class Borrower {
        private Borrower() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            byte[] data = new byte[LENGTH];
            if (Comm.WORLD.id() == 1) {
                List<ReadBuffer> kept = new ArrayList<>();
                for (int i = 0; i < MESSAGES; i++) {
                    ReadBuffer in = new ReadBuffer(CAPACITY);
                    Comm.WORLD.recv(in, 0, 1);
                    kept.add(in);
                }
                if (args[0].equals("kill")) {
                    new ProcessBuilder("kill", "-9", "" + ProcessHandle.current().pid()).start().waitFor();
                }
                Comm.finish();
                Runtime.getRuntime().halt(0);
            }
            for (int i = 0; i < MESSAGES; i++) {
                try (WriteBuffer out = new WriteBuffer(CAPACITY)) {
                    out.write(data, 0, LENGTH);
                    Comm.WORLD.send(out, 1, 1);
                }
            }
            Wait.until("rank 0 has its memory back", () -> most(data) >= 40);
            System.out.println("done");
            Runtime.getRuntime().halt(0);
        }

        /** Returns the number of buffers that can be full at once. */
        private static int most(byte[] data) {
            List<WriteBuffer> all = new ArrayList<>();
            try {
                while (true) {
                    WriteBuffer out = new WriteBuffer(CAPACITY);
                    all.add(out);
                    out.write(data, 0, LENGTH);
                }
            } catch (OutOfMemoryError e) {
                return all.size() - 1;
            } finally {
                all.forEach(WriteBuffer::close);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"finish", "kill"})
    void shouldReturnLoansOfAnEndedRank(String how) throws Exception {
        Job job = new Mpjrun(2).with("--keep-going").jvm("-Dmpjdev.memory=48m").run(Borrower.class, how);
        assertEquals(List.of("done"), job.lines(), job::toString);
    }

    /** Rank 0 sends, finishes and ends. Rank 1 reads after that. */
    static final class Lender {
        private Lender() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            byte[] data = new byte[LENGTH];
            Arrays.fill(data, (byte) 7);
            try (WriteBuffer out = new WriteBuffer(CAPACITY); ReadBuffer in = new ReadBuffer(CAPACITY)) {
                if (Comm.WORLD.id() == 0) {
                    out.write(data, 0, LENGTH);
                    Comm.WORLD.send(out, 1, 1);
                    out.clear();
                    out.write(new long[] {ProcessHandle.current().pid()}, 0, 1);
                    Comm.WORLD.send(out, 1, 2);
                    Comm.finish();
                    return;
                }
                Comm.WORLD.recv(in, 0, 1);
                long[] pid = new long[1];
                try (ReadBuffer small = new ReadBuffer(16)) {
                    Comm.WORLD.recv(small, 0, 2);
                    small.read(pid, 0, 1);
                }
                Wait.until("rank 0 has ended", () -> ProcessHandle.of(pid[0]).isEmpty());
                Comm.finish();
                byte[] got = new byte[LENGTH];
                in.read(got, 0, LENGTH);
                assertArrayEquals(data, got);
                System.out.println("done");
            }
        }
    }

    @Test
    void shouldReadLoansFromAnEndedRank() throws Exception {
        Job job = new Mpjrun(2).run(Lender.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("done"), job.lines());
    }
}
