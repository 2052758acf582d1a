package mpi;

import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Messages of derived datatypes between two ranks. */
@Timeout(180)
class DerivedMessagesTest {
    private static final int TAG = 4;
    /** Elements of a message that is longer than any limit of a short one. */
    private static final int LONG = 100_000;

    /** Types whose items have six elements, and the elements of two items from 10 on. */
    private record Shape(Datatype type, int[] elements) {}

    private static List<Shape> shapes(Datatype old) {
        Datatype pair = Datatype.Contiguous(2, old);
        return List.of(new Shape(Datatype.Contiguous(3, pair), new int[] {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21}),
                new Shape(Datatype.Vector(3, 2, 4, old), new int[] {10, 11, 14, 15, 18, 19, 20, 21, 24, 25, 28, 29}),
                new Shape(Datatype.Hvector(3, 1, -3, pair), new int[] {10, 11, 7, 8, 4, 5, 18, 19, 15, 16, 12, 13}),
                new Shape(Datatype.Indexed(new int[] {3, 1, 2}, new int[] {5, 0, 2}, old),
                        new int[] {15, 16, 17, 10, 12, 13, 23, 24, 25, 18, 20, 21}),
                new Shape(Datatype.Struct(new int[] {1, 4, 1}, new int[] {-2, 3, 9}, new Datatype[] {pair, old, MPI.UB}),
                        new int[] {8, 9, 13, 14, 15, 16, 19, 20, 24, 25, 26, 27}));
    }

