package mpjdev.tools;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import mpjdev.Comm;

/** Serialisation and deserialisation of the objects by rank 0, without messages. */
final class Serial extends Work {
    private final Object[] objects = ObjectTrips.objects();
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

    Serial(Comm world) {
        super(world);
    }

    @Override
    void run(long times) throws Exception {
        Object[] copies = new Object[objects.length];
        for (long i = 0; i < times && me == 0; i++) {
            bytes.reset();
            try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
                for (Object object : objects) {
                    out.writeObject(object);
                }
            }
            try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
                for (int k = 0; k < copies.length; k++) {
                    copies[k] = in.readObject();
                }
            }
        }
    }
}
