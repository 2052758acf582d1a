package mpjdev.examples;

import java.io.Serializable;
import java.util.ArrayList;

/**
 * What goes round the ring of objects: it remembers where it was.
 *
 * <p>It is a graph, not a tree: each visit knows its token, and the first and the last visit are reachable in two ways.
 * A copy that came out of a message must be such a graph again.
 */
final class Token implements Serializable {
    private static final long serialVersionUID = 1L;

    private final ArrayList<Visit> history = new ArrayList<>();
    private Visit first;
    private Visit last;

    /** One stay with one rank. */
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

    /** Adds a visit, whose stamp depends on all before it. */
    void visit(int rank) {
        last = new Visit(this, rank, stamp());
        history.add(last);
        if (first == null) {
            first = last;
        }
    }

    /** A number that depends on the whole history. */
    long stamp() {
        return last == null ? 0 : last.stamp;
    }

    int visits() {
        return history.size();
    }

    /** Whether every reference is to where it was before the journey, and the history is what it must be. */
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
