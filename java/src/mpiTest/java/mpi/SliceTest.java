package mpi;

import static mpi.Program.assertStatus;
import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.stream.Stream;
import mpjdev.Fork;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Messages of the eight primitive types between two ranks. */
@Timeout(180)
class SliceTest {
    private static final int TAG = 3;
    private static final int FROM = 2;
    private static final int TO = 1;
    private static final int ROOM = 8;

    /** A datatype, an array with elements from {@link #FROM} on, and an empty array. */
    private record Kind(Datatype type, Object array, Object empty) {}

    private static Stream<Kind> kinds() {
        return Stream.of(new Kind(MPI.BYTE, new byte[] {9, 9, -1, 2, 3}, new byte[ROOM]),
                new Kind(MPI.CHAR, new char[] {'y', 'z', 'a', 'b', '\uffff'}, new char[ROOM]),
                new Kind(MPI.SHORT, new short[] {9, 9, -300, 2, 3}, new short[ROOM]),
                new Kind(MPI.BOOLEAN, new boolean[] {false, false, true, false, true}, new boolean[ROOM]),
                new Kind(MPI.INT, new int[] {9, 9, Integer.MIN_VALUE, 2, 3}, new int[ROOM]),
                new Kind(MPI.LONG, new long[] {9, 9, Long.MIN_VALUE, 2, 3}, new long[ROOM]),
                new Kind(MPI.FLOAT, new float[] {9, 9, -0.0f, Float.NaN, 3}, new float[ROOM]),
                new Kind(MPI.DOUBLE, new double[] {9, 9, -0.0, Double.NaN, 3}, new double[ROOM]));
    }

    /** Sends three elements of each type from rank 0, and checks them in rank 1. */
    static final class EightTypes {
        private EightTypes() {}

        public static void main(String[] args) {
            MPI.Init(args);
            int me = MPI.COMM_WORLD.Rank();
            assertEquals(2, MPI.COMM_WORLD.Size());
            kinds().forEach(kind -> {
                int sent = 3;
                if (me == 0) {
                    MPI.COMM_WORLD.Send(kind.array, FROM, sent, kind.type, 1, TAG);
                    return;
                }
                Status status = MPI.COMM_WORLD.Recv(kind.empty, TO, ROOM - TO, kind.type, 0, TAG);
                assertStatus(0, TAG, sent, status);
                assertEquals(sent, status.Get_count(kind.type));
                assertEquals(sent * kind.type.getByteSize(), status.countInBytes);
                Object expected = java.lang.reflect.Array.newInstance(kind.empty.getClass().getComponentType(), ROOM);
                System.arraycopy(kind.array, FROM, expected, TO, sent);
                assertArrayEquals(new Object[] {expected}, new Object[] {kind.empty}, kind.type::toString);
            });
            MPI.COMM_WORLD.Barrier();
            System.out.println("rank " + me);
            MPI.Finalize();
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldMoveEveryPrimitiveType(World world) throws Exception {
        assertEquals(List.of("rank 0", "rank 1"), world.run(2, EightTypes.class));
    }

    /** Sends what the receive does not expect. */
    static final class Mistakes {
        private Mistakes() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] four = {1, 2, 3, 4};
            if (world.Rank() == 0) {
                world.Send(four, 0, 4, MPI.INT, 1, TAG);
                world.Send(four, 0, 4, MPI.INT, 1, TAG);
                world.Send(null, 7, 0, MPI.INT, 1, TAG);
                world.Send(four, 1, 1, MPI.INT, 1, TAG);
            } else {
                int[] into = {-1, -1};
                String text = fails(MPI.ERR_TRUNCATE, () -> world.Recv(into, 0, 2, MPI.INT, 0, TAG));
                assertTrue(text.contains("32") || text.contains("4"), text);
                fails(MPI.ERR_TYPE, () -> world.Recv(new float[4], 0, 4, MPI.FLOAT, 0, TAG));
                assertStatus(0, TAG, 0, world.Recv(null, 0, 0, MPI.INT, 0, TAG));
                assertArrayEquals(new int[] {-1, -1}, into);
                assertStatus(0, TAG, 1, world.Recv(into, 1, 1, MPI.INT, 0, TAG));
                assertArrayEquals(new int[] {-1, 2}, into);
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldLoseAMessageThatIsTooLongOrOfAnotherTypeAndNoOther(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Mistakes.class));
    }

    /** Calls with arguments that no call accepts, in a world of one rank. */
    static final class Arguments {
        private Arguments() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] a = new int[4];
            fails(MPI.ERR_TYPE, () -> world.Send(a, 0, 1, null, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Recv(a, 0, 1, null, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Send(a, 0, 1, MPI.DOUBLE, 0, 0));
            fails(MPI.ERR_TYPE, () -> world.Send("text", 0, 1, MPI.CHAR, 0, 0));
            String text = fails(MPI.ERR_TYPE, () -> world.Send(new double[2][2], 0, 2, MPI.DOUBLE, 0, 0));
            assertEquals("a buffer of MPI.DOUBLE is a double[], not a double[][]: send its rows one by one", text);
            fails(MPI.ERR_BUFFER, () -> world.Send(null, 0, 1, MPI.INT, 0, 0));
            fails(MPI.ERR_BUFFER, () -> world.Send(a, 2, 3, MPI.INT, 0, 0));
            fails(MPI.ERR_BUFFER, () -> world.Send(a, -1, 1, MPI.INT, 0, 0));
            fails(MPI.ERR_COUNT, () -> world.Send(a, 0, -1, MPI.INT, 0, 0));
            fails(MPI.ERR_RANK, () -> world.Send(a, 0, 1, MPI.INT, 1, 0));
            fails(MPI.ERR_RANK, () -> world.Send(a, 0, 1, MPI.INT, MPI.ANY_SOURCE, 0));
            fails(MPI.ERR_TAG, () -> world.Send(a, 0, 1, MPI.INT, 0, -1));
            fails(MPI.ERR_TAG, () -> world.Recv(a, 0, 1, MPI.INT, 0, -1));
            fails(MPI.ERR_RANK, () -> world.Recv(a, 0, 1, MPI.INT, 9, 0));
            MPI.Finalize();
            fails(MPI.ERR_OTHER, () -> world.Send(a, 0, 1, MPI.INT, 0, 0));
            fails(MPI.ERR_OTHER, world::Rank);
            System.out.println("done");
        }
    }

    @Test
    void shouldRejectInvalidArguments() throws Exception {
        assertEquals("done\n", new Fork().run(Arguments.class).ok());
    }
}
