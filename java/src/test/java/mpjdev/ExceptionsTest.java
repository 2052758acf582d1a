package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Hierarchy of the exceptions: the original ones keep their superclasses, and the new ones share one. */
class ExceptionsTest {
    @Test
    void shouldKeepTheSuperclassesOfTheOriginal() {
        assertSame(IOException.class, BufferReadException.class.getSuperclass());
        assertSame(BufferReadException.class, TypeMismatchException.class.getSuperclass());
        assertSame(BufferReadException.class, SectionSizeMismatchException.class.getSuperclass());
        assertSame(ArrayIndexOutOfBoundsException.class, BufferOverflowException.class.getSuperclass());
        assertNull(new BufferReadException().getMessage());
        assertNull(new TypeMismatchException().getMessage());
        assertNull(new SectionSizeMismatchException().getMessage());
        assertEquals("x", new BufferReadException("x").getMessage());
        assertEquals("x", new TypeMismatchException("x").getMessage());
        assertEquals("x", new SectionSizeMismatchException("x").getMessage());
        assertEquals("x", new BufferOverflowException("x").getMessage());
    }

    @Test
    void shouldHaveOneUncheckedSuperclassForCommunication() {
        assertSame(RuntimeException.class, MPJDevException.class.getSuperclass());
        for (MPJDevException e : List.of(new TruncationException("t"), new DamagedMessageException("t"),
                new PeerFailedException("t", 3), new TimedOutException("t"), new InterruptedOperationException("t"),
                new CancelledException("t"), new NotInitializedException("t"), new BadArgumentException("t"),
                new UndeliveredException("t", 3), new CollectiveAbandonedException("t", 3),
                new CollectiveFailedException("t", 3), new ContentMismatchException("t"))) {
            assertSame(MPJDevException.class, e.getClass().getSuperclass());
            assertEquals("t", e.getMessage());
        }
        assertEquals(3, new PeerFailedException("t", 3).rank());
        assertEquals(3, new UndeliveredException("t", 3).rank());
        assertEquals(3, new CollectiveAbandonedException("t", 3).rank());
        assertEquals(3, new CollectiveFailedException("t", 3).rank());
    }
}
