package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.function.Executable;

/** Parts of the programs that tests start. */
final class Program {
    private Program() {}

    /** Checks that a call fails with an error of this class. Returns its text. */
    static String fails(int errorClass, Executable call) {
        MPIException e = assertThrows(MPIException.class, call);
        assertEquals(errorClass, e.getErrorClass(), e::toString);
        return e.getMessage();
    }

    /** Checks source, tag and number of items of a status. */
    static void assertStatus(int source, int tag, int count, Status status) {
        assertEquals(source, status.source, status::toString);
        assertEquals(tag, status.tag, status::toString);
        assertEquals(count, status.count, status::toString);
        assertEquals(count, status.numEls, status::toString);
    }
}
