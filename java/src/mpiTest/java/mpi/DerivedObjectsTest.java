package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Messages of datatypes that are derived of objects. */
@Timeout(180)
class DerivedObjectsTest {
    private static final int TAG = 3;

    /** Types whose items have six objects, and the elements of two items from 10 on. */
    private record Shape(Datatype type, int[] elements) {}

    private static List<Shape> shapes() {
        Datatype pair = Datatype.Contiguous(2, MPI.OBJECT);
        return List.of(new Shape(Datatype.Contiguous(3, pair), new int[] {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21}),
                new Shape(Datatype.Vector(2, 3, 4, MPI.OBJECT), new int[] {10, 11, 12, 14, 15, 16, 17, 18, 19, 21, 22, 23}),
                new Shape(Datatype.Hvector(3, 1, -3, pair), new int[] {10, 11, 7, 8, 4, 5, 18, 19, 15, 16, 12, 13}),
                new Shape(Datatype.Indexed(new int[] {3, 1, 2}, new int[] {5, 0, 2}, MPI.OBJECT),
                        new int[] {15, 16, 17, 10, 12, 13, 23, 24, 25, 18, 20, 21}),
                new Shape(Datatype.Hindexed(new int[] {1, 4}, new int[] {-2, 3}, pair),
                        new int[] {8, 9, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 26, 27, 28, 29, 30, 31, 32, 33}),
                new Shape(Datatype.Struct(new int[] {1, 4, 1}, new int[] {-2, 3, 9},
                        new Datatype[] {pair, MPI.OBJECT, MPI.UB}), new int[] {8, 9, 13, 14, 15, 16, 19, 20, 24, 25, 26, 27}));
    }

    private static String[] texts(int length) {
        String[] texts = new String[length];
        for (int k = 0; k < length; k++) {
            texts[k] = "text " + k;
        }
        return texts;
    }

    /** Sends two items of each shape, receives them as objects, and the other way. */
    static final class AllShapes {
        private AllShapes() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            for (Shape shape : shapes()) {
                int all = shape.elements.length;
                assertEquals(all / 2, shape.type.Size());
                String[] texts = texts(40);
                if (world.Rank() == 0) {
                    world.Send(texts, 10, 2, shape.type, 1, TAG);
                    for (int n : new int[] {0, 1, all / 2, all, all + 1}) {
                        world.Send(texts, 0, n, MPI.OBJECT, 1, TAG);
                    }
                    continue;
                }
                Object[] objects = new Object[all];
                assertEquals(all, world.Recv(objects, 0, all, MPI.OBJECT, 0, TAG).count);
                for (int k = 0; k < all; k++) {
                    assertEquals("text " + shape.elements[k], objects[k]);
                }
                for (int n : new int[] {0, 1, all / 2, all}) {
                    Object[] into = new Object[40];
                    Status status = world.Recv(into, 10, 2, shape.type, n == 1 ? MPI.ANY_SOURCE : 0, TAG);
                    assertEquals(n, status.numEls);
                    assertEquals(n == 1 ? MPI.UNDEFINED : n * 2 / all, status.count);
                    assertEquals(n, status.Get_count(MPI.OBJECT));
                    Object[] expected = new Object[40];
                    for (int k = 0; k < n; k++) {
                        expected[shape.elements[k]] = texts[k];
                    }
                    assertArrayEquals(expected, into);
                }
                Object[] kept = new Object[40];
                fails(MPI.ERR_TRUNCATE, () -> world.Recv(kept, 10, 2, shape.type, 0, TAG));
                assertArrayEquals(new Object[40], kept);
            }
            world.Barrier();
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldPlaceObjectsOfEachShapeWhereTheTypeSays(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, AllShapes.class));
    }

    /** Two ranks exchange columns of matrices of objects in each way. */
    static final class Columns {
        private static final int N = 4;

        private Columns() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int other = 1 - world.Rank();
            Datatype column = Datatype.Vector(N, 1, N, MPI.OBJECT);
            String[] mine = texts(N * N);
            Object[] line = {"text 2", "text 6", "text 10", "text 14"};
            Object[] got = new Object[N * N];
            Request[] both = {world.Irecv(got, 1, 1, column, other, 1), world.Issend(mine, 2, 1, column, other, 1)};
            assertEquals(1, Request.Waitall(both)[0].count);
            assertArrayEquals(line, column(got, 1));
            Status status = world.Sendrecv(mine, 2, 1, column, other, 2, got, 0, N, MPI.OBJECT, other, 2);
            assertEquals(N, status.count);
            for (int k = 0; k < N; k++) {
                assertEquals(line[k], got[k]);
            }
            Prequest send = world.Send_init(mine, 2, 1, column, other, 3);
            Prequest receive = world.Recv_init(got, 3, 1, column, MPI.ANY_SOURCE, 3);
            Prequest.Startall(new Prequest[] {receive, send});
            assertEquals(1, receive.Wait().count);
            send.Wait();
            assertArrayEquals(line, column(got, 3));
            // Objects that are shared stay shared, and those of other columns stay.
            Object[] shared = new Object[N * N];
            int[] row = {world.Rank()};
            shared[0] = row;
            shared[N] = row;
            shared[1] = "kept";
            world.Sendrecv_replace(shared, 0, 1, column, other, 4, other, 4);
            assertArrayEquals(new int[] {other}, (int[]) shared[0]);
            assertSame(shared[0], shared[N]);
            assertEquals("kept", shared[1]);
            byte[] unit = new byte[200];
            int end = world.Pack(mine, 2, 1, column, unit, 0);
            assertEquals(end, world.Unpack(unit, 0, got, 0, 1, column));
            assertArrayEquals(line, column(got, 0));
            mistakes(world, column, got);
            world.Barrier();
            MPI.Finalize();
            System.out.println("done");
        }

        private static Object[] column(Object[] matrix, int at) {
            return new Object[] {matrix[at], matrix[at + N], matrix[at + 2 * N], matrix[at + 3 * N]};
        }

        private static void mistakes(Intracomm world, Datatype column, Object[] array) {
            int other = 1 - world.Rank();
            fails(MPI.ERR_BUFFER, () -> world.Send(array, N, 1, column, other, 5));
            fails(MPI.ERR_BUFFER, () -> world.Recv(array, N, 1, column, other, 5));
            fails(MPI.ERR_BUFFER, () -> world.Irecv(array, N, 1, column, other, 5));
            fails(MPI.ERR_BUFFER, () -> world.Send(null, 0, 1, column, other, 5));
            fails(MPI.ERR_COUNT, () -> world.Send(array, 0, -1, column, other, 5));
            fails(MPI.ERR_TYPE, () -> world.Send(new int[N * N], 0, 1, column, other, 5));
            // Two objects in one slot: the last one stays.
            Datatype same = Datatype.Hindexed(new int[] {1, 1}, new int[] {0, 0}, MPI.OBJECT);
            Object[] one = new Object[1];
            world.Sendrecv(new Object[] {"first", "last"}, 0, 2, MPI.OBJECT, other, 6, one, 0, 1, same, other, 6);
            assertEquals("last", one[0]);
            world.Sendrecv(array, 0, 0, column, other, 7, null, 0, 0, column, other, 7);
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldMoveColumnsOfObjectsInEachWay(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Columns.class));
    }
}
