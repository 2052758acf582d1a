package mpjdev;

/** A rank that joins a job although the system has no descriptors or memory left. */
final class JoinInShortage {
    private JoinInShortage() {}

    /** Joins, passes a barrier and finishes. If the join fails, prints the reason and ends the JVM. */
    static void run(String[] args) {
        try {
            Comm.init(args);
        } catch (IllegalStateException e) {
            System.out.println(e.getMessage());
            System.out.flush();
            Runtime.getRuntime().halt(0);
        }
        Comm.WORLD.barrier();
        Comm.finish();
    }
}
