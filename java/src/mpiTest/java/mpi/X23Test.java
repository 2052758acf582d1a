package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import mpjdev.Fork;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Failures that are exceptions and nothing else (defect X23 of MPJ Express: a receive prints stack traces,
 * and Get_processor_name throws without DNS).
 */
@Timeout(180)
class QuietFailureTest {
    /** Receives that fail. */
    static final class Failing {
        private Failing() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] a = {1, 2};
            world.Send(a, 0, 2, MPI.INT, 0, 1);
            fails(MPI.ERR_TRUNCATE, () -> world.Recv(a, 0, 1, MPI.INT, 0, 1));
            world.Send(a, 0, 2, MPI.INT, 0, 1);
            fails(MPI.ERR_TYPE, () -> world.Recv(new float[2], 0, 2, MPI.FLOAT, 0, 1));
            fails(MPI.ERR_TYPE, () -> world.Recv(new int[2][2], 0, 2, MPI.INT, 0, 1));
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @Test
    void shouldPrintNothingWhenAReceiveFails() throws Exception {
        Job job = World.SHM.job(1).run(Failing.class);
        assertEquals(List.of("done"), job.lines());
        assertEquals("", job.err);
    }

    /** Asks for the name of the machine. */
    static final class Name {
        private Name() {}

        public static void main(String[] args) {
            MPI.Init(args);
            System.out.println(MPI.Get_processor_name());
            MPI.Finalize();
        }
    }

    @Test
    void shouldNameTheMachineWithoutDns() throws Exception {
        String name = Files.readString(Path.of("/proc/sys/kernel/hostname")).trim();
        // With this property Java asks no resolver, and knows no host.
        assertEquals(name + "\n", new Fork().with("-Djdk.net.hosts.file=/dev/null").run(Name.class).ok());
    }
}
