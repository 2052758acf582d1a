package mpjdev.core;

/** The function of a reduction, which native code calls. Internal. */
public abstract class Combiner {
    /**
     * Combines the vectors in the two arrays of {@link Native#reduceWith}. The result replaces the second
     * one. Called by the thread that is in the reduction. What it throws ends the reduction.
     */
    protected abstract void combine();
}
