package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Ranks that are threads exchange messages, and what goes wrong is an exception with the numbers. */
class CommTest {
    @Test
    void shouldSendAndReceiveArraysAndObjectsBetweenTwoRanks() throws Exception {
        Comm.runThreads(2, world -> {
            if (world.id() == 0) {
                try (ObjectWriteBuffer out = new ObjectWriteBuffer(4096)) {
                    out.write(new int[] {1, 2, 3}, 0, 3);
                    out.write(new Object[] {"a", null, 7L}, 0, 3);
                    world.send(out, 1, 5);
                }
            } else {
                try (ObjectReadBuffer in = new ObjectReadBuffer(4096)) {
                    Status status = world.recv(in, Comm.ANY_SOURCE, Comm.ANY_TAG);
                    assertEquals(0, status.source);
                    assertEquals(5, status.tag);
                    assertEquals(Type.INT, status.type());
                    assertEquals(3, status.count());
                    int[] ints = new int[3];
                    in.read(ints, 0, 3);
                    assertArrayEquals(new int[] {1, 2, 3}, ints);
                    Object[] objects = new Object[3];
                    in.read(objects, 0, 3);
                    assertArrayEquals(new Object[] {"a", null, 7L}, objects);
                }
            }
        });
    }

    @Test
    void shouldThrowWhatARankThrewAndFailTheOthers() {
        IllegalArgumentException e = assertThrows(IllegalArgumentException.class, () -> Comm.runThreads(3, world -> {
            if (world.id() == 1) {
                throw new IllegalArgumentException("mine");
            }
            try (ReadBuffer in = new ReadBuffer(8)) {
                PeerFailedException failed =
                        assertThrows(PeerFailedException.class, () -> world.recv(in, Comm.ANY_SOURCE, 0));
                assertEquals(1, failed.rank());
                assertTrue(failed.getMessage().contains("mine"), failed.getMessage());
            }
        }));
        assertEquals("mine", e.getMessage());
        assertEquals(0, e.getSuppressed().length);
    }

    @Test
    void shouldMakeCommunicatorsOfSomeRanks() {
        Comm.runThreads(4, world -> {
            Comm dup = world.dup();
            assertEquals(world.id(), dup.id());
            Comm odd = world.create(new int[] {3, 1});
            assertEquals(world.id() % 2 == 1, odd != null);
            if (odd != null) {
                assertEquals(world.id() == 3 ? 0 : 1, odd.id());
            }
            Comm half = world.split(world.id() / 2, -world.id());
            assertEquals(2, half.size());
            assertEquals(1 - world.id() % 2, half.id());
            half.barrier();
        });
    }
}
