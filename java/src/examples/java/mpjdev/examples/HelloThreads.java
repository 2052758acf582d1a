package mpjdev.examples;

import mpjdev.Comm;

/** The same program with ranks that are threads of one JVM, which needs no launcher. */
public final class HelloThreads {
    private HelloThreads() {}

    /**
     * Runs {@link Hello} with two ranks.
     *
     * @param args passed on
     */
    public static void main(String[] args) throws Exception {
        Comm.runThreads(2, world -> Hello.main(args));
    }
}
