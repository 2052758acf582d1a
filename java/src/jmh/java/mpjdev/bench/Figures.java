package mpjdev.bench;

import java.util.List;
import java.util.Map;

/** All figures that mpjdev must reach. */
final class Figures {
    /** The rule for a row. */
    enum Kind {
        /** The time of mpjdev is at most {@code factor} times that of the baseline. */
        TIME,
        /** The bandwidth of mpjdev is at least {@code factor} times that of the baseline. */
        BANDWIDTH,
        /** The time is at most {@code factor} nanoseconds, without a baseline. */
        NANOS
    }

    /** A rule for all rows of a benchmark with the given parameters. */
    static final class Rule {
        final String benchmark;
        final String[] params;
        final String metric;
        final String against;
        final Kind kind;
        final double bound;

        private Rule(Kind kind, double bound, String metric, String against, String benchmark, String... params) {
            this.benchmark = benchmark;
            this.params = params;
            this.metric = metric;
            this.against = against;
            this.kind = kind;
            this.bound = bound;
        }

        @Override
        public String toString() {
            switch (kind) {
                case TIME:
                    return "at most " + bound + " x " + against;
                case BANDWIDTH:
                    return "at least " + bound + " x " + against;
                default:
                    return "at most " + Report.time(bound);
            }
        }
    }

    /** All rules. The first one that fits a row applies. */
    static final List<Rule> RULES = List.of(
            // Small sections of any type: the cost of a native call.
            time(1.8, "region", "SectionBench.section", "octets=8"),
            time(1.8, "region", "SectionBench.section", "octets=128"),
            // Large sections: the cost of the copy.
            bandwidth(1.0, "arraycopy", "SectionBench.section", "octets=65536"),
            bandwidth(0.95, "arraycopy", "SectionBench.section", "octets=1048576"),
            bandwidth(0.85, "arraycopy", "SectionBench.section", "octets=16777216"),
            bandwidth(0.5, "nativeOrder", "ForeignBench.foreign", "octets=65536", "type=DOUBLE"),
            time(1.25, "loop", "GatherBench.indexed", "octets=65536"),
            time(1.25, "loop", "GatherBench.indexed", "octets=1048576"),
            time(0.8, "loop", "StridedBench.strided", "shape=rows"),
            time(1.0, "loop", "StridedBench.strided", "shape=second"),
            time(1.1, "plain", "ObjectBench.objects", "kind=small"),
            new Rule(Kind.NANOS, 500, "ours", null, "LocalBench.pingPong", "octets=8"),
            new Rule(Kind.NANOS, 500, "buffer", null, "LocalBench.pingPong", "octets=8"),
            // On busy processors a wait must cost a hand-over and no time slices of the scheduler, which are
            // 200 times as long.
            time(4.0, "queue", "CrowdedBench.pingPong", "octets=8"));

    /** Buffer to buffer, the slowest size against the fastest one from {@link #FLAT_FROM} octets on. */
    static final double FLAT = 1.5;
    static final int FLAT_FROM = 65536;

    /** Octets of garbage per operation: less than any object, more than the threads of JMH leave. */
    static final double GARBAGE = 1;

    /**
     * Intended garbage of an operation, as a multiple of that of a benchmark that makes only this garbage.
     */
    static final class Aside {
        final String name;
        final String benchmark;
        final int times;

        private Aside(String name, String benchmark, int times) {
            this.name = name;
            this.benchmark = benchmark;
            this.times = times;
        }
    }

    /** Intended garbage by benchmark. All others make none. */
    static final Map<String, Aside> ASIDE = Map.of(
            "GarbageBench.sendRecv", new Aside("a Status", "GarbageBench.status", 1),
            "GarbageBench.exchange", new Aside("two Statuses", "GarbageBench.status", 2),
            "GarbageBench.isendIrecv", new Aside("two Requests", "GarbageBench.requests", 1));

    /**
     * Difference of two measurements of the same thing. A row that misses by less is level with its figure.
     */
    static final double SPREAD = 0.02;

    /**
     * One critical copy of 256 KiB may delay a collection. The copy is far shorter than the differences
     * between collections, so this part of the time of a collection is added.
     */
    static final double COLLECTION_SPREAD = 0.25;

    private Figures() {}

    private static Rule time(double bound, String against, String benchmark, String... params) {
        return new Rule(Kind.TIME, bound, "ours", against, benchmark, params);
    }

    private static Rule bandwidth(double bound, String against, String benchmark, String... params) {
        return new Rule(Kind.BANDWIDTH, bound, "ours", against, benchmark, params);
    }

    /** Returns the rule for one result of a benchmark, or null. */
    static Rule of(Measured measured, String metric) {
        for (Rule rule : RULES) {
            if (rule.benchmark.equals(measured.benchmark) && rule.metric.equals(metric) && measured.matches(rule.params)) {
                return rule;
            }
        }
        return null;
    }
}
