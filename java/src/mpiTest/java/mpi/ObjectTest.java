package mpi;

import static mpi.Program.assertStatus;
import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.Serializable;
import java.util.List;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Messages of objects. */
@Timeout(180)
class ObjectTest {
    private static final int DEEP = 1000;

    /** A list of references. */
    private static final class Node implements Serializable {
        private static final long serialVersionUID = 1L;

        private final Node next;

        Node(Node next) {
            this.next = next;
        }

        static Node list(int length) {
            Node list = null;
            for (int i = 0; i < length; i++) {
                list = new Node(list);
            }
            return list;
        }

        static int length(Object list) {
            int length = 0;
            for (Node node = (Node) list; node != null; node = node.next) {
                length++;
            }
            return length;
        }
    }

    /** Two ranks exchange objects in each way. */
    static final class Exchange {
        private Exchange() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            if (world.Rank() == 0) {
                send(world);
            } else {
                receive(world);
            }
            Object[] mine = {"of " + world.Rank()};
            Object[] theirs = new Object[1];
            int other = 1 - world.Rank();
            world.Sendrecv(mine, 0, 1, MPI.OBJECT, other, 9, theirs, 0, 1, MPI.OBJECT, other, 9);
            assertEquals("of " + other, theirs[0]);
            MPI.Finalize();
            System.out.println("done");
        }

        private static void send(Intracomm world) {
            int[] row = {1, 2, 3};
            world.Send(new Object[] {"left", "text", null, row, row, Long.MAX_VALUE}, 1, 5, MPI.OBJECT, 1, 1);
            world.Send(new double[][] {{1, 2}, {3}}, 0, 2, MPI.OBJECT, 1, 2);
            world.Ssend(null, 0, 0, MPI.OBJECT, 1, 3);
            // Nothing is sent.
            fails(MPI.ERR_OTHER, () -> world.Send(new Object[] {"text", new Object()}, 0, 2, MPI.OBJECT, 1, 4));
            fails(MPI.ERR_TYPE, () -> world.Send(new int[1], 0, 1, MPI.OBJECT, 1, 4));
            fails(MPI.ERR_BUFFER, () -> world.Send(new Object[1], 0, 2, MPI.OBJECT, 1, 4));
            world.Isend(new Object[] {Node.list(DEEP), Node.list(1)}, 0, 2, MPI.OBJECT, 1, 4).Wait();
            world.Send(new Object[] {Node.list(DEEP + 1)}, 0, 1, MPI.OBJECT, 1, 5);
            world.Send(new Object[] {"one", "two"}, 0, 2, MPI.OBJECT, 1, 6);
            world.Send(new int[100], 0, 100, MPI.INT, 1, 7);
            world.Send(new Object[] {"text"}, 0, 1, MPI.OBJECT, 1, 7);
            byte[] octets = new byte[3_000_000];
            octets[octets.length - 1] = 7;
            world.Send(new Object[] {octets}, 0, 1, MPI.OBJECT, 1, 8);
        }

        private static void receive(Intracomm world) {
            Object[] got = new Object[8];
            got[7] = "kept";
            assertStatus(0, 1, 5, world.Recv(got, 1, 7, MPI.OBJECT, 0, 1));
            assertEquals("text", got[1]);
            assertNull(got[2]);
            assertArrayEquals(new int[] {1, 2, 3}, (int[]) got[3]);
            assertSame(got[3], got[4]);
            assertEquals(Long.MAX_VALUE, got[5]);
            assertEquals("kept", got[7]);
            double[][] rows = new double[2][];
            double[] before = rows[0];
            Status status = world.Recv(rows, 0, 2, MPI.OBJECT, MPI.ANY_SOURCE, MPI.ANY_TAG);
            assertStatus(0, 2, 2, status);
            assertEquals(2, status.Get_count(MPI.OBJECT));
            assertNotSame(before, rows[0]);
            assertArrayEquals(new double[][] {{1, 2}, {3}}, rows);
            assertStatus(0, 3, 0, world.Recv(null, 0, 0, MPI.OBJECT, 0, 3));
            Request request = world.Irecv(got, 0, 8, MPI.OBJECT, 0, 4);
            assertStatus(0, 4, 2, request.Wait());
            assertEquals(DEEP, Node.length(got[0]));
            String text = fails(MPI.ERR_OTHER, () -> world.Recv(got, 0, 1, MPI.OBJECT, 0, 5));
            assertTrue(text.contains("mpjdev.filter.depth"), text);
            fails(MPI.ERR_TRUNCATE, () -> world.Recv(got, 0, 1, MPI.OBJECT, 0, 6));
            fails(MPI.ERR_TYPE, () -> world.Recv(got, 0, 8, MPI.OBJECT, 0, 7));
            fails(MPI.ERR_TYPE, () -> world.Recv(new int[1], 0, 1, MPI.INT, 0, 7));
            assertEquals(DEEP, Node.length(got[0]));
            Request last = world.Irecv(got, 3, 1, MPI.OBJECT, MPI.ANY_SOURCE, 8);
            Request[] both = {null, last};
            assertStatus(0, 8, 1, Request.Waitall(both)[1]);
            byte[] many = (byte[]) got[3];
            assertEquals(7, many[many.length - 1]);
            Request cancelled = world.Irecv(got, 0, 1, MPI.OBJECT, 0, 100);
            cancelled.Cancel();
            assertTrue(cancelled.Wait().Test_cancelled());
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldMoveObjectsInEachWay(World world) throws Exception {
        // The filter allows a thousand references, for which a default stack may be too small.
        Job job = world.job(2).jvm("-Xss8m").run(Exchange.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("done", "done"), job.lines(), job::toString);
    }
}
