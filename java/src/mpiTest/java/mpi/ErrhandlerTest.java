package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Error handlers of communicators. */
@Timeout(180)
class ErrhandlerTest {
    /** Sets handlers, and fails where the handler lets it. */
    static final class Handlers {
        private Handlers() {}

        public static void main(String[] args) {
            fails(MPI.ERR_OTHER, MPI::Errorhandler_get);
            fails(MPI.ERR_OTHER, () -> MPI.Errorhandler_set(MPI.ERRORS_RETURN));
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            assertSame(MPI.ERRORS_RETURN, world.Errhandler_get());
            assertSame(MPI.ERRORS_RETURN, MPI.COMM_SELF.Errorhandler_get());
            fails(MPI.ERR_ARG, () -> world.Errhandler_set(null));
            MPI.Errorhandler_set(MPI.ERRORS_ARE_FATAL);
            assertSame(MPI.ERRORS_ARE_FATAL, world.Errorhandler_get());
            Comm[] made = {(Comm) world.clone(), world.Split(0, 0), world.Create(world.Group()),
                world.Create_cart(new int[] {1, 2}, new boolean[2], false),
                world.Create_graph(new int[] {1, 2}, new int[] {1, 0}, false)};
            Cartcomm row = ((Cartcomm) made[3]).Sub(new boolean[] {false, true});
            assertSame(MPI.ERRORS_ARE_FATAL, row.Errhandler_get());
            world.Errorhandler_set(MPI.ERRORS_RETURN);
            assertSame(MPI.ERRORS_RETURN, MPI.Errorhandler_get());
            for (Comm comm : made) {
                assertSame(MPI.ERRORS_ARE_FATAL, comm.Errhandler_get(), "inherited, and not shared");
            }
            fails(MPI.ERR_TAG, () -> world.Send(new int[1], 0, 1, MPI.INT, 0, -1));
            fails(MPI.ERR_COMM, MPI.COMM_SELF::Free);
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldBelongToACommunicatorAndBeInherited(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Handlers.class));
    }

    /** Rank 1 makes a call fail on a communicator whose errors are fatal, while rank 0 waits. */
    static final class Fatal {
        private Fatal() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm comm = (Intracomm) MPI.COMM_WORLD.clone();
            comm.Errhandler_set(MPI.ERRORS_ARE_FATAL);
            int[] buffer = new int[2];
            if (comm.Rank() == 1) {
                fail(comm, args[0], buffer);
                System.out.println("not reached");
            }
            try {
                MPI.COMM_WORLD.Recv(buffer, 0, 1, MPI.INT, 1, 0);
            } finally {
                System.out.println("not reached, or after the end of rank 1");
            }
        }

        private static void fail(Intracomm comm, String call, int[] buffer) {
            switch (call) {
                case "Send":
                    comm.Send(buffer, 0, 1, MPI.INT, 0, -1);
                    break;
                case "Wait":
                    Request request = comm.Irecv(buffer, 0, 1, MPI.INT, 1, 0);
                    comm.Send(buffer, 0, 2, MPI.INT, 1, 0);
                    request.Wait();
                    break;
                case "Split":
                    comm.Split(-2, 0);
                    break;
                default:
                    comm.Free();
                    comm.Rank();
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldEndTheJobWithTheClassOfTheError(World world) throws Exception {
        assertFatal(world, "Send", MPI.ERR_TAG, "the tag -1 is negative");
    }

    @ParameterizedTest
    @CsvSource({"Wait, 15, message truncated", "Split, 13, the color -2 is negative",
        "Rank, 5, the communicator is closed"})
    void shouldNameTheFailedCall(String call, int errorClass, String text) throws Exception {
        assertFatal(World.SHM, call, errorClass, text);
    }

    private static void assertFatal(World world, String call, int errorClass, String text) throws Exception {
        Job job = world.job(2).run(Fatal.class, call);
        assertEquals(errorClass, job.status, job::toString);
        String begin = "mpjdev: rank 1 ends the job: " + call + " has failed: " + text;
        assertTrue(job.err.contains(begin) && job.err.contains("(MPI.ERRORS_ARE_FATAL)"), job::toString);
    }
}
