package compat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteOrder;
import java.util.List;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.MPIException;
import mpi.Request;
import mpi.Status;
import mpjbuf.Buffer;
import mpjbuf.BufferFactory;
import mpjdev.Mpjrun;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Packing into buffers, and their messages. */
@Timeout(180)
class PackTest {
    private static final int ROOM = 1000;
    private static final int ROUNDS = 3;
    private static final int TAG = 99;

    /** Runs two ranks. */
    static void run(Class<?> main, Mpjrun job) throws Exception {
        Mpjrun.Job ended = job.run(main);
        assertEquals(0, ended.status, ended::toString);
        assertEquals(List.of("done", "done"), ended.lines(), ended::toString);
    }

    static Buffer buffer() {
        return new Buffer(BufferFactory.create(ROOM + MPI.SEND_OVERHEAD), MPI.SEND_OVERHEAD, ROOM + MPI.SEND_OVERHEAD);
    }

    /** Rank 0 packs and sends, rank 1 receives and unpacks. */
    public static final class Exchange {
        private Exchange() {}

        public static void main(String[] args) throws Exception {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            Datatype column = Datatype.Vector(2, 1, 3, MPI.INT);
            if (world.Rank() == 0) {
                send(world, column);
            } else {
                receive(world, column);
            }
            MPI.Finalize();
            System.out.println("done");
        }

        private static void send(Intracomm world, Datatype column) {
            Buffer unit = buffer();
            for (int round = 0; round < ROUNDS; round++) {
                unit.setEncoding(round == 1 ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN);
                // The buffer that was sent stays usable, and the first call begins another message.
                int position = world.Pack(new double[] {1.1 + round}, 0, 1, MPI.DOUBLE, unit, 0);
                assertEquals(16, position);
                position = world.Pack(new int[] {9, 1, 2, 3, 4}, 1, 1, column, unit, position);
                position = world.Pack(new Object[] {"text", List.of(round)}, 0, 2, MPI.OBJECT, unit, position);
                assertEquals(40, position);
                if (round == 0) {
                    world.Send(unit, 0, position, MPI.PACKED, 1, TAG);
                } else {
                    world.Isend(unit, 0, position, MPI.PACKED, 1, TAG).Wait();
                }
            }
            world.Send(unit, 0, unit.getSize(), MPI.PACKED, 1, TAG);
            world.Send(unit, 0, unit.getSize(), MPI.PACKED, MPI.PROC_NULL, TAG);
            world.Send(new int[1], 0, 1, MPI.INT, 1, TAG);
        }

