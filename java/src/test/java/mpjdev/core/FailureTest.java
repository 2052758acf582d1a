package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** What native code throws is taken apart into code, rank and text. */
class FailureTest {
    @Test
    void shouldTakeApartWhatNativeCodeThrows() {
        Failure failure = new Failure("7 -1 rank 3 has failed: a text with spaces");
        assertEquals(7, failure.code());
        assertEquals(-1, failure.rank());
        assertEquals("rank 3 has failed: a text with spaces", failure.getMessage());
        assertEquals(0, failure.getStackTrace().length, "its face's exception has the one that counts");
        assertEquals("", new Failure("1 2 ").getMessage());
    }
}
