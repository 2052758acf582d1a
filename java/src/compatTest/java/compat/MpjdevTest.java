package compat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import mpi.MPI;
import mpi.MPIException;
import mpjbuf.Buffer;
import mpjbuf.Type;
import mpjdev.Comm;
import mpjdev.MPJDev;
import mpjdev.MPJDevException;
import mpjdev.Mpjrun;
import mpjdev.Request;
import mpjdev.Status;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import xdev.XDevException;

/** Messages at the level of package mpjdev. */
@Timeout(180)
class MpjdevTest {
    private static final int ROOM = 64;
    private static final int TAG = 5;

    /** Two ranks exchange buffers in each way. */
    public static final class Exchange {
        private Exchange() {}

        public static void main(String[] args) throws Exception {
            MPJDev.init(args);
            MPJDev.init(args);
            Comm world = MPJDev.WORLD;
            assertEquals(2, world.size());
            Buffer buffer = new Buffer(ROOM);
            if (world.id() == 0) {
                buffer.putSectionHeader(Type.INT_DYNAMIC);
                buffer.write(new int[] {1, 2, 3}, 0, 3);
                buffer.putSectionHeader(Type.OBJECT);
                buffer.write(new Object[] {"text"}, 0, 1);
                buffer.putSectionHeader(Type.SHORT);
                buffer.write(new short[] {7}, 0, 1);
                buffer.commit();
                // The contents stay, and go again.
                world.send(buffer, 1, TAG, true);
                world.ssend(buffer, 1, TAG, true);
                Request[] requests = {null, world.isend(buffer, 1, TAG, true)};
                assertEquals(1, Request.iwaitany(requests).index);
                assertTrue(requests[1].isnull());
                world.issend(buffer, 1, TAG, true).iwait();
                assertSame(MPI.COMM_WORLD.mpjdevComm, world);
            } else {
                receive(world, buffer);
            }
            world.barrier();
            MPIException e = assertThrows(MPIException.class, () -> world.send(buffer, 9, TAG, true));
            MPJDevException device = e;
            XDevException any = device;
            assertTrue(any.getMessage().contains("9"), any::toString);
            MPJDev.finish();
            MPJDev.finish();
            assertNull(MPJDev.WORLD);
            System.out.println("done");
        }

        private static void receive(Comm world, Buffer buffer) throws Exception {
            for (int message = 0; message < 4; message++) {
                Status status;
                if (message < 2) {
                    probe(world);
                    status = world.recv(buffer, 0, TAG, true);
                } else {
                    Request request = world.irecv(buffer, MPI.ANY_SOURCE, TAG, null, true);
                    status = request.itest();
                    status = status == null ? request.iwait() : status;
                }
                assertEquals(0, status.source);
                buffer.commit();
                assertSame(Type.INT_DYNAMIC, buffer.getSectionHeader());
                int[] numbers = new int[buffer.getSectionSize()];
                buffer.read(numbers, 0, numbers.length);
                assertArrayEquals(new int[] {1, 2, 3}, numbers);
                assertSame(Type.OBJECT, buffer.getSectionHeader());
                assertSame(Type.SHORT, buffer.getSectionHeader());
                assertEquals(1, buffer.getSectionSize());
            }
            assertNull(world.iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG));
            Request never = world.irecv(buffer, 0, TAG, null, true);
            assertTrue(never.cancel());
            never.iwait();
        }
    }

    /** Finds the message, which stays for a receive. Its first section holds an array as an object. */
    private static void probe(Comm world) {
        Status first = world.probe(MPI.ANY_SOURCE, MPI.ANY_TAG);
        for (Status status : new Status[] {first, world.iprobe(0, TAG)}) {
            assertEquals(0, status.source);
            assertEquals(TAG, status.tag);
            assertSame(Type.OBJECT, status.type);
            assertEquals(1, status.numEls);
        }
        assertNull(world.iprobe(0, TAG + 1));
    }

    @Test
    void shouldMoveBuffersBetweenProcessesAndBetweenThreads() throws Exception {
        PackTest.run(Exchange.class, new Mpjrun(2));
        PackTest.run(Exchange.class, new Mpjrun(1).threads(2));
    }
}
