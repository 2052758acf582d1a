package mpjdev.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import mpjdev.Comm;
import mpjdev.ObjectReadBuffer;
import mpjdev.ObjectWriteBuffer;
import mpjdev.Status;
import mpjdev.Type;

/** Messages that state their source, destination, number and length, and messages without content. */
final class TestMessages {
    private TestMessages() {}

    /** A message with this content; `text` octets of objects as well when not negative. */
    static ObjectWriteBuffer testMessage(int capacity, int from, int to, int number, int length, int text)
            throws Exception {
        ObjectWriteBuffer b = new ObjectWriteBuffer(capacity);
        put(b, from, to, number, length, text);
        return b;
    }

    static void put(ObjectWriteBuffer b, int from, int to, int number, int length, int text) throws Exception {
        b.clear();
        b.write(new int[] {from, to, number, length, text}, 0, 5);
        int[] body = new int[length];
        for (int i = 0; i < length; i++) {
            body[i] = number * 31 + i;
        }
        b.write(body, 0, length);
        if (text >= 0) {
            b.write(new Object[] {from + " to " + to + ": " + number, "x".repeat(text)}, 0, 2);
        }
    }

    /** Checks a message whole and gives its number. */
    static int check(ObjectReadBuffer in, Status status, int to) throws Exception {
        int[] head = new int[5];
        in.read(head, 0, 5);
        assertEquals(status.source, head[0], "the sender");
        assertEquals(to, head[1], "the receiver");
        assertEquals(head[3], in.nextCount(), "the length");
        assertSame(Type.INT, status.type());
        assertEquals(5, status.count());
        int[] body = new int[head[3]];
        in.read(body, 0, head[3]);
        for (int i = 0; i < body.length; i++) {
            if (body[i] != head[2] * 31 + i) {
                throw new AssertionError("element " + i + " of message " + head[2] + " is " + body[i]);
            }
        }
        if (head[4] >= 0) {
            Object[] objects = new Object[2];
            in.read(objects, 0, 2);
            assertEquals(head[0] + " to " + to + ": " + head[2], objects[0]);
            assertEquals(head[4], ((String) objects[1]).length());
        }
        assertEquals(-1, in.nextCount());
        return head[2];
    }

    static void signal(Comm world, int to, int tag) {
        try (ObjectWriteBuffer b = new ObjectWriteBuffer(0)) {
            world.send(b, to, tag);
        }
    }

    static void await(Comm world, int from, int tag) {
        try (ObjectReadBuffer b = new ObjectReadBuffer(0)) {
            world.recv(b, from, tag);
        }
    }
}
