package mpi;

import static mpi.Program.assertStatus;
import static mpi.Program.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Sends in buffered mode, and the buffer that limits them. */
@Timeout(180)
class BsendTest {
    /** More than any credit covers. */
    private static final int LONG = 5 << 20;
    private static final int MESSAGES = 8;

    /** Rank 0 sends more than can leave before the receives, in buffered mode. */
    static final class Ahead {
        private Ahead() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            byte[] data = new byte[LONG];
            byte[] buffer = new byte[MESSAGES * LONG];
            if (world.Rank() == 0) {
                MPI.Buffer_attach(buffer);
                for (int i = 0; i < MESSAGES; i++) {
                    data[LONG - 1] = (byte) i;
                    if (i % 2 == 0) {
                        world.Bsend(data, 0, LONG, MPI.BYTE, 1, i);
                    } else {
                        Request sent = world.Ibsend(data, 0, LONG, MPI.BYTE, 1, i);
                        assertTrue(sent.Test() != null && sent.Is_null());
                    }
                }
                // Nothing was received: this message is sent behind all of them.
                world.Send(data, 0, 0, MPI.BYTE, 1, MESSAGES);
                assertSame(buffer, MPI.Buffer_detach());
            } else {
                world.Recv(data, 0, 0, MPI.BYTE, 0, MESSAGES);
                for (int i = MESSAGES; i-- > 0; ) {
                    world.Recv(data, 0, LONG, MPI.BYTE, 0, i);
                    assertEquals(i, data[LONG - 1]);
                }
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldSendBeforeAnythingIsReceived(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Ahead.class));
    }

    /** Messages that no receive takes use up the credit, and then the buffer. */
    static final class Full {
        private static final int OCTETS = 4096;
        private static final int MOST = 20_000;

        private Full() {}

        public static void main(String[] args) {
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            byte[] data = new byte[OCTETS];
            int[] sent = {0};
            if (world.Rank() == 0) {
                MPI.Buffer_attach(ByteBuffer.allocate(3 * OCTETS));
                String text = fails(MPI.ERR_BUFFER, () -> {
                    for (; sent[0] < MOST; sent[0]++) {
                        world.Bsend(data, 0, OCTETS, MPI.BYTE, 1, 0);
                    }
                });
                assertEquals("a buffered send of 4096 octets does not fit: 12288 of 12288 attached octets are in use",
                        text);
                world.Send(sent, 0, 1, MPI.INT, 1, 1);
                world.Recv(sent, 0, 0, MPI.INT, 1, 2);
                // The receiver has taken all of them.
                world.Bsend(data, 0, OCTETS, MPI.BYTE, 1, 0);
                assertNull(MPI.Buffer_detach());
                fails(MPI.ERR_BUFFER, () -> world.Bsend(data, 0, 1, MPI.BYTE, 1, 0));
            } else {
                world.Recv(sent, 0, 1, MPI.INT, 0, 1);
                for (int i = 0; i < sent[0]; i++) {
                    world.Recv(data, 0, OCTETS, MPI.BYTE, 0, 0);
                }
                world.Send(sent, 0, 0, MPI.INT, 0, 2);
                world.Recv(data, 0, OCTETS, MPI.BYTE, 0, 0);
                assertNull(world.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG));
            }
            MPI.Finalize();
            System.out.println("done");
        }
    }

    /** A C MPI takes any number of messages that a rank waits behind. */
    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = {"OPENMPI", "MPICH"})
    void shouldRefuseWhatDoesNotFitTheBuffer(World world) throws Exception {
        assertEquals(List.of("done", "done"), world.run(2, Full.class));
    }

    /** Buffers, sizes and arguments, in a world of one rank. */
    static final class Alone {
        private Alone() {}

        public static void main(String[] args) {
            fails(MPI.ERR_OTHER, () -> MPI.Buffer_attach(new byte[1]));
            assertNull(MPI.Buffer_detach());
            MPI.Init(args);
            Intracomm world = MPI.COMM_WORLD;
            int[] a = {1, 2, 3};
            fails(MPI.ERR_BUFFER, () -> world.Bsend(a, 0, 3, MPI.INT, 0, 0));
            fails(MPI.ERR_BUFFER, () -> MPI.Buffer_attach((byte[]) null));
            // Elements count, headers do not.
            byte[] buffer = new byte[12];
            MPI.Buffer_attach(buffer);
            world.Bsend(a, 0, 3, MPI.INT, 0, 1);
            assertStatus(0, 1, 3, world.Recv(new int[3], 0, 3, MPI.INT, 0, 1));
            String text = fails(MPI.ERR_BUFFER, () -> world.Bsend(new int[4], 0, 4, MPI.INT, 0, 1));
            assertEquals("a buffered send of 16 octets does not fit: 0 of 12 attached octets are in use", text);
            world.Bsend(a, 0, 3, MPI.INT, MPI.PROC_NULL, 1);
            world.Bsend(null, 0, 0, MPI.INT, 0, 2);
            assertStatus(0, 2, 0, world.Recv(a, 0, 3, MPI.INT, 0, 2));
            fails(MPI.ERR_COUNT, () -> world.Bsend(a, 0, -1, MPI.INT, 0, 1));
            fails(MPI.ERR_BUFFER, () -> world.Bsend(a, 1, 3, MPI.INT, 0, 1));
            fails(MPI.ERR_TAG, () -> world.Bsend(a, 0, 1, MPI.INT, 0, -1));
            fails(MPI.ERR_RANK, () -> world.Bsend(a, 0, 1, MPI.INT, 1, 1));
            fails(MPI.ERR_TYPE, () -> world.Bsend(a, 0, 1, null, 0, 1));
            assertNull(world.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG));
            assertSame(buffer, MPI.Buffer_detach());
            others(world);
            MPI.Finalize();
            assertNull(MPI.Buffer_detach());
            System.out.println("done");
        }

        /** Objects, derived datatypes and persistent requests. */
        private static void others(Intracomm world) {
            MPI.Buffer_attach(ByteBuffer.allocateDirect(200));
            Object[] objects = {"text", null};
            world.Bsend(objects, 0, 2, MPI.OBJECT, 0, 3);
            fails(MPI.ERR_BUFFER, () -> world.Bsend(new Object[] {new int[200]}, 0, 1, MPI.OBJECT, 0, 3));
            Object[] into = new Object[2];
            world.Recv(into, 0, 2, MPI.OBJECT, 0, 3);
            assertArrayEquals(objects, into);
            int[] a = {1, 2, 3, 4};
            world.Bsend(a, 0, 1, Datatype.Vector(2, 1, 3, MPI.INT), 0, 4);
            world.Recv(a, 0, 2, MPI.INT, 0, 4);
            assertArrayEquals(new int[] {1, 4, 3, 4}, a);
            Prequest again = world.Bsend_init(a, 0, 1, MPI.INT, 0, 5);
            for (int i = 0; i < 3; i++) {
                a[0] = i;
                again.Start();
                fails(MPI.ERR_REQUEST, again::Start);
                again.Wait();
                world.Recv(a, 1, 1, MPI.INT, 0, 5);
                assertEquals(i, a[1]);
            }
            // Attaching detaches; the world ends with a buffer that is attached.
            MPI.Buffer_attach(new byte[4]);
            fails(MPI.ERR_BUFFER, () -> world.Bsend(a, 0, 2, MPI.INT, 0, 5));
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldCountElementsAgainstTheBuffer(World world) throws Exception {
        assertEquals(List.of("done"), world.run(1, Alone.class));
    }
}
