package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import farm.Farm;
import heat.Heat;
import java.util.List;
import kmeans.KMeans;
import mpjdev.Mpjrun.Job;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Output of the examples. */
@Timeout(180)
class ExamplesTest {
    /** Ranks in two directions, in one, and rectangles of different sizes. */
    @ParameterizedTest
    @CsvSource({"SHM,4,2 x 2", "SHM,7,7 x 1", "THREADS,6,3 x 2", "OPENMPI,2,2 x 1"})
    void shouldSpreadHeatAsOneRankDoes(World world, int ranks, String grid) throws Exception {
        assertEquals(List.of(grid + " ranks, 60 x 80 cells, 500 steps: heat 74704.768178, as computed by one rank"),
                world.run(ranks, Heat.class));
    }

    @ParameterizedTest
    @CsvSource({"SHM,2", "SHM,4", "THREADS,4", "OPENMPI,3"})
    void shouldFindAllPrimesWithAnyNumberOfWorkers(World world, int ranks) throws Exception {
        assertEquals(List.of("17984 primes below 200000, from 100 tasks at " + (ranks - 1) + " workers: right"),
                world.run(ranks, Farm.class));
    }

    @ParameterizedTest
    @CsvSource({"SHM,3", "TCP,4", "THREADS,4", "OPENMPI,2", "MPICH,3"})
    void shouldFindTheClustersThatOneRankFinds(World world, int ranks) throws Exception {
        List<String> lines = world.run(ranks, KMeans.class, "200000", "8");
        assertEquals(ranks + " ranks, 200000 points, 8 clusters, 53 steps: centres as computed by one rank",
                lines.get(0));
        assertEquals("step 10: 80 points have changed their cluster", lines.get(1));
    }

    @Test
    void shouldRefuseMoreClustersThanPoints() throws Exception {
        Job job = World.SHM.job(2).run(KMeans.class, "3", "4");
        assertEquals(1, job.status, job::toString);
        assertTrue(job.err.contains("KMeans takes a number of points and one of clusters"), job::toString);
    }

    @Test
    void shouldAskForAWorker() throws Exception {
        Job job = World.SHM.job(1).run(Farm.class);
        assertEquals(1, job.status, job::toString);
        assertEquals("Farm needs a master and a worker: two ranks or more", job.err.lines().findFirst().orElse(""));
    }
}
