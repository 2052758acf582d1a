package mpjdev.bench;

/**
 * Base of the classes that pass the results of a contest to JMH. Each public method of a subclass is one
 * result.
 */
public abstract class Medians {
    private Contest contest;

    final void of(Contest contest) {
        this.contest = contest;
    }

    final double median(int way) {
        return contest == null ? 0 : contest.median(way);
    }

    final double worst(int way) {
        return contest == null ? 0 : contest.worst(way);
    }
}
