/*
 * Collective calls of the C program (peer.c), each timed at each rank.
 *
 * Before each call the ranks meet in a barrier, which is not timed. The result of a rank is the median over its calls.
 * Java does the same (CollectiveCalls.java). `octets` are those of a rank; of Alltoall, those of a pair.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIMED_MAX = 1 << 16, ROOT = 0 };

enum call { BARRIER, BCAST, ALLREDUCE, REDUCE, REDUCE_SCATTER, SCAN, ALLTOALL, ALLGATHER, GATHER, SCATTER, CALLS };

static const char *const NAMES[CALLS] = {"mpi-barrier", "mpi-bcast", "mpi-allreduce", "mpi-reduce", "mpi-reduce-scatter",
                                         "mpi-scan", "mpi-alltoall", "mpi-allgather", "mpi-gather", "mpi-scatter"};

static enum call current = CALLS;
/* Doubles of a rank; of ALLTOALL, of a pair. */
static int count;
/* Arrays of `count` doubles for each rank, which only grow. */
static double *from, *to;
static size_t room;
static int *counts;
static double nanos[TIMED_MAX];

int is_collective(const char *name) {
    for (int i = 0; i < CALLS; i++) {
        if (!strcmp(NAMES[i], name)) {
            current = i;
            return 1;
        }
    }
    return 0;
}

static double *grown(double *array, size_t doubles) {
    free(array);
    array = aligned_alloc(4096, (doubles * sizeof(double) + 4095) / 4096 * 4096);
    if (!array) {
        fprintf(stderr, "no memory for %zu doubles\n", doubles);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (size_t i = 0; i < doubles; i++) {
        array[i] = 1;
    }
    return array;
}

/* Prepares the arrays of the call that is_collective() has found. */
void prepare_collective(size_t octets) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    count = (int)(octets / sizeof(double));
    /* Calls with one array of all ranks; the other one is as long. */
    int is_of_all = current >= ALLTOALL || current == REDUCE_SCATTER;
    size_t doubles = (size_t)count * (is_of_all ? size : 1) + 1;
    if (doubles > room) {
        from = grown(from, doubles);
        to = grown(to, doubles);
        room = doubles;
    }
    counts = realloc(counts, (size_t)size * sizeof *counts);
    for (int i = 0; i < size; i++) {
        counts[i] = count;
    }
}

static void call(void) {
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype type = MPI_DOUBLE;
    switch (current) {
    case BARRIER:
        MPI_Barrier(world);
        break;
    case BCAST:
        MPI_Bcast(from, count, type, ROOT, world);
        break;
    case ALLREDUCE:
        MPI_Allreduce(from, to, count, type, MPI_SUM, world);
        break;
    case REDUCE:
        MPI_Reduce(from, to, count, type, MPI_SUM, ROOT, world);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter(from, to, counts, type, MPI_SUM, world);
        break;
    case SCAN:
        MPI_Scan(from, to, count, type, MPI_SUM, world);
        break;
    case ALLTOALL:
        MPI_Alltoall(from, count, type, to, count, type, world);
        break;
    case ALLGATHER:
        MPI_Allgather(from, count, type, to, count, type, world);
        break;
    case GATHER:
        MPI_Gather(from, count, type, to, count, type, ROOT, world);
        break;
    case SCATTER:
        MPI_Scatter(from, count, type, to, count, type, ROOT, world);
        break;
    case CALLS:
        break;
    }
}

/* The clock of System.nanoTime. */
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int compare_nanos(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* The median of the nanoseconds of a call. */
double run_collective(long times) {
    long step = (times + TIMED_MAX - 1) / TIMED_MAX, kept = 0;
    for (long i = 0; i < times; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = now();
        call();
        double end = now();
        if (i % step == 0) {
            nanos[kept++] = end - begin;
        }
    }
    qsort(nanos, kept, sizeof *nanos, compare_nanos);
    return kept == 0 ? 0 : (nanos[(kept - 1) / 2] + nanos[kept / 2]) / 2;
}

/*
 * Stands before the function of UCX, through which an MPICH over UCX polls. With the variable a poll that finds nothing
 * yields the processor: MPICH 4.0 has no call that does, and no other rank of an oversubscribed machine would run.
 */
unsigned ucp_worker_progress(void *worker) {
    static unsigned (*real)(void *);
    static int yields;
    if (!real) {
        real = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
        yields = getenv("MPJDEV_BENCH_YIELD") != NULL;
    }
    unsigned found = real(worker);
    if (found == 0 && yields) {
        sched_yield();
    }
    return found;
}
