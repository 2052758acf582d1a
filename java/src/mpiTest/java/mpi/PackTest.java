package mpi;

import static mpi.Program.assertStatus;
import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Array;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import mpjdev.core.Native;
import mpjdev.core.Types;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Packing units, and messages of them. */
@Timeout(180)
class PackTest {
    private static final int LONG = 100_000;

    /** An array of five elements of each basic datatype. */
    private static final Object[] ARRAYS = {new byte[] {1, -2, 3, 4, 5}, new char[] {1, 2, '\uffff', 4, 5},
        new short[] {1, -2, 3, 4, 5}, new boolean[] {true, false, true, true, false}, new int[] {1, -2, 3, 4, 5},
        new long[] {1, Long.MIN_VALUE, 3, 4, 5}, new float[] {1, -2.5f, 3, 4, 5}, new double[] {1, 2, Double.NaN, 4, 5}};

    private static Object emptied(Object array) {
        return Array.newInstance(array.getClass().getComponentType(), Array.getLength(array));
    }

    private static void assertSameElements(Object expected, Object array) {
        assertArrayEquals(new Object[] {expected}, new Object[] {array});
    }

    /** Packs and unpacks items of each type. */
    static final class AllTypes {
        private AllTypes() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            byte[] unit = new byte[1000];
            int position = 0;
            int[] positions = new int[ARRAYS.length];
            for (int k = 0; k < ARRAYS.length; k++) {
                Datatype type = BasicType.of(k);
                positions[k] = position;
                int size = world.Pack_size(5, type);
                assertEquals(8 + (5 * type.getByteSize() + 7) / 8 * 8, size);
                // An odd position is rounded up.
                assertEquals(position + size, world.Pack(ARRAYS[k], 0, 5, type, unit, k == 0 ? 0 : position - 7));
                position += size;
            }
            Object[] objects = {"text", null, ARRAYS[4], ARRAYS[4]};
            int behind = world.Pack(objects, 0, 4, MPI.OBJECT, unit, position);
            assertEquals(0, behind % 8);
            assertEquals(8, world.Pack_size(4, MPI.OBJECT));
            int end = world.Pack(null, 7, 0, MPI.INT, unit, behind);
            assertEquals(behind + 8, end);
            for (int k = 0; k < ARRAYS.length; k++) {
                // More items than were packed may be asked for; the position is that behind the packed ones.
                Object array = Array.newInstance(ARRAYS[k].getClass().getComponentType(), 8);
                int next = world.Unpack(unit, positions[k], array, 1, 7, BasicType.of(k));
                assertEquals(k == 7 ? position : positions[k + 1], next);
                Object five = emptied(ARRAYS[k]);
                System.arraycopy(array, 1, five, 0, 5);
                assertSameElements(ARRAYS[k], five);
                assertSameElements(Array.get(emptied(five), 0), Array.get(array, 0));
                assertSameElements(Array.get(emptied(five), 0), Array.get(array, 6));
            }
            Object[] got = new Object[6];
            assertEquals(behind, world.Unpack(unit, position, got, 1, 5, MPI.OBJECT));
            assertEquals("text", got[1]);
            assertArrayEquals((int[]) ARRAYS[4], (int[]) got[3]);
            assertSame(got[3], got[4]);
            assertEquals(end, world.Unpack(unit, behind, null, 0, 0, MPI.INT));
            derived(world);
            mistakes(world);
            MPI.Finalize();
            System.out.println("done");
        }

