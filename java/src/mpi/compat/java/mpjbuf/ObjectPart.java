package mpjbuf;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import mpjdev.core.MessageFilter;
import mpjdev.core.ObjectStreams;

/** The stream of the objects of a buffer, written and then read. */
final class ObjectPart {
    private byte[] octets = {};
    private ByteArrayOutputStream written;
    private ObjectOutputStream out;
    private ObjectStreams.Reader in;

    /** Writes an object. */
    void write(Object object) throws BufferException {
        try {
            if (out == null) {
                written = new ByteArrayOutputStream();
                out = new ObjectOutputStream(written);
            }
            out.writeObject(object);
        } catch (IOException e) {
            throw new DynamicBufferException("an object cannot be serialised: " + e, e);
        }
    }

    /** Returns the stream so far. */
    byte[] octets() throws BufferException {
        try {
            if (out != null) {
                out.flush();
                octets = written.toByteArray();
            }
            return octets;
        } catch (IOException e) {
            throw new DynamicBufferException("an object cannot be serialised: " + e, e);
        }
    }

    /** Replaces the stream. */
    void set(byte[] stream) {
        octets = stream;
        out = null;
        in = null;
    }

    /** Returns to the first object. */
    void rewind() {
        in = null;
    }

    /** Reads the next object. */
    Object read() throws BufferException {
        try {
            if (in == null) {
                byte[] stream = octets();
                in = new ObjectStreams.Reader(new ByteArrayInputStream(stream), new MessageFilter(null, stream.length));
            }
            return in.next();
        } catch (IOException | ClassNotFoundException e) {
            throw new DynamicBufferException("an object cannot be deserialised: " + e, e);
        }
    }
}
