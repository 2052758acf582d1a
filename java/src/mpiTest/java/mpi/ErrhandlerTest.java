package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
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
                case "Start":
                case "Startall":
                    Prequest started = comm.Recv_init(buffer, 0, 1, MPI.INT, 1, 0);
                    started.Start();
                    if (call.equals("Start")) {
                        started.Start();
                    }
                    Prequest.Startall(new Prequest[] {null, started});
                    break;
                case "Bsend":
                    MPI.Buffer_attach(new byte[4]);
                    comm.Bsend(buffer, 0, 2, MPI.INT, 1, 0);
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
        "Start, 7, the persistent request is active", "Startall, 7, the persistent request is active",
        "Bsend, 1, a buffered send of 8 octets does not fit", "Rank, 5, the communicator is closed"})
    void shouldNameTheFailedCall(String call, int errorClass, String text) throws Exception {
        assertFatal(World.SHM, call, errorClass, text);
    }

    private static void assertFatal(World world, String call, int errorClass, String text) throws Exception {
        assertFatal(world.job(2).run(Fatal.class, call), 1, call, errorClass, text);
    }

    private static void assertFatal(Job job, int rank, String call, int errorClass, String text) {
        assertEquals(errorClass, job.status, job::toString);
        String begin = "mpjdev: rank " + rank + " ends the job: " + call + " has failed: " + text;
        assertTrue(job.err.contains(begin) && job.err.contains("(MPI.ERRORS_ARE_FATAL)"), job::toString);
        assertFalse(job.out.contains("not reached\n"), job::toString);
    }

    /** Calls that have no communicator fail while errors of the world are fatal, and those of a clone not. */
    static final class Worldwide {
        private Worldwide() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm comm = (Intracomm) MPI.COMM_WORLD.clone();
            MPI.Errorhandler_set(MPI.ERRORS_ARE_FATAL);
            fails(MPI.ERR_TAG, () -> comm.Send(new int[1], 0, 1, MPI.INT, 0, -1));
            if (args[0].startsWith("Wait") || args[0].startsWith("Test") || args[0].equals("Startall")) {
                failWithoutRequests(args[0]);
            } else {
                fail(args[0], comm.Group());
            }
            System.out.println("not reached");
        }

        private static void failWithoutRequests(String call) {
            switch (call) {
                case "Waitany":
                    Request.Waitany(null);
                    break;
                case "Waitall":
                    Request.Waitall(null);
                    break;
                case "Waitsome":
                    Request.Waitsome(null);
                    break;
                case "Testany":
                    Request.Testany(null);
                    break;
                case "Testall":
                    Request.Testall(null);
                    break;
                case "Testsome":
                    Request.Testsome(null);
                    break;
                default:
                    Prequest.Startall(null);
            }
        }

        private static void fail(String call, Group group) {
            switch (call) {
                case "Incl":
                    group.Incl(new int[] {3});
                    break;
                case "Range_incl":
                    group.Range_incl(new int[][] {{0, 0}});
                    break;
                case "Union":
                    Group.Union(group, null);
                    break;
                case "Contiguous":
                    Datatype.Contiguous(-1, MPI.INT);
                    break;
                case "Hindexed":
                    Datatype.Hindexed(null, new int[0], MPI.INT);
                    break;
                case "Get_count":
                    new Status().Get_count(null);
                    break;
                case "Dims_create":
                    Cartcomm.Dims_create(-1, new int[2]);
                    break;
                case "Compare":
                    Comm.Compare(null, MPI.COMM_WORLD);
                    break;
                case "Buffer_attach":
                    MPI.Buffer_attach((byte[]) null);
                    break;
                case "Init":
                    MPI.Init(null);
                    break;
                default:
                    MPI.COMM_SELF.Irecv(new int[1], 0, 1, MPI.INT, 0, 0);
                    MPI.Finalize();
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"Waitany, 13, the array of requests is null", "Waitall, 13, the array of requests is null",
        "Waitsome, 13, the array of requests is null", "Testany, 13, the array of requests is null",
        "Testall, 13, the array of requests is null", "Testsome, 13, the array of requests is null",
        "Startall, 13, the array of requests is null", "Incl, 6, rank 3", "Range_incl, 13, range 0",
        "Union, 9, the group is null", "Contiguous, 13, ''", "Hindexed, 13, the array of block lengths is null",
        "Get_count, 3, the datatype is null", "Dims_create, 12, ''", "Compare, 5, the communicator is null",
        "Buffer_attach, 1, the buffer is null", "Init, 16, MPI.Init was called before"})
    void shouldBeThatOfTheWorldWithoutACommunicator(String call, int errorClass, String text) throws Exception {
        assertFatal(World.SHM.job(1).run(Worldwide.class, call), 0, call, errorClass, text);
    }

    @ParameterizedTest
    @EnumSource
    void shouldBeThatOfTheWorldAtItsEnd(World world) throws Exception {
        Job job = world.job(1).run(Worldwide.class, "Finalize");
        assertFatal(job, 0, "Finalize", MPI.ERR_REQUEST, "requests are not complete at MPI.Finalize: 0 sends, 1 receives");
    }
}
