package mpjdev.examples;

import java.io.Serializable;
import java.util.ArrayList;

/**
 * The token of the ring of objects, with a record of its visits.
 *
 * <p>It is a graph, not a tree: each visit knows its token, and the first and the last visit are reachable in
 * two ways. A copy that came out of a message must be such a graph again.
 */
final class Token implements Serializable {
    private static final long serialVersionUID = 1L;

    private final ArrayList<Visit> history = new ArrayList<>();
    private Visit first;
    private Visit last;

    /** One visit to one rank. */
    private static final class Visit implements Serializable {
        private static final long serialVersionUID = 1L;

        private final Token token;
        private final int rank;
        private final String note;
        private final long stamp;

        Visit(Token token, int rank, long before) {
            this.token = token;
            this.rank = rank;
            note = "visit " + token.history.size() + " was to rank " + rank;
            stamp = before * 31 + note.hashCode();
        }
    }

    /** Adds a visit. Its stamp depends on all earlier visits. */
    void visit(int rank) {
        last = new Visit(this, rank, stamp());
        history.add(last);
        if (first == null) {
            first = last;
        }
    }

    /** Returns a number that depends on all visits. */
    long stamp() {
        return last == null ? 0 : last.stamp;
    }

    int visits() {
        return history.size();
    }

    /** Returns whether all references have their original targets and the visits are the expected ones. */
    boolean isSound(int ranks) {
        Token expected = new Token();
        for (Visit visit : history) {
            expected.visit(expected.visits() % ranks);
            if (visit.token != this || visit.rank != expected.last.rank || visit.stamp != expected.stamp()) {
                return false;
            }
        }
        return history.isEmpty()
                || first == history.get(0) && last == history.get(history.size() - 1);
    }
}
