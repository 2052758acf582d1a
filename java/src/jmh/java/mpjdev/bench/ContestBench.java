package mpjdev.bench;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** What the benchmarks that compare ways by turns have in common: JMH's own score is the time of a round, and no result. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
public abstract class ContestBench {
    /** Set up by the subclass, before anything is measured. */
    Contest contest;

    /** Begins an iteration. */
    @Setup(Level.Iteration)
    public void forget() {
        contest.forget();
    }
}
