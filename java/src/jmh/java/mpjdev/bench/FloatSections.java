package mpjdev.bench;

import java.nio.FloatBuffer;
import java.util.Arrays;

/** One section of floats. */
final class FloatSections extends Sections {
    private final float[] array = new float[count];
    private final float[] copy = new float[count];
    private final FloatBuffer bulk = bulkMemory.asFloatBuffer();

    FloatSections(int octets) {
        super(octets, 4);
        for (int i = 0; i < count; i++) {
            array[i] = i + 0.5f;
        }
    }

    @Override
    Contest.Loop[] writes() {
        return new Contest.Loop[] {
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    writer.clear();
                    writer.write(array, 0, count);
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    Baseline.regionOut(array, count, region);
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    Baseline.criticalOut(array, count, critical);
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    bulk.put(0, array, 0, count);
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    System.arraycopy(array, 0, copy, 0, count);
                }
            },
        };
    }

    @Override
    Contest.Loop[] reads() {
        return new Contest.Loop[] {
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    reader.reset();
                    reader.read(copy, 0, count);
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    Baseline.regionIn(copy, count, region);
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    Baseline.criticalIn(copy, count, critical);
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    bulk.get(0, copy, 0, count);
                }
            },
            times -> {
                for (int i = 0; i < times && Contest.going; i++) {
                    System.arraycopy(array, 0, copy, 0, count);
                }
            },
        };
    }

    @Override
    boolean arrived() {
        boolean same = Arrays.equals(array, copy);
        Arrays.fill(copy, 0);
        return same;
    }
}
