package mpjdev.bench;

import java.util.Arrays;

/** One section of booleans. */
final class BooleanSections extends Sections {
    private final boolean[] array = new boolean[count];
    private final boolean[] copy = new boolean[count];

    BooleanSections(int octets) {
        super(octets, 1);
        for (int i = 0; i < count; i++) {
            array[i] = (i * 7 & 4) != 0;
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
            null,
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
            null,
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
        Arrays.fill(copy, false);
        return same;
    }
}
