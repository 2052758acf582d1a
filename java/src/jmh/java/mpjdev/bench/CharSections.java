package mpjdev.bench;

import java.nio.CharBuffer;
import java.util.Arrays;

/** One section of chars. */
final class CharSections extends Sections {
    private final char[] array = new char[count];
    private final char[] copy = new char[count];
    private final CharBuffer bulk = bulkMemory.asCharBuffer();

    CharSections(int octets) {
        super(octets, 2);
        for (int i = 0; i < count; i++) {
            array[i] = (char) i;
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
        Arrays.fill(copy, (char) 0);
        return same;
    }
}
