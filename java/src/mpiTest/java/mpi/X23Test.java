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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Defect X23 of MPJ Express: a probe counts elements whatever datatype is asked for, a receive that fails
 * prints stack traces, and Get_processor_name throws without DNS.
 */
@Timeout(180)
class X23Test {
    /** Rank 0 sends n ints, which rank 1 probes. */
    static final class Probes {
        private static final int MOST = 6;

        private Probes() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Datatype triple = Datatype.Vector(3, 1, 2, MPI.INT);
            for (int n = 0; n <= MOST; n++) {
                if (world.Rank() == 0) {
                    world.Send(new int[n], 0, n, MPI.INT, 1, n);
                } else {
                    check(n, world.Probe(0, n), triple);
                    check(n, world.Iprobe(MPI.ANY_SOURCE, n), triple);
                    world.Recv(new int[n], 0, n, MPI.INT, 0, n);
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private static void check(int n, Status status, Datatype triple) {
            assertEquals(n, status.count);
            assertEquals(n, status.Get_count(MPI.INT));
            assertEquals(n % 2 == 0 ? n / 2 : MPI.UNDEFINED, status.Get_count(MPI.INT2));
            assertEquals(n % 3 == 0 ? n / 3 : MPI.UNDEFINED, status.Get_count(triple));
            assertEquals(n == 0 ? 0 : MPI.UNDEFINED, status.Get_count(MPI.DOUBLE));
            assertEquals(n, status.Get_elements(triple));
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldCountItemsOfTheDatatypeThatIsAsked(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Probes.class));
    }

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
