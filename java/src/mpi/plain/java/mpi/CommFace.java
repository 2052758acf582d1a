package mpi;

/** A communicator. In {@code mpj-compat.jar} it also moves messages of buffers. */
abstract class CommFace extends BufferedSends {
    CommFace(long handle) {
        super(handle);
    }
}