        private static void receive(Intracomm world, Datatype column) throws Exception {
            Buffer unit = buffer();
            for (int round = 0; round < ROUNDS; round++) {
                Status status;
                if (round == 0) {
                    status = world.Recv(unit, 0, ROOM, MPI.PACKED, 0, TAG);
                } else {
                    Request request = world.Irecv(unit, 0, ROOM, MPI.PACKED, MPI.ANY_SOURCE, MPI.ANY_TAG);
                    status = request.Wait();
                }
                assertEquals(40, status.Get_count(MPI.PACKED));
                assertEquals(TAG, status.tag);
                double[] number = new double[1];
                int position = world.Unpack(unit, 0, number, 0, 1, MPI.DOUBLE);
                assertEquals(16, position);
                assertEquals(1.1 + round, number[0]);
                int[] numbers = new int[8];
                position = world.Unpack(unit, position, numbers, 2, 1, column);
                assertArrayEquals(new int[] {0, 0, 1, 0, 0, 4, 0, 0}, numbers);
                Object[] objects = new Object[3];
                assertEquals(40, world.Unpack(unit, position, objects, 1, 2, MPI.OBJECT));
                assertArrayEquals(new Object[] {null, "text", List.of(round)}, objects);
                assertThrows(MPIException.class, () -> world.Unpack(unit, 0, objects, 0, 1, MPI.OBJECT));
            }
            MPIException e = assertThrows(MPIException.class,
                    () -> world.Recv(new Buffer(16), 0, 16, MPI.PACKED, 0, TAG));
            assertEquals(MPI.ERR_TRUNCATE, e.getErrorClass(), e::toString);
            world.Recv(unit, 0, ROOM, MPI.PACKED, 0, TAG);
            e = assertThrows(MPIException.class, () -> world.Unpack(unit, 0, new float[1], 0, 1, MPI.FLOAT));
            assertEquals(MPI.ERR_TYPE, e.getErrorClass(), e::toString);
            assertEquals(MPI.PROC_NULL, world.Recv(unit, 0, ROOM, MPI.PACKED, MPI.PROC_NULL, TAG).source);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp"})
    void shouldMovePackedBuffersBetweenProcesses(String transport) throws Exception {
        run(Exchange.class, new Mpjrun(2).with("--transport", transport));
        run(Mixed.class, new Mpjrun(2).with("--transport", transport));
    }

    /** Rank 0 packs into arrays and a buffer, and rank 1 receives each as the other. */
    public static final class Mixed {
        private static final int[] NUMBERS = {1, 2, 3};

        private Mixed() {}

        public static void main(String[] args) throws Exception {
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

        private static void send(Intracomm world) throws Exception {
            byte[] octets = new byte[ROOM];
            int end = world.Pack(new Object[] {"text", null}, 0, 2, MPI.OBJECT, octets, 0);
            end = world.Pack(NUMBERS, 0, 3, MPI.INT, octets, end);
            end = world.Pack(new Object[] {List.of(4)}, 0, 1, MPI.OBJECT, octets, end);
            for (int message = 0; message < 3; message++) {
                world.Send(octets, 0, message == 2 ? ROOM : end, MPI.PACKED, 1, TAG);
            }
            Buffer unit = buffer();
            Status status = world.Recv(unit, 0, ROOM, MPI.PACKED, 1, TAG);
            check(world, unit, status);
            world.Send(octets, 0, end, MPI.PACKED, 1, TAG);
            int three = world.Pack(NUMBERS, 0, 3, MPI.INT, octets, 0);
            world.Send(octets, 0, three, MPI.PACKED, 1, TAG);
            world.Send(NUMBERS, 0, 3, MPI.INT, 1, TAG);
            // No packing unit: bytes.
            world.Send(octets, 0, three, MPI.BYTE, 1, TAG);
            unit.clear();
            end = world.Pack(NUMBERS, 0, 3, MPI.INT, unit, 0);
            world.Send(unit, 0, end, MPI.PACKED, 1, TAG);
        }

        private static void receive(Intracomm world) throws Exception {
            Buffer unit = buffer();
            check(world, unit, world.Recv(unit, 0, ROOM, MPI.PACKED, 0, TAG));
            check(world, unit, world.Irecv(unit, 0, ROOM, MPI.PACKED, MPI.ANY_SOURCE, TAG).Wait());
            world.Recv(unit, 0, ROOM, MPI.PACKED, 0, TAG);
            unit.setSize(40);
            world.Send(unit, 0, 40, MPI.PACKED, 0, TAG);
            Buffer small = new Buffer(16);
            world.Pack(NUMBERS, 0, 1, MPI.INT, small, 0);
            for (int message = 0; message < 3; message++) {
                MPIException e = assertThrows(MPIException.class, () -> world.Recv(small, 0, 16, MPI.PACKED, 0, TAG));
                assertEquals(MPI.ERR_TRUNCATE, e.getErrorClass(), e::toString);
            }
            int[] got = new int[3];
            assertEquals(16, world.Unpack(small, 0, got, 0, 1, MPI.INT));
            assertEquals(1, got[0]);
            assertEquals(32, world.Recv(unit, 0, ROOM, MPI.PACKED, 0, TAG).Get_count(MPI.PACKED));
            byte[] octets = new byte[24];
            assertEquals(24, world.Unpack(unit, 0, octets, 0, 24, MPI.BYTE) - 8);
            assertEquals(24, world.Recv(octets, 0, 24, MPI.PACKED, 0, TAG).Get_count(MPI.PACKED));
            assertEquals(24, world.Unpack(octets, 0, got, 0, 3, MPI.INT));
            assertArrayEquals(NUMBERS, got);
        }

        private static void check(Intracomm world, Buffer unit, Status status) {
            assertEquals(40, status.Get_count(MPI.PACKED));
            Object[] objects = new Object[3];
            assertEquals(8, world.Unpack(unit, 0, objects, 0, 2, MPI.OBJECT));
            int[] got = new int[3];
            assertEquals(32, world.Unpack(unit, 8, got, 0, 3, MPI.INT));
            assertArrayEquals(NUMBERS, got);
            assertEquals(40, world.Unpack(unit, 32, objects, 2, 1, MPI.OBJECT));
            assertArrayEquals(new Object[] {"text", null, List.of(4)}, objects);
        }
    }

    @Test
    void shouldMovePackedBuffersBetweenThreads() throws Exception {
        run(Exchange.class, new Mpjrun(1).threads(2));
        run(Mixed.class, new Mpjrun(1).threads(2));
    }
}
