package mpi;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Defect X1 of MPJ Express: {@link MPI#Wtime} counts whole seconds. */
class X1Test {
    private static final int CHANGES = 5;

    @Test
    void shouldTellTimesLessThanASecondApart() {
        double shortest = Double.MAX_VALUE;
        double last = MPI.Wtime();
        for (int changes = 0; changes < CHANGES; ) {
            double now = MPI.Wtime();
            if (now != last) {
                shortest = Math.min(shortest, now - last);
                last = now;
                changes++;
            }
        }
        assertTrue(shortest > 0 && shortest < 1, "shortest difference: " + shortest);
    }
}
