package mpjdev.bench;

import java.nio.IntBuffer;
import java.util.Arrays;

/** One section of ints. */
final class IntSections extends Sections {
    private final int[] array = new int[count];
    private final int[] copy = new int[count];
    private final IntBuffer bulk = bulkMemory.asIntBuffer();

    IntSections(int octets) {
        super(octets, 4);
        for (int i = 0; i < count; i++) {
            array[i] = i * 0x9e3779b9;
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
