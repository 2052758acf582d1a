package mpjdev.bench;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * Base of the benchmarks that compare ways by turns. The score of JMH is the time of a round and no result.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
public abstract class ContestBench {
    /** The contest. The subclass sets it before the measurement. */
    Contest contest;

    /** Begins an iteration. */
    @Setup(Level.Iteration)
    public void forget() {
        contest.forget();
    }
}
