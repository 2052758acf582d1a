package mpi;

import static mpi.Program.assertStatus;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Calls with arrays of null and inactive requests (defect X6 of MPJ Express: Waitany without an active
 * request never returns, and null elements throw).
 */
@Timeout(180)
class InactiveRequestsTest {
    /** No request is active. */
    static final class None {
        private None() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] a = {1};
            Prequest unstarted = world.Recv_init(a, 0, 1, MPI.INT, 0, 1);
            Request over = world.Isend(a, 0, 1, MPI.INT, 0, 2);
            over.Wait();
            world.Recv(a, 0, 1, MPI.INT, 0, 2);
            for (Request inactive : new Request[] {over, MPI.REQUEST_NULL}) {
                assertTrue(inactive.Is_null());
                isEmpty(inactive.Wait());
                isEmpty(inactive.Test());
                isEmpty(inactive.Get_status());
            }
            for (Request[] none : new Request[][] {{}, {null, null}, {null, over, unstarted, MPI.REQUEST_NULL}}) {
                isEmpty(Request.Waitany(none));
                isEmpty(Request.Testany(none));
                assertEquals(0, Request.Waitsome(none).length);
                assertEquals(0, Request.Testsome(none).length);
                for (Status[] all : new Status[][] {Request.Waitall(none), Request.Testall(none)}) {
                    assertEquals(none.length, all.length);
                    for (int i = 0; i < all.length; i++) {
                        assertEquals(none[i] == null, all[i] == null);
                        assertTrue(all[i] == null || all[i].index == i && all[i].numEls == 0);
                    }
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }

        /** Also for MPI.REQUEST_NULL each status is a new one: its fields may be changed. */
        private static void isEmpty(Status status) {
            assertStatus(MPI.ANY_SOURCE, MPI.ANY_TAG, 0, status);
            assertEquals(MPI.UNDEFINED, status.index);
            status.tag = 99;
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldReturnAnEmptyStatusAtOnce(World world) throws Exception {
        assertEquals(List.of("done"), world.run(1, None.class));
    }

    /** One request among null and inactive ones is active. */
    static final class Among {
        private Among() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int other = 1 - world.Rank();
            int[] a = {0};
            for (int way = 0; way < 3; way++) {
                Request[] requests = {null, MPI.REQUEST_NULL, world.Irecv(a, 0, 1, MPI.INT, other, way), null,
                    world.Send_init(a, 0, 1, MPI.INT, other, way)};
                assertNull(Request.Testany(requests));
                world.Barrier();
                world.Send(new int[] {way + 1}, 0, 1, MPI.INT, other, way);
                Status status = way == 0 ? Request.Waitany(requests)
                        : way == 1 ? Request.Waitsome(requests)[0] : Request.Waitall(requests)[2];
                assertStatus(other, way, 1, status);
                assertEquals(2, status.index);
                assertEquals(way + 1, a[0]);
                assertTrue(requests[2].Is_null());
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldBeSkippedBesideAnActiveOne(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Among.class));
    }
}
