package mpjdev.examples;

import java.io.IOException;
import mpjdev.Buffer;
import mpjdev.Comm;
import mpjdev.ReadBuffer;
import mpjdev.WriteBuffer;

/** Counters of the messages of one rank. One thread at a time uses them. */
final class Traffic {
    /** Octets of the two headers of a message. */
    static final int HEADERS = 16;

    private static final int GATHER = 9;
    private static final int SENT = 0;
    private static final int OCTETS = 1;
    private static final int ONE = 2;
    private static final int TWO = 3;
    private static final int COUNTERS = 4;

    private final long[] counters = new long[Kind.values().length * COUNTERS];

    /** The purpose of a message. */
    enum Kind {
        ROWS("halo rows (write, read)"),
        COLUMNS("halo columns (strGather, strScatter)"),
        MAXIMUM("largest change, to all"),
        BLOCKS("blocks of the solution"),
        ROOMY("objects, roomy buffers"),
        TIGHT("objects, tight buffers");

        final String title;

        Kind(String title) {
            this.title = title;
        }
    }

    /** Counts a sent message of {@code octets} octets: headers and both payloads. */
    void sent(Kind kind, long octets) {
        add(kind, SENT, 1);
        add(kind, OCTETS, octets);
    }

    /** Counts a received message that was one physical message. */
    void arrivedAsOne(Kind kind) {
        add(kind, ONE, 1);
    }

    /** Counts a received message that was split. */
    void arrivedAsTwo(Kind kind) {
        add(kind, TWO, 1);
    }

    private void add(Kind kind, int counter, long amount) {
        counters[kind.ordinal() * COUNTERS + counter] += amount;
    }

    private long get(Kind kind, int counter) {
        return counters[kind.ordinal() * COUNTERS + counter];
    }

    /** Returns the number of received messages that were one physical message. */
    long asOne(Kind kind) {
        return get(kind, ONE);
    }

    /** Returns the number of received messages that were split. */
    long asTwo(Kind kind) {
        return get(kind, TWO);
    }

    /** Returns whether all sent messages have arrived. */
    boolean isComplete() {
        for (Kind kind : Kind.values()) {
            if (get(kind, SENT) != asOne(kind) + asTwo(kind)) {
                return false;
            }
        }
        return true;
    }

    void add(Traffic other) {
        for (int i = 0; i < counters.length; i++) {
            counters[i] += other.counters[i];
        }
    }

    /** Adds the counters of all ranks to {@code total}, in rank 0. Collective; blocks. */
    void collect(Comm world, Traffic total) throws IOException {
        int capacity = (int) Buffer.requiredCapacity(counters);
        try (WriteBuffer out = new WriteBuffer(capacity); ReadBuffer in = new ReadBuffer(capacity)) {
            if (world.id() > 0) {
                out.write(counters, 0, counters.length);
                world.send(out, 0, GATHER);
                return;
            }
            total.add(this);
            for (int rank = 1; rank < world.size(); rank++) {
                Traffic other = new Traffic();
                world.recv(in, rank, GATHER);
                in.read(other.counters, 0, other.counters.length);
                total.add(other);
            }
        }
    }

    Table table() {
        Table table = new Table("exchanged", "messages", "octets", "as one", "as two");
        long[] sum = new long[COUNTERS];
        for (Kind kind : Kind.values()) {
            long[] row = new long[COUNTERS];
            for (int counter = 0; counter < COUNTERS; counter++) {
                row[counter] = get(kind, counter);
                sum[counter] += row[counter];
            }
            table.row(kind.title, row);
        }
        table.row("all", sum);
        return table;
    }
}
