package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.lang.reflect.Field;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import mpjdev.core.NativeFailure;
import org.junit.jupiter.api.Test;

/** Conversion of native failures: each is one exception of each part of the API, with its text and rank. */
class ErrorsTest {
    private static final String TEXT = "24 octets needed, 23 available";
    private static final int RANK = 3;

    /** Marks a failure that this part of the API cannot have. */
    private static final Class<?> NEVER = IllegalStateException.class;

    /** The exceptions of writes, reads and communication by the name of the failure. */
    private static final Map<String, Class<?>[]> EXPECTED = Map.ofEntries(
            row("OVERFLOW", BufferOverflowException.class, NEVER, NEVER),
            row("END_OF_SECTIONS", NEVER, BufferReadException.class, NEVER),
            row("TYPE_MISMATCH", NEVER, TypeMismatchException.class, ContentMismatchException.class),
            row("SIZE_MISMATCH", NEVER, SectionSizeMismatchException.class, NEVER),
            row("DAMAGED", NEVER, BufferReadException.class, DamagedMessageException.class),
            row("TRUNCATED", NEVER, BufferReadException.class, TruncationException.class),
            row("PEER_FAILED", NEVER, NEVER, PeerFailedException.class),
            row("TIMED_OUT", NEVER, NEVER, TimedOutException.class),
            row("INTERRUPTED", NEVER, NEVER, InterruptedOperationException.class),
            row("CANCELLED", NEVER, NEVER, CancelledException.class),
            row("NOT_INITIALIZED", NEVER, NEVER, NotInitializedException.class),
            row("BAD_ARGUMENT", NEVER, NEVER, BadArgumentException.class),
            row("BAD_GROUP", NEVER, NEVER, BadArgumentException.class),
            row("UNDELIVERED", NEVER, NEVER, UndeliveredException.class),
            row("ABANDONED", NEVER, NEVER, CollectiveAbandonedException.class),
            row("OPERATION_FAILED", NEVER, NEVER, CollectiveFailedException.class));

    private static Map.Entry<String, Class<?>[]> row(String name, Class<?>... writeReadComm) {
        return Map.entry(name, writeReadComm);
    }

    /** All declared codes. A new one needs a row above. */
    private static Map<String, Integer> codes() throws IllegalAccessException {
        Map<String, Integer> codes = new TreeMap<>();
        for (Field field : NativeFailure.class.getFields()) {
            if (field.getType() == int.class) {
                codes.put(field.getName(), field.getInt(null));
            }
        }
        return codes;
    }

    private static void check(int part, Function<NativeFailure, Exception> face) throws Exception {
        Map<String, Integer> codes = codes();
        assertEquals(codes.keySet(), new TreeMap<>(EXPECTED).keySet());
        for (Map.Entry<String, Integer> code : codes.entrySet()) {
            Exception e;
            try {
                e = face.apply(new NativeFailure(code.getValue() + " " + RANK + " " + TEXT));
            } catch (RuntimeException thrown) {
                e = thrown;
            }
            Class<?> expected = EXPECTED.get(code.getKey())[part];
            assertSame(expected, e.getClass(), code.getKey());
            assertEquals(expected == NEVER ? "failure " + code.getValue() + ": " + TEXT : TEXT, e.getMessage());
        }
    }

    @Test
    void shouldConvertAnOverflowForWrites() throws Exception {
        check(0, Errors::write);
    }

    @Test
    void shouldConvertMismatchesAndDamageForReads() throws Exception {
        check(1, Errors::read);
    }

    @Test
    void shouldConvertAllOtherFailuresForCommunication() throws Exception {
        check(2, Errors::comm);
    }

    @Test
    void shouldKeepTheRankOfAFailure() {
        assertEquals(RANK, ((PeerFailedException) Errors.comm(new NativeFailure(NativeFailure.PEER_FAILED + " 3 gone"))).rank());
        assertEquals(-1, ((PeerFailedException) Errors.comm(new NativeFailure(NativeFailure.PEER_FAILED + " -1 all"))).rank());
        assertEquals(RANK, ((UndeliveredException) Errors.comm(new NativeFailure(NativeFailure.UNDELIVERED + " 3 left"))).rank());
        NativeFailure abandoned = new NativeFailure(NativeFailure.ABANDONED + " 3 left");
        assertEquals(RANK, ((CollectiveAbandonedException) Errors.comm(abandoned)).rank());
        NativeFailure failed = new NativeFailure(NativeFailure.OPERATION_FAILED + " 3 thrown");
        assertEquals(RANK, ((CollectiveFailedException) Errors.comm(failed)).rank());
    }
}
