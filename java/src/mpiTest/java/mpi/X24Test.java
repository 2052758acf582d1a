package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import mpjdev.Fork;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Defect X24 of MPJ Express: Init demands three arguments and a file of the environment variable MPJ_HOME,
 * and a logging library has to be on the class path.
 */
@Timeout(180)
class X24Test {
    /** Begins without arguments. */
    static final class Plain {
        private Plain() {}

        public static void main(String[] args) {
            assertEquals(0, MPI.Init(args).length);
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @Test
    void shouldBeginWithoutArgumentsAndInstallation() throws Exception {
        assertEquals("done\n", new Fork().run(Plain.class).ok());
    }
}
