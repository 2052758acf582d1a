package mpjdev.bench;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import mpjdev.Buffer;
import mpjdev.ReadBuffer;
import mpjdev.Type;
import mpjdev.WriteBuffer;

/**
 * One section of one type, written and read in every compared way. Each way has its own memory. The loops are
 * equal for all types, because Java cannot express them once.
 */
abstract class Sections {
    /** Names of mpjdev and the baselines, in the order of the loops. */
    static final String[] WAYS = {"ours", "region", "critical", "bulk", "arraycopy"};

    final int count;
    final WriteBuffer writer;
    final ReadBuffer reader;
    final ByteBuffer regionMemory;
    final ByteBuffer criticalMemory;
    final ByteBuffer bulkMemory;
    final long region;
    final long critical;

    Sections(int octets, int size) {
        count = octets / size;
        int capacity = Buffer.SECTION_OVERHEAD + (octets + 7) / 8 * 8;
        writer = new WriteBuffer(capacity);
        reader = new ReadBuffer(capacity);
        regionMemory = direct(octets);
        criticalMemory = direct(octets);
        bulkMemory = direct(octets);
        region = Baseline.address(regionMemory);
        critical = Baseline.address(criticalMemory);
    }

    /** Returns the loops that write the section, in the order of {@link #WAYS}. */
    abstract Contest.Loop[] writes();

    /** Returns the loops that read the section. */
    abstract Contest.Loop[] reads();

    /** Returns whether the last read section is the written one, and clears it. */
    abstract boolean arrived();

    /** Runs every loop once, so that reads have a message, and checks the results. */
    final Sections checked() throws Exception {
        for (Contest.Loop write : writes()) {
            if (write != null) {
                write.run(1);
            }
        }
        reader.load(writer.toByteArray());
        for (int way = 0; way < WAYS.length; way++) {
            Contest.Loop read = reads()[way];
            if (read == null) {
                continue;
            }
            read.run(1);
            if (!arrived()) {
                throw new AssertionError(WAYS[way] + " does not give back what was written");
            }
        }
        return this;
    }

    static Sections of(Type type, int octets) {
        switch (type) {
            case BYTE:
                return new ByteSections(octets);
            case CHAR:
                return new CharSections(octets);
            case SHORT:
                return new ShortSections(octets);
            case BOOLEAN:
                return new BooleanSections(octets);
            case INT:
                return new IntSections(octets);
            case LONG:
                return new LongSections(octets);
            case FLOAT:
                return new FloatSections(octets);
            case DOUBLE:
                return new DoubleSections(octets);
            default:
                throw new IllegalArgumentException("no primitive type: " + type);
        }
    }

    private static ByteBuffer direct(int octets) {
        return ByteBuffer.allocateDirect(octets).order(ByteOrder.nativeOrder());
    }
}
