package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import mpjdev.core.Types;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Status of probes and receives: source, tag, section and capacity. */
@Timeout(60)
class StatusTest {
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldReportTypeCountAndSizeOfTheFirstSection(boolean split) throws Exception {
        Wait.job(split, 2, world -> {
            for (Type type : AnyArray.TYPES) {
                int size = 8 + (5 * AnyArray.size(type) + 7) / 8 * 8 + 16;
                if (world.id() == 0) {
                    try (WriteBuffer out = new WriteBuffer(100)) {
                        AnyArray.write(out, AnyArray.make(type, 5), 0, 5);
                        out.write(new byte[3], 0, 3);
                        world.send(out, 1, type.ordinal());
                    }
                } else {
                    try (ReadBuffer in = new ReadBuffer(100)) {
                        Status probed = world.probe(0, type.ordinal());
                        assertEquals(size, probed.size());
                        assertEquals(5, probed.count());
                        assertEquals(type, probed.type());
                        Status status = world.recv(in, Comm.ANY_SOURCE, Comm.ANY_TAG);
                        assertEquals(0, status.source);
                        assertEquals(type.ordinal(), status.tag);
                        assertEquals(type, status.type());
                        assertEquals(5, status.count());
                        assertEquals(size, status.size());
                    }
                }
            }
        });
    }

    @ParameterizedTest
    @ValueSource(ints = {0, (1 << 28) - 2, (1 << 28) - 1, 1 << 28, 1 << 30, Buffer.MAX_CAPACITY - 8})
    void shouldReportTheElementsOfAReceiveIntoAnArray(int count) {
        int size = (int) Buffer.requiredCapacity(Type.BYTE, count);
        long detail = (long) size << 32 | count;
        Status status = new Status().receivedArray(Types.BYTE, 3, 4, detail);
        assertEquals(Type.BYTE, status.type());
        assertEquals(count, status.count());
        assertEquals(size, status.size());
        assertEquals(3, status.source);
        assertEquals(4, status.tag);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldDistinguishAnEmptyMessageFromAnEmptySection(boolean split) throws Exception {
        Wait.job(split, 2, world -> {
            if (world.id() == 0) {
                try (WriteBuffer out = new WriteBuffer(8)) {
                    world.send(out, 1, 0);
                    out.write(new float[0], 0, 0);
                    world.send(out, 1, 0);
                }
            } else {
                try (ReadBuffer in = new ReadBuffer(8)) {
                    Status status = world.recv(in, 0, 0);
                    assertNull(status.type());
                    assertEquals(0, status.count());
                    assertEquals(0, status.size());
                    status = world.recv(in, 0, 0);
                    assertEquals(Type.FLOAT, status.type());
                    assertEquals(0, status.count());
                    assertEquals(8, status.size());
                }
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldReportAnObjectSectionAndTheCapacityOfItsMessage(boolean split) throws Exception {
        Wait.job(split, 2, world -> {
            int secondary = Naive.serialised("a", "b", null).length;
            if (world.id() == 0) {
                // One physical message if both payloads are below the capacity, a multiple of 8; two if they
                // reach it, or if only
        // the primary payload fits.
                for (int capacity : new int[] {8 + secondary + 1, (8 + secondary) / 8 * 8, 8}) {
                    try (ObjectWriteBuffer out = new ObjectWriteBuffer(capacity)) {
                        out.write(new Object[] {"a", "b", null}, 0, 3);
                        world.send(out, 1, 0);
                    }
                }
            } else {
                for (int size : new int[] {8 + secondary, 8, 8}) {
                    Status probed = world.probe(0, 0);
                    assertEquals(size, probed.size(), "every transport splits messages alike");
                    assertEquals(3, probed.count());
                    assertEquals(Type.OBJECT, probed.type());
                    try (ObjectReadBuffer in = new ObjectReadBuffer(probed.size())) {
                        Status status = world.recv(in, 0, 0);
                        assertEquals(Type.OBJECT, status.type());
                        assertEquals(3, status.count());
                        assertEquals(probed.size(), status.size());
                        in.read(new Object[3], 0, 3);
                    }
                }
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldReturnAnEmptyStatusForASend(boolean split) throws Exception {
        Wait.job(split, 2, world -> {
            try (WriteBuffer out = new WriteBuffer(8); ReadBuffer in = new ReadBuffer(8)) {
                Request receive = world.irecv(in, 1 - world.id(), 0);
                Status sent = world.isend(out, 1 - world.id(), 0).iwait();
                assertEquals(Comm.ANY_SOURCE, sent.source);
                assertEquals(Comm.ANY_TAG, sent.tag);
                assertEquals(0, sent.count());
                assertNull(sent.type());
                assertEquals(0, sent.size());
                Status received = receive.iwait();
                assertEquals(0, received.index);
                assertTrue(received.toString().contains("source " + (1 - world.id())), received.toString());
            }
        });
    }
}
