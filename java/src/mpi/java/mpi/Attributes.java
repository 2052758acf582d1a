package mpi;

import java.util.concurrent.ConcurrentHashMap;

/** The attributes of a communicator that its program has set. */
final class Attributes {
    private final ConcurrentHashMap<Integer, Object> values;

    Attributes() {
        values = new ConcurrentHashMap<>();
    }

    /** Copies attributes. */
    Attributes(Attributes other) {
        values = new ConcurrentHashMap<>(other.values);
    }

    Object get(int key) {
        Object value = values.get(key);
        if (value == null) {
            throw new MPIException(MPI.ERR_ARG, "the communicator has no attribute " + key, null);
        }
        return value;
    }

    void put(int key, Object value) {
        if (key <= MPI.WTIME_IS_GLOBAL) {
            String text = "the key " + key + " is not above " + MPI.WTIME_IS_GLOBAL + ", the last of this package";
            throw new MPIException(MPI.ERR_ARG, text, null);
        }
        values.put(key, Failures.present(value, "the value"));
    }

    void delete(int key) {
        get(key);
        values.remove(key);
    }
}
