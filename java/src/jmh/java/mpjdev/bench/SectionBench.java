package mpjdev.bench;

import mpjdev.Type;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** Write and read of one section of primitives: array to message, message to array. */
public class SectionBench extends ContestBench {
    @Param({"DOUBLE", "LONG", "FLOAT", "INT", "SHORT", "CHAR", "BYTE", "BOOLEAN"})
    String type;

    /** Octets of elements: the first two are 1 and 16 doubles. */
    @Param({"8", "128", "1024", "65536", "1048576", "16777216"})
    int octets;

    @Param({"write", "read"})
    String direction;

    /** Nanoseconds for one section. */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Nanos extends Medians {
        /** {@code WriteBuffer.clear()} and {@code write}, {@code ReadBuffer.reset()} and {@code read}. */
        public double ours() {
            return median(0);
        }

        /** A bare native call of {@code GetDoubleArrayRegion} or {@code SetDoubleArrayRegion}. */
        public double region() {
            return median(1);
        }

        /** A bare native call with a critical pair around one {@code memcpy}. */
        public double critical() {
            return median(2);
        }

        /** Bulk put or get on a direct buffer in native order; not for booleans. */
        public double bulk() {
            return median(3);
        }

        /** {@code System.arraycopy}, from array to array. */
        public double arraycopy() {
            return median(4);
        }
    }

    @Setup(Level.Trial)
    public void open() throws Exception {
        Sections sections = Sections.of(Type.valueOf(type), octets).checked();
        contest = new Contest(direction.equals("write") ? sections.writes() : sections.reads());
    }

    @Benchmark
    public void section(Nanos nanos) throws Exception {
        nanos.of(contest);
        contest.round();
    }
}
