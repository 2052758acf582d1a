package mpi;

import static mpi.Program.assertStatus;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Defect X25 of MPJ Express: Wait for a persistent request before its Start prints a line and returns null,
 * and Testany returns null if no request is active.
 */
@Timeout(180)
class X25Test {
    /** Waits for and tests persistent requests before their start and after their end. */
    static final class Unstarted {
        private Unstarted() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] a = {1};
            Prequest send = world.Send_init(a, 0, 1, MPI.INT, 0, 1);
            Prequest receive = world.Recv_init(a, 0, 1, MPI.INT, 0, 1);
            areInactive(send, receive);
            receive.Start();
            assertNull(Request.Testany(new Request[] {send, receive}));
            send.Start();
            send.Wait();
            assertStatus(0, 1, 1, receive.Wait());
            areInactive(send, receive);
            MPI.Finalize();
            System.out.println("done");
        }

        private static void areInactive(Prequest... requests) {
            for (Prequest request : requests) {
                assertTrue(request.Is_null());
                isEmpty(request.Wait());
                isEmpty(request.Test());
                isEmpty(request.Get_status());
            }
            isEmpty(Request.Testany(requests));
        }

        private static void isEmpty(Status status) {
            assertStatus(MPI.ANY_SOURCE, MPI.ANY_TAG, 0, status);
            assertEquals(MPI.UNDEFINED, status.index);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SHM", "THREADS"})
    void shouldHaveAnEmptyStatusBeforeTheStart(World world) throws Exception {
        Job job = world.job(1).run(Unstarted.class);
        assertEquals(List.of("done"), job.lines(), job::toString);
        assertEquals("", job.err);
    }
}
