package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** Parsing of native failures into code, rank and text. */
class NativeFailureTest {
    @Test
    void shouldParseCodeRankAndText() {
        NativeFailure failure = new NativeFailure("7 -1 rank 3 has failed: a text with spaces");
        assertEquals(7, failure.code());
        assertEquals(-1, failure.rank());
        assertEquals("rank 3 has failed: a text with spaces", failure.getMessage());
        assertEquals(0, failure.getStackTrace().length, "the public exception has the stack trace");
        assertEquals("", new NativeFailure("1 2 ").getMessage());
    }
}
