package mpjdev.bench;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import mpjdev.Buffer;
import mpjdev.ObjectReadBuffer;
import mpjdev.ObjectWriteBuffer;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** A section of 1000 objects, compared with object streams on a byte array. */
public class ObjectBench extends ContestBench {
    private static final int COUNT = 1000;

    @Param({"small", "strings", "doubles"})
    String kind;

    @Param({"write", "read"})
    String direction;

    /** Two doubles, an int and a short text. */
    private static final class Small implements Serializable {
        private static final long serialVersionUID = 1;
        final double x;
        final double y;
        final int number;
        final String name;

        Small(int number) {
            this.number = number;
            x = number / 3.0;
            y = -x;
            name = "name " + number;
        }
    }

    /** Nanoseconds for one section. */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Nanos extends Medians {
        /** {@code clear()} and {@code write}, {@code reset()} and {@code read} of an object buffer. */
        public double ours() {
            return median(0);
        }

        /** A new object stream on a byte array of sufficient size, and one call for each object. */
        public double plain() {
            return median(1);
        }
    }

    @Setup(Level.Trial)
    public void open() throws Exception {
        Object[] objects = objects();
        ObjectWriteBuffer writer = new ObjectWriteBuffer(Buffer.SECTION_OVERHEAD);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        Contest.Loop ours = times -> {
            for (int i = 0; i < times && Contest.going; i++) {
                writer.clear();
                writer.write(objects, 0, COUNT);
            }
        };
        Contest.Loop plain = times -> {
            for (int i = 0; i < times && Contest.going; i++) {
                bytes.reset();
                try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
                    for (Object object : objects) {
                        out.writeObject(object);
                    }
                }
            }
        };
        ours.run(1);
        plain.run(1);
        contest = direction.equals("write") ? new Contest(ours, plain)
                : readers(writer.toByteArray(), bytes.toByteArray());
    }

    private static Contest readers(byte[] message, byte[] stream) throws Exception {
        ObjectReadBuffer reader = new ObjectReadBuffer(Buffer.SECTION_OVERHEAD);
        reader.load(message);
        Object[] copy = new Object[COUNT];
        return new Contest(
                times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        reader.reset();
                        reader.read(copy, 0, COUNT);
                    }
                },
                times -> {
                    for (int i = 0; i < times && Contest.going; i++) {
                        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(stream))) {
                            for (int k = 0; k < COUNT; k++) {
                                copy[k] = in.readObject();
                            }
                        }
                    }
                });
    }

    private Object[] objects() {
        Object[] objects = new Object[COUNT];
        for (int i = 0; i < COUNT; i++) {
            switch (kind) {
                case "small":
                    objects[i] = new Small(i);
                    break;
                case "strings":
                    objects[i] = "text number " + i;
                    break;
                default:
                    objects[i] = i + 0.5;
                    break;
            }
        }
        return objects;
    }

    @Benchmark
    public void objects(Nanos nanos) throws Exception {
        nanos.of(contest);
        contest.round();
    }
}