        private static void derived(Intracomm world) {
            int[] numbers = new int[40];
            Arrays.setAll(numbers, k -> k);
            Datatype column = Datatype.Vector(4, 1, 5, MPI.INT);
            Datatype listed = Datatype.Indexed(new int[] {1, 2, 1}, new int[] {7, 0, 3}, MPI.INT);
            byte[] unit = new byte[48];
            int end = world.Pack(numbers, 2, 1, column, unit, 0);
            assertEquals(world.Pack_size(1, column), end);
            assertEquals(48, world.Pack(numbers, 10, 1, listed, unit, end));
            int[] got = new int[10];
            world.Unpack(unit, 0, got, 0, 1, listed);
            assertArrayEquals(new int[] {7, 12, 0, 17, 0, 0, 0, 2, 0, 0}, got);
            // One item and a part of the next one.
            int[] two = new int[20];
            world.Unpack(unit, end, two, 1, 2, Datatype.Vector(3, 1, 3, MPI.INT));
            assertArrayEquals(new int[] {0, 17, 0, 0, 10, 0, 0, 11, 13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, two);
            double[] many = new double[LONG];
            Arrays.setAll(many, k -> k);
            byte[] large = new byte[world.Pack_size(LONG, MPI.DOUBLE)];
            world.Pack(many, 0, LONG, MPI.DOUBLE, large, 0);
            double[] back = new double[LONG];
            assertEquals(large.length, world.Unpack(large, 0, back, 0, LONG, MPI.DOUBLE));
            assertArrayEquals(many, back);
        }

        private static void mistakes(Intracomm world) {
            byte[] unit = new byte[24];
            int[] three = new int[3];
            world.Pack(three, 0, 3, MPI.INT, unit, 0);
            fails(MPI.ERR_BUFFER, () -> world.Pack(three, 0, 3, MPI.INT, unit, 8));
            fails(MPI.ERR_BUFFER, () -> world.Pack(three, 0, 3, MPI.INT, unit, -1));
            fails(MPI.ERR_BUFFER, () -> world.Pack(three, 0, 3, MPI.INT, unit, 25));
            fails(MPI.ERR_BUFFER, () -> world.Pack(three, 1, 3, MPI.INT, unit, 0));
            fails(MPI.ERR_BUFFER, () -> world.Pack(new Object[] {"text"}, 0, 1, MPI.OBJECT, unit, 8));
            fails(MPI.ERR_COUNT, () -> world.Pack(three, 0, -1, MPI.INT, unit, 0));
            fails(MPI.ERR_TYPE, () -> world.Pack(new long[3], 0, 3, MPI.INT, unit, 0));
            fails(MPI.ERR_TYPE, () -> world.Pack(three, 0, 3, null, unit, 0));
            fails(MPI.ERR_ARG, () -> world.Pack(three, 0, 3, MPI.INT, null, 0));
            fails(MPI.ERR_ARG, () -> world.Unpack(null, 0, three, 0, 3, MPI.INT));
            fails(MPI.ERR_OTHER, () -> world.Unpack(unit, 24, three, 0, 3, MPI.INT));
            String text = fails(MPI.ERR_TYPE, () -> world.Unpack(unit, 0, new float[3], 0, 3, MPI.FLOAT));
            assertEquals("the packed section at octet 0 has 3 elements of int, up to 3 of float fit", text);
            fails(MPI.ERR_TYPE, () -> world.Unpack(unit, 0, new Object[3], 0, 3, MPI.OBJECT));
            fails(MPI.ERR_TRUNCATE, () -> world.Unpack(unit, 0, three, 0, 2, MPI.INT));
            fails(MPI.ERR_TYPE, () -> Datatype.Contiguous(2, MPI.PACKED));
            fails(MPI.ERR_COUNT, () -> world.Pack_size(-1, MPI.INT));
            fails(MPI.ERR_COUNT, () -> world.Pack_size(Integer.MAX_VALUE, MPI.LONG));
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SHM", "THREADS"})
    void shouldUnpackWhatItHasPackedOfEachType(World world) throws Exception {
        assertEquals(List.of("done"), world.run(1, AllTypes.class));
    }

    /** Rank 0 sends packing units and elements; rank 1 receives them as packing units and as octets. */
    static final class Messages {
        private Messages() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            if (world.Rank() == 0) {
                send(world);
            } else {
                receive(world);
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private static void send(Intracomm world) {
            byte[] unit = new byte[100];
            int end = world.Pack(new int[] {1, 2, 3}, 0, 3, MPI.INT, unit, 0);
            end = world.Pack(new Object[] {"text"}, 0, 1, MPI.OBJECT, unit, end);
            world.Send(unit, 0, end, MPI.PACKED, 1, 1);
            world.Isend(unit, 0, end, MPI.PACKED, 1, 2).Wait();
            world.Ssend(unit, 0, end, MPI.PACKED, 1, 3);
            world.Send(unit, 0, end, MPI.PACKED, 1, 4);
            world.Send(unit, 0, end, MPI.PACKED, 1, 5);
            world.Send(unit, 0, end, MPI.PACKED, 1, 6);
            world.Send(new double[] {1, 2}, 0, 2, MPI.DOUBLE, 1, 7);
            foreign(world);
            world.Send(new Object[] {"text"}, 0, 1, MPI.OBJECT, 1, 9);
            world.Send(null, 0, 0, MPI.PACKED, 1, 10);
            double[] many = new double[LONG];
            Arrays.setAll(many, k -> k);
            byte[] large = new byte[world.Pack_size(LONG, MPI.DOUBLE)];
            world.Pack(many, 0, LONG, MPI.DOUBLE, large, 0);
            world.Send(large, 0, large.length, MPI.PACKED, 1, 11);
            world.Send(many, 0, LONG, MPI.DOUBLE, 1, 12);
            world.Sendrecv_replace(unit, 0, end, MPI.PACKED, 1, 13, 1, 13);
            fails(MPI.ERR_TYPE, () -> world.Send(new int[2], 0, 2, MPI.PACKED, 1, 14));
            fails(MPI.ERR_BUFFER, () -> world.Send(unit, 1, 100, MPI.PACKED, 1, 14));
        }

        /** Sends two sections in the byte order that is not this machine's. */
        private static void foreign(Intracomm world) {
            int other = ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? 1 : 0;
            long writer = Native.newWriter(64, other);
            Native.write(writer, new int[] {1, -2}, 2, Types.INT, 0, 2, 0);
            Native.write(writer, new short[] {-3}, 1, Types.SHORT, 0, 1, 0);
            Native.send(world.handle(), writer, 1, 8, false, 0);
            Native.close(writer);
        }

        private static void receive(Intracomm world) {
            byte[] unit = new byte[100];
            Status status = world.Recv(unit, 0, 100, MPI.PACKED, 0, 1);
            int end = status.count;
            assertStatus(0, 1, end, status);
            assertEquals(end, status.Get_count(MPI.PACKED));
            assertEquals(MPI.UNDEFINED, status.Get_count(MPI.INT));
            check(world, unit, 0);
            Request request = world.Irecv(unit, 10, 90, MPI.PACKED, MPI.ANY_SOURCE, 2);
            assertStatus(0, 2, end, request.Wait());
            check(world, Arrays.copyOfRange(unit, 10, 90), 0);
            Arrays.fill(unit, (byte) 0);
            assertStatus(0, 3, end, world.Recv(unit, 0, 100, MPI.PACKED, MPI.ANY_SOURCE, MPI.ANY_TAG));
            check(world, unit, 0);
            byte[] octets = new byte[100];
            assertStatus(0, 4, end, world.Recv(octets, 0, 100, MPI.BYTE, 0, 4));
            assertArrayEquals(unit, octets);
            fails(MPI.ERR_TYPE, () -> world.Recv(new int[50], 0, 50, MPI.INT, 0, 5));
            fails(MPI.ERR_TRUNCATE, () -> world.Recv(octets, 0, end - 1, MPI.PACKED, 0, 6));
            assertArrayEquals(unit, octets);
            assertEquals(24, world.Recv(unit, 0, 24, MPI.PACKED, 0, 7).count);
            double[] two = new double[2];
            assertEquals(24, world.Unpack(unit, 0, two, 0, 2, MPI.DOUBLE));
            assertArrayEquals(new double[] {1, 2}, two);
            assertEquals(32, world.Recv(unit, 0, 100, MPI.PACKED, 0, 8).count);
            int[] ints = new int[2];
            short[] one = new short[1];
            assertEquals(32, world.Unpack(unit, world.Unpack(unit, 0, ints, 0, 2, MPI.INT), one, 0, 1, MPI.SHORT));
            assertArrayEquals(new int[] {1, -2}, ints);
            assertEquals(-3, one[0]);
            fails(MPI.ERR_TYPE, () -> world.Recv(unit, 0, 100, MPI.PACKED, 0, 9));
            assertStatus(0, 10, 0, world.Recv(unit, 0, 100, MPI.PACKED, 0, 10));
            receiveLong(world);
            byte[] mine = new byte[100];
            int mineEnd = world.Pack(new int[] {7}, 0, 1, MPI.INT, mine, 0);
            status = world.Sendrecv(mine, 0, mineEnd, MPI.PACKED, 0, 13, mine, 0, 100, MPI.PACKED, 0, 13);
            assertStatus(0, 13, end, status);
            check(world, mine, 0);
        }

        private static void receiveLong(Intracomm world) {
            byte[] large = new byte[world.Pack_size(LONG, MPI.DOUBLE)];
            for (int tag : new int[] {11, 12}) {
                Arrays.fill(large, (byte) 0);
                assertStatus(0, tag, large.length, world.Recv(large, 0, large.length, MPI.PACKED, 0, tag));
                double[] many = new double[LONG];
                world.Unpack(large, 0, many, 0, LONG, MPI.DOUBLE);
                assertTrue(many[1] == 1 && many[LONG - 1] == LONG - 1);
            }
        }

        private static void check(Intracomm world, byte[] unit, int position) {
            int[] ints = new int[3];
            Object[] text = new Object[1];
            world.Unpack(unit, world.Unpack(unit, position, ints, 0, 3, MPI.INT), text, 0, 1, MPI.OBJECT);
            assertArrayEquals(new int[] {1, 2, 3}, ints);
            assertEquals("text", text[0]);
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldMovePackingUnits(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Messages.class));
    }
}
