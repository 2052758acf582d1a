package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import java.util.List;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Long test: arrays of gibibytes between processes, without a buffer. */
@Tag("soak")
@Timeout(900)
class LongArraysTest {
    private static final int OCTETS = 1 << 30;
    private static final int LONGS = (1 << 27) + 1;
    private static final int TAG = 5;

    private static long element(int k) {
        return k * 0x9e3779b97f4a7c15L;
    }

    private static void fill(byte[] array) {
        for (int k = 0; k < array.length; k++) {
            array[k] = (byte) (element(k) >>> 56);
        }
    }

    private static void check(byte[] array, int count) {
        for (int k = 0; k < count; k++) {
            if (array[k] != (byte) (element(k) >>> 56)) {
                throw new AssertionError("octet " + k + " differs");
            }
        }
    }

    private static void check(Status status, Type type, int count) {
        assertSame(type, status.type());
        assertEquals(count, status.count());
        assertEquals(Buffer.requiredCapacity(type, count), status.size());
    }

    /** A count that does not fit beside the type in a packed status, with a given and with any source. */
    private static void octets(Comm world) {
        byte[] array = new byte[OCTETS];
        if (world.id() == 0) {
            fill(array);
            world.send(array, 0, OCTETS, 1, TAG);
            world.send(array, 0, OCTETS, 1, TAG);
            return;
        }
        check(world.recv(array, 0, OCTETS, 0, TAG), Type.BYTE, OCTETS);
        check(array, OCTETS);
        array[OCTETS - 1]++;
        check(world.recv(array, 0, OCTETS, Comm.ANY_SOURCE, Comm.ANY_TAG), Type.BYTE, OCTETS);
        check(array, OCTETS);
    }

    /** More than 2^30 octets, to a posted receive. */
    private static void longs(Comm world) {
        long[] array = new long[LONGS];
        if (world.id() == 0) {
            for (int k = 0; k < LONGS; k++) {
                array[k] = element(k);
            }
            world.recv(new int[0], 0, 0, 1, TAG);
            world.send(array, 0, LONGS, 1, TAG);
            return;
        }
        Request request = world.irecv(array, 0, LONGS, 0, TAG);
        world.send(new int[0], 0, 0, 0, TAG);
        check(request.iwait(), Type.LONG, LONGS);
        for (int k = 0; k < LONGS; k++) {
            assertEquals(element(k), array[k]);
        }
    }

    /** The longest message, and arrays that no message can hold. */
    private static void largest(Comm world) {
        int most = Buffer.MAX_CAPACITY - 8;
        byte[] array = new byte[Integer.MAX_VALUE - 7];
        fill(array);
        assertThrows(IllegalArgumentException.class, () -> world.send(array, 0, array.length, 0, TAG));
        assertThrows(IllegalArgumentException.class, () -> world.isend(array, 0, most + 1, 0, TAG));
        assertNull(world.iprobe(0, Comm.ANY_TAG), "nothing was sent");
        // A receive may have room for more than a message can hold.
        Request request = world.irecv(array, 0, array.length, 0, TAG);
        world.send(array, 0, most, 0, TAG);
        Arrays.fill(array, (byte) 0);
        check(request.iwait(), Type.BYTE, most);
        check(array, most);
        assertEquals(0, array[most]);
    }

    private static void tooLong(Comm world) {
        long[] array = new long[1 << 28];
        assertThrows(IllegalArgumentException.class, () -> world.send(array, 0, array.length, 0, TAG));
    }

    /** Rank 0 or 1 of the job. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) {
            Comm.init(args);
            Comm world = Comm.WORLD;
            octets(world);
            longs(world);
            if (world.id() == 0) {
                largest(world);
                tooLong(world);
            }
            System.out.println("done");
            Comm.finish();
        }
    }

    @Test
    void shouldMoveArraysOfGibibytesBetweenProcesses() throws Exception {
        // Under -Xcheck:jni the JVM copies the whole array at each hold.
        Job job = new Mpjrun(2).jvm("-XX:-CheckJNICalls", "-Xmx6g").within(600).run(Program.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("done", "done"), job.lines(), job::toString);
    }
}
