package mpi;

import static mpi.Program.assertStatus;
import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Array;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Probes: source, tag, type and number of elements of a message that no receive has taken. */
@Timeout(180)
class ProbeTest {
    /** Octets: no elements, an inline message, an eager one, a long one. */
    private static final int[] OCTETS = {0, 8, 3000, 100_000, 5 << 20};
    private static final Datatype[] TYPES = {MPI.BYTE, MPI.CHAR, MPI.SHORT, MPI.BOOLEAN, MPI.INT, MPI.LONG, MPI.FLOAT,
        MPI.DOUBLE};

    private static Object array(Datatype type, int n) {
        Class<?>[] components = {byte.class, char.class, short.class, boolean.class, int.class, long.class, float.class,
            double.class};
        return Array.newInstance(components[type.element], n);
    }

    /** Returns the status of a probe, by either call. */
    private static Status probe(Intracomm world, boolean blocks, int source, int tag) {
        Status status = blocks ? world.Probe(source, tag) : world.Iprobe(source, tag);
        while (status == null) {
            status = world.Iprobe(source, tag);
        }
        return status;
    }

    /** Rank 0 sends messages of each type and length, which rank 1 sizes its arrays by. */
    static final class EachType {
        private EachType() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int tag = 0;
            for (Datatype type : TYPES) {
                for (int octets : OCTETS) {
                    int n = octets / type.getByteSize();
                    tag++;
                    if (world.Rank() == 0) {
                        world.Send(array(type, n), 0, n, type, 1, tag);
                    } else {
                        receive(world, type, n, tag);
                    }
                }
            }
            world.Barrier();
            assertNull(world.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG));
            MPI.Finalize();
            System.out.println("done");
        }

        private static void receive(Intracomm world, Datatype type, int n, int tag) {
            int source = tag % 3 == 0 ? 0 : MPI.ANY_SOURCE;
            Status seen = probe(world, tag % 2 == 0, source, tag % 5 == 0 ? tag : MPI.ANY_TAG);
            assertStatus(0, tag, n, seen);
            assertEquals(n, seen.Get_count(type));
            assertEquals(n, seen.Get_elements(type));
            assertEquals(n * type.getByteSize(), seen.countInBytes);
            Datatype pair = Datatype.Contiguous(2, type);
            assertEquals(n % 2 == 0 ? n / 2 : MPI.UNDEFINED, seen.Get_count(pair));
            assertEquals(n, seen.Get_elements(pair));
            Datatype other = type == MPI.INT ? MPI.FLOAT : MPI.INT;
            assertEquals(n == 0 ? 0 : MPI.UNDEFINED, seen.Get_count(other));
            // The message stays until a receive takes it.
            assertStatus(0, tag, n, world.Iprobe(0, tag));
            Object into = array(type, seen.count);
            assertStatus(0, tag, n, world.Recv(into, 0, seen.count, type, seen.source, seen.tag));
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldFindTypeAndCountOfEachMessage(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, EachType.class));
    }

    /** Objects, derived datatypes and synchronous sends; order and wildcards. */
    static final class EachKind {
        private EachKind() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Datatype column = Datatype.Vector(3, 1, 4, MPI.INT);
            if (world.Rank() == 0) {
                Object[] objects = {"a", null, new int[2000]};
                world.Send(objects, 0, 3, MPI.OBJECT, 1, 1);
                world.Send(objects, 0, 0, MPI.OBJECT, 1, 2);
                world.Send(new int[24], 0, 2, column, 1, 3);
                byte[] unit = new byte[16];
                world.Send(unit, 0, world.Pack(new int[2], 0, 2, MPI.INT, unit, 0), MPI.PACKED, 1, 7);
                Request[] synchronous = {world.Issend(new long[1], 0, 1, MPI.LONG, 1, 4),
                    world.Issend(new long[9999], 0, 9999, MPI.LONG, 1, 5)};
                // A probe does not match: the answer comes before the receives.
                int[] answer = new int[1];
                world.Recv(answer, 0, 1, MPI.INT, 1, 6);
                assertNull(synchronous[0].Test());
                assertNull(synchronous[1].Test());
                world.Send(answer, 0, 1, MPI.INT, 1, 6);
                Request.Waitall(synchronous);
            } else {
                objects(world);
                assertStatus(0, 3, 6, world.Probe(0, MPI.ANY_TAG));
                assertEquals(2, world.Probe(0, 3).Get_count(column));
                assertStatus(0, 3, 6, world.Recv(new int[6], 0, 6, MPI.INT, 0, 3));
                assertEquals(16, world.Probe(0, 7).Get_count(MPI.PACKED));
                world.Recv(new byte[16], 0, 16, MPI.PACKED, 0, 7);
                assertStatus(0, 5, 9999, world.Probe(MPI.ANY_SOURCE, 5));
                assertStatus(0, 4, 1, world.Probe(MPI.ANY_SOURCE, MPI.ANY_TAG));
                world.Send(new int[1], 0, 1, MPI.INT, 0, 6);
                world.Recv(new int[1], 0, 1, MPI.INT, 0, 6);
                world.Recv(new long[9999], 0, 9999, MPI.LONG, 0, 5);
                world.Recv(new long[1], 0, 1, MPI.LONG, 0, 4);
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private static void objects(Intracomm world) {
            Status seen = world.Probe(MPI.ANY_SOURCE, 1);
            assertStatus(0, 1, 3, seen);
            assertEquals(3, seen.Get_count(MPI.OBJECT));
            assertEquals(MPI.UNDEFINED, seen.Get_count(MPI.BYTE));
            Object[] into = new Object[seen.count];
            assertStatus(0, 1, 3, world.Recv(into, 0, 3, MPI.OBJECT, 0, 1));
            assertEquals("a", into[0]);
            assertStatus(0, 2, 0, world.Probe(0, 2));
            world.Recv(into, 0, 0, MPI.OBJECT, 0, 2);
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldFindObjectsDerivedDatatypesAndSynchronousSends(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, EachKind.class));
    }

    /** Probes of a rank for messages of its own, for none, and with wrong arguments. */
    static final class Alone {
        private Alone() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            assertNull(world.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG));
            assertNull(world.Iprobe(0, 7));
            assertStatus(MPI.PROC_NULL, MPI.ANY_TAG, 0, world.Probe(MPI.PROC_NULL, 7));
            assertStatus(MPI.PROC_NULL, MPI.ANY_TAG, 0, world.Iprobe(MPI.PROC_NULL, MPI.ANY_TAG));
            fails(MPI.ERR_RANK, () -> world.Iprobe(1, 0));
            fails(MPI.ERR_RANK, () -> world.Probe(-1, 0));
            fails(MPI.ERR_TAG, () -> world.Iprobe(0, -1));
            world.Send(new short[3], 0, 3, MPI.SHORT, 0, 7);
            Status seen = world.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG);
            assertNotNull(seen);
            assertStatus(0, 7, 3, seen);
            // Items without elements: the count is that of the receive, which a probe does not have.
            Datatype nothing = Datatype.Contiguous(0, MPI.SHORT);
            assertEquals(0, seen.Get_count(nothing));
            assertEquals(MPI.UNDEFINED, seen.Get_elements(nothing));
            world.Recv(new short[3], 0, 3, MPI.SHORT, 0, 7);
            world.Send(new short[3], 0, 100, nothing, 0, 8);
            Status received = world.Recv(new short[3], 0, 100, nothing, 0, 8);
            assertTrue(received.count == 100 && received.numEls == 0, received::toString);
            assertEquals(100, received.Get_count(nothing));
            Request later = world.Irecv(new short[3], 0, 100, nothing, 0, 8);
            world.Send(new short[3], 0, 0, MPI.SHORT, 0, 8);
            assertEquals(100, later.Wait().Get_count(nothing));
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldFindMessagesOfTheRankItself(World world) throws Exception {
        assertEquals(List.of("done"), world.run(1, Alone.class));
    }
}
