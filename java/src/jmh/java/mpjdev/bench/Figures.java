package mpjdev.bench;

import java.util.List;
import java.util.Map;

/** The figures that mpjdev has to reach: all of them, and only here. */
final class Figures {
    /** What a row is held against. */
    enum Kind {
        /** The time of ours is at most so many times that of the other. */
        TIME,
        /** The bandwidth of ours is at least so many times that of the other. */
        BANDWIDTH,
        /** Nanoseconds, without comparison. */
        NANOS
    }

    /** A figure for all rows of a benchmark with some parameters. */
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

    /** The first rule that fits a row is the row's. */
    static final List<Rule> RULES = List.of(
            // Small sections of any type: what a native call costs.
            time(1.8, "region", "SectionBench.section", "octets=8"),
            time(1.8, "region", "SectionBench.section", "octets=128"),
            // Large ones: what copying costs.
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
            // Where every processor is taken a wait must cost what a hand-over does, and not slices of the scheduler, 200 x that.
            time(4.0, "queue", "CrowdedBench.pingPong", "octets=8"));

    /** Buffer to buffer, the slowest size against the fastest one from {@link #FLAT_FROM} octets on. */
    static final double FLAT = 1.5;
    static final int FLAT_FROM = 65536;

    /** Octets of garbage per operation: less than any object has, more than the trace that JMH's own threads leave. */
    static final double GARBAGE = 1;

    /** What an operation makes on purpose: so many times what a benchmark of nothing else leaves behind. */
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

    /** By benchmark. All others make nothing. */
    static final Map<String, Aside> ASIDE = Map.of(
            "GarbageBench.sendRecv", new Aside("a Status", "GarbageBench.status", 1),
            "GarbageBench.exchange", new Aside("two Statuses", "GarbageBench.status", 2),
            "GarbageBench.isendIrecv", new Aside("two Requests", "GarbageBench.requests", 1));

    /** Two measurements of one and the same thing differ by so much: a row that misses by less is said to be level. */
    static final double SPREAD = 0.02;

    /**
     * A collection may be delayed by one critical copy of 256 KiB. That copy is far shorter than collections differ from one
     * another, so this part of a collection's own time is allowed on top.
     */
    static final double COLLECTION_SPREAD = 0.25;

    private Figures() {}

    private static Rule time(double bound, String against, String benchmark, String... params) {
        return new Rule(Kind.TIME, bound, "ours", against, benchmark, params);
    }

    private static Rule bandwidth(double bound, String against, String benchmark, String... params) {
        return new Rule(Kind.BANDWIDTH, bound, "ours", against, benchmark, params);
    }

    /** The rule for one result of a benchmark; null when there is none. */
    static Rule of(Measured measured, String metric) {
        for (Rule rule : RULES) {
            if (rule.benchmark.equals(measured.benchmark) && rule.metric.equals(metric) && measured.matches(rule.params)) {
                return rule;
            }
        }
        return null;
    }
}