    /** Sends two items of each shape, receives them as elements, and the other way. */
    static final class AllShapes {
        private AllShapes() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int me = world.Rank();
            for (Shape shape : shapes(MPI.INT)) {
                int[] array = new int[40];
                if (me == 0) {
                    for (int k = 0; k < array.length; k++) {
                        array[k] = k;
                    }
                    world.Send(array, 10, 2, shape.type, 1, TAG);
                    for (int n : new int[] {0, 1, 7, 12, 13}) {
                        world.Send(new int[] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, 0, n, MPI.INT, 1, TAG);
                    }
                    continue;
                }
                int[] elements = new int[12];
                assertEquals(12, world.Recv(elements, 0, 12, MPI.INT, 0, TAG).count);
                assertArrayEquals(shape.elements, elements);
                for (int n : new int[] {0, 1, 7, 12}) {
                    int[] into = new int[40];
                    Status status = world.Recv(into, 10, 2, shape.type, n == 7 ? MPI.ANY_SOURCE : 0, TAG);
                    assertEquals(n, status.numEls);
                    assertEquals(n % 6 == 0 ? n / 6 : MPI.UNDEFINED, status.count);
                    int[] expected = new int[40];
                    for (int k = 0; k < n; k++) {
                        expected[shape.elements[k]] = k + 1;
                    }
                    assertArrayEquals(expected, into);
                }
                fails(MPI.ERR_TRUNCATE, () -> world.Recv(array, 10, 2, shape.type, 0, TAG));
                assertArrayEquals(new int[40], array);
            }
            world.Barrier();
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldPlaceElementsOfEachShapeWhereTheTypeSays(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, AllShapes.class));
    }

    /** Moves long messages: each shape to each other shape. */
    static final class LongMessages {
        private LongMessages() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int me = world.Rank();
            List<Shape> shapes = shapes(MPI.DOUBLE);
            for (int k = 0; k < shapes.size(); k++) {
                Datatype mine = shapes.get((k + me) % shapes.size()).type;
                int length = LONG * mine.Extent() + 40;
                double[] array = new double[length];
                if (me == 0) {
                    for (int i = 0; i < length; i++) {
                        array[i] = i;
                    }
                    world.Send(array, 20, LONG, mine, 1, TAG);
                    double[] back = new double[6 * LONG];
                    world.Recv(back, 0, 6 * LONG, MPI.DOUBLE, 1, TAG);
                    for (int i = 0; i < back.length; i++) {
                        int at = 20 + i / 6 * mine.Extent() + shapes.get(k).elements[i % 6] - 10;
                        assertEquals(at, back[i]);
                    }
                } else {
                    assertEquals(LONG, world.Recv(array, 20, LONG, mine, 0, TAG).count);
                    world.Send(array, 20, LONG, mine, 0, TAG);
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SHM", "TCP", "THREADS"})
    void shouldMoveLongMessagesBetweenAllShapes(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, LongMessages.class));
    }

    /** Moves long messages of runs that are copied one by one, to elements and to other runs. */
    static final class LongRuns {
        private static final int ITEMS = 2000;
        private static final int[] LENGTHS = {40, 2500, 17};
        private static final int[] PLACES = {2600, 0, 2545};

        private LongRuns() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Datatype runs = Datatype.Indexed(LENGTHS, PLACES, MPI.BOOLEAN);
            Datatype others = Datatype.Indexed(new int[] {17, 2540}, new int[] {2600, 3}, MPI.BOOLEAN);
            int size = runs.Size();
            boolean[] array = new boolean[2700 * ITEMS];
            if (world.Rank() == 0) {
                for (int k = 0; k < array.length; k++) {
                    array[k] = isSet(k);
                }
                world.Send(array, 0, ITEMS, runs, 1, TAG);
                world.Send(array, 0, ITEMS, runs, 1, TAG);
                world.Send(array, 0, size + 1, MPI.BOOLEAN, 1, TAG);
            } else {
                boolean[] elements = new boolean[size * ITEMS];
                assertEquals(ITEMS, world.Recv(elements, 0, ITEMS * size, MPI.BOOLEAN, 0, TAG).numEls / size);
                int at = 0;
                for (int item = 0; item < ITEMS; item++) {
                    for (int run = 0; run < LENGTHS.length; run++) {
                        for (int k = 0; k < LENGTHS[run]; k++) {
                            assertEquals(isSet(item * runs.Extent() + PLACES[run] + k), elements[at++]);
                        }
                    }
                }
                assertEquals(ITEMS, world.Recv(array, 0, ITEMS, others, 0, TAG).count);
                byte[] unit = new byte[world.Pack_size(ITEMS, others)];
                world.Pack(array, 0, ITEMS, others, unit, 0);
                boolean[] again = new boolean[elements.length];
                world.Unpack(unit, 0, again, 0, again.length, MPI.BOOLEAN);
                assertArrayEquals(elements, again);
                Status partial = world.Recv(array, 0, ITEMS, runs, 0, TAG);
                assertEquals(size + 1, partial.numEls);
                assertEquals(isSet(0), array[PLACES[0]]);
                assertEquals(isSet(size), array[runs.Extent() + PLACES[0]]);
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private static boolean isSet(int index) {
            return index % 7 % 2 == 0;
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SHM", "TCP", "THREADS"})
    void shouldMoveLongMessagesOfLongRuns(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, LongRuns.class));
    }

    /** Receives what overlaps, and sends it. */
    static final class Overlaps {
        private Overlaps() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Datatype three = Datatype.Contiguous(3, MPI.INT);
            Datatype overlapping = Datatype.Hvector(3, 1, 2, three);
            Datatype listed = Datatype.Hindexed(new int[] {1, 1, 1}, new int[] {4, 0, 3}, three);
            int[] numbers = {1, 2, 3, 4, 5, 6, 7, 8, 9};
            world.Send(numbers, 0, 1, overlapping, 0, TAG);
            int[] sent = new int[9];
            world.Recv(sent, 0, 9, MPI.INT, 0, TAG);
            assertArrayEquals(new int[] {1, 2, 3, 3, 4, 5, 5, 6, 7}, sent);
            world.Send(numbers, 0, 9, MPI.INT, 0, TAG);
            int[] last = new int[8];
            world.Recv(last, 0, 1, overlapping, 0, TAG);
            assertArrayEquals(new int[] {1, 2, 4, 5, 7, 8, 9, 0}, last);
            world.Send(numbers, 0, 9, MPI.INT, 0, TAG);
            int[] ordered = new int[8];
            world.Recv(ordered, 0, 1, listed, 0, TAG);
            assertArrayEquals(new int[] {4, 5, 6, 7, 8, 9, 3, 0}, ordered);
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SHM", "THREADS"})
    void shouldKeepTheLastOfOverlappingElements(World world) throws Exception {
        assertEquals(List.of("done"), world.run(1, Overlaps.class));
    }

    /** Sends with arguments that no derived datatype accepts, and with a type without elements. */
    static final class Mistakes {
        private Mistakes() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Datatype column = Datatype.Vector(3, 1, 4, MPI.INT);
            int[] array = new int[9];
            fails(MPI.ERR_BUFFER, () -> world.Send(array, 1, 1, column, 0, TAG));
            fails(MPI.ERR_BUFFER, () -> world.Send(null, 0, 1, column, 0, TAG));
            fails(MPI.ERR_TYPE, () -> world.Send(new long[9], 0, 1, column, 0, TAG));
            fails(MPI.ERR_COUNT, () -> world.Send(array, 0, -1, column, 0, TAG));
            fails(MPI.ERR_COUNT, () -> world.Send(array, 0, Integer.MAX_VALUE, column, 0, TAG));
            fails(MPI.ERR_COUNT, () -> world.Send(array, 0, Integer.MAX_VALUE, MPI.INT2, 0, TAG));
            Datatype empty = Datatype.Contiguous(0, MPI.INT);
            world.Send(null, 5, 100, empty, 0, TAG);
            assertEquals(0, world.Recv(array, 0, 9, MPI.INT, 0, TAG).numEls);
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource(names = "SHM")
    void shouldRejectInvalidArgumentsBeforeAnythingIsSent(World world) throws Exception {
        assertEquals(List.of("done"), world.run(1, Mistakes.class));
    }
}
