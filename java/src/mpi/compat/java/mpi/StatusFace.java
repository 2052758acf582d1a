package mpi;

/** The fields of a {@link Status}. */
abstract class StatusFace extends mpjdev.Status {
    /** Takes note of the type of the elements. */
    final void setElement(int element) {
        type = mpjbuf.Type.getType(element);
    }
}
