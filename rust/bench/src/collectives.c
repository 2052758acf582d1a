/* Collective calls of a C MPI: arguments are seconds a row, then rows as call:number. Rank 0 prints a line of
   row and microseconds for each: the mean over ranks of the median over calls. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VECTOR = 16 << 20, LEAST = 5, MOST = 1000000, FIRST = 10 };

static int rank, size;
static char *from, *to;
static int *counts;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* One call; n is a number of doubles for allreduce, and of octets of a rank otherwise. */
static void call(const char *name, int n) {
    MPI_Comm world = MPI_COMM_WORLD;
    if (!strcmp(name, "barrier")) MPI_Barrier(world);
    else if (!strcmp(name, "bcast")) MPI_Bcast(from, n, MPI_BYTE, 0, world);
    else if (!strcmp(name, "allreduce")) MPI_Allreduce(from, to, n, MPI_DOUBLE, MPI_SUM, world);
    else if (!strcmp(name, "alltoall")) MPI_Alltoall(from, n, MPI_BYTE, to, n, MPI_BYTE, world);
    else if (!strcmp(name, "allgather")) MPI_Allgather(from, n, MPI_BYTE, to, n, MPI_BYTE, world);
    else if (!strcmp(name, "gather")) MPI_Gather(from, n, MPI_BYTE, to, n, MPI_BYTE, 0, world);
    else if (!strcmp(name, "scatter")) MPI_Scatter(from, n, MPI_BYTE, to, n, MPI_BYTE, 0, world);
    else if (!strcmp(name, "scan")) MPI_Scan(from, to, n / 8, MPI_DOUBLE, MPI_SUM, world);
    else if (!strcmp(name, "reduce_scatter")) {
        for (int i = 0; i < size; i++) counts[i] = n / 8;
        MPI_Reduce_scatter(from, to, counts, MPI_DOUBLE, MPI_SUM, world);
    } else MPI_Abort(world, 2);
}

/* The number of calls that take this time. */
static long calls_in(double seconds, double nanos) {
    long times = seconds * 1e9 / nanos;
    times = times < LEAST ? LEAST : times > MOST ? MOST : times;
    MPI_Bcast(&times, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return times;
}

/* The time of one call with the barrier before it. */
static double warm_up(const char *name, int n, long times) {
    double begun = now();
    for (long i = 0; i < times; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        call(name, n);
    }
    return (now() - begun) / times;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double seconds = atof(argv[1]);
    from = calloc(VECTOR, 1);
    to = calloc(VECTOR, 1);
    counts = calloc(size, sizeof *counts);
    for (int row = 2; row < argc; row++) {
        char name[64] = "";
        int n = 0;
        sscanf(argv[row], "%63[^:]:%d", name, &n);
        double nanos = warm_up(name, n, FIRST);
        nanos = warm_up(name, n, calls_in(seconds / 2, nanos));
        long times = calls_in(seconds, nanos);
        double *took = malloc(times * sizeof *took), sum;
        for (long i = 0; i < times; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begun = now();
            call(name, n);
            took[i] = now() - begun;
        }
        qsort(took, times, sizeof *took, ascending);
        MPI_Reduce(&took[times / 2], &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        free(took);
        if (rank == 0) {
            printf("%s %.3f\n", argv[row], sum / size / 1000);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
