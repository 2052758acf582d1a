/*
 * C program under an MPI: a contestant of mpjdev-bench, written as a typical C program uses MPI.
 *
 * Each rank connects to the Unix socket of its argument, states its rank and executes commands (protocol.rs). The
 * answer to "case octets times" has the nanoseconds and a second result. "end" ends the program. Between commands a
 * rank sleeps in a read, so that it does not disturb other contestants. With EXTRA the program is compared with ranks
 * over the same MPI. As they do, it initialises MPI_THREAD_MULTIPLE, and its messages have EXTRA more doubles.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WINDOW = 64, TAG = 1, TIMED_MAX = 1 << 16 };
/* Columns of the matrix, as in MpiTrips.java. */
enum { COLUMNS = 8 };
/* Limit of the octets of a window (protocol.rs). */
static const size_t WINDOW_OCTETS = (size_t)256 << 20;

static int rank, size;
/* Doubles that are added to each message for the headers of mpjdev. */
static int extra;
/* Two touched arrays of `room` octets, which only grow. */
static double *out, *in;
static size_t room;
/* The current derived type, with its case and octets. */
static MPI_Datatype type = MPI_DATATYPE_NULL;
static char type_case[16];
static size_t type_octets;
/* Keeps the compiler from removing the sums. */
static volatile double sink;
/* Timed trips, and their median multiplied by the number of all trips. */
static double trips[TIMED_MAX], at_median;

static void fail(const char *what) {
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void make_room(size_t octets) {
    if (octets <= room) {
        return;
    }
    free(out);
    free(in);
    out = aligned_alloc(4096, (octets + 4095) / 4096 * 4096);
    in = aligned_alloc(4096, (octets + 4095) / 4096 * 4096);
    if (!out || !in) {
        fail("no memory");
    }
    memset(out, 1, octets);
    memset(in, 1, octets);
    room = octets;
}

/* collectives.c */
int is_collective(const char *name);
void prepare_collective(size_t octets);
double run_collective(long times);

static void swap_with_random_predecessor(int *indexes, int i) {
    int other = (int)(random() % (i + 1));
    int index = indexes[i];
    indexes[i] = indexes[other];
    indexes[other] = index;
}

/* Every second double, the first column of a matrix, or all doubles in random order. */
static void make_type(const char *name, size_t octets) {
    int n = (int)(octets / sizeof(double));
    if (type != MPI_DATATYPE_NULL && type_octets == octets && !strcmp(type_case, name)) {
        return;
    }
    if (type != MPI_DATATYPE_NULL) {
        MPI_Type_free(&type);
    }
    if (!strcmp(name, "strided")) {
        MPI_Type_vector(n, 1, 2, MPI_DOUBLE, &type);
    } else if (!strcmp(name, "column")) {
        MPI_Type_vector(n, 1, COLUMNS, MPI_DOUBLE, &type);
    } else {
        int *indexes = malloc((size_t)n * sizeof(int));
        srandom(1);
        for (int i = 0; i < n; i++) {
            indexes[i] = i;
        }
        for (int i = n - 1; i > 0; i--) {
            swap_with_random_predecessor(indexes, i);
        }
        MPI_Type_create_indexed_block(n, 1, indexes, MPI_DOUBLE, &type);
        free(indexes);
    }
    MPI_Type_commit(&type);
    snprintf(type_case, sizeof type_case, "%s", name);
    type_octets = octets;
}

static int has_type(const char *name) {
    return !strcmp(name, "strided") || !strcmp(name, "column") || !strcmp(name, "random") || !strcmp(name, "indexed");
}

static void put(int count, MPI_Datatype of, int to) {
    MPI_Send(out, count, of, to, TAG, MPI_COMM_WORLD);
}

static void take(int count, MPI_Datatype of, int from) {
    MPI_Recv(in, count, of, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ping_pong(int count, MPI_Datatype of, long times) {
    for (long i = 0; i < times && rank < 2; i++) {
        if (rank == 0) {
            put(count, of, 1);
            take(count, of, 1);
        } else {
            take(count, of, 0);
            put(count, of, 0);
        }
    }
}

static int compare_trips(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Round trips, each timed by rank 0. */
static void timed(int count, long times) {
    if (rank != 0) {
        ping_pong(count, MPI_DOUBLE, times);
        return;
    }
    long step = (times + TIMED_MAX - 1) / TIMED_MAX, kept = 0;
    double begin = MPI_Wtime();
    for (long i = 0; i < times; i++) {
        ping_pong(count, MPI_DOUBLE, 1);
        double end = MPI_Wtime();
        if (i % step == 0) {
            trips[kept++] = end - begin;
        }
        begin = end;
    }
    qsort(trips, kept, sizeof *trips, compare_trips);
    at_median = (trips[(kept - 1) / 2] + trips[kept / 2]) / 2 * times;
}

static void rewrite(int count, long round) {
    for (int i = 0; i < count; i++) {
        out[i] = (double)(round + i);
    }
}

static void sum_up(int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += in[i];
    }
    sink = sum;
}

/* Round trips. The sender rewrites every element, and the receiver adds them up. */
static void touched(int count, long times) {
    for (long i = 0; i < times && rank < 2; i++) {
        if (rank == 0) {
            rewrite(count, i);
            put(count, MPI_DOUBLE, 1);
        }
        take(count, MPI_DOUBLE, 1 - rank);
        sum_up(count);
        if (rank == 1) {
            rewrite(count, i);
            put(count, MPI_DOUBLE, 0);
        }
    }
}

/* Messages of a window. */
static int window(size_t octets) {
    size_t fitting = WINDOW_OCTETS / octets;
    return fitting > WINDOW ? WINDOW : fitting ? (int)fitting : 1;
}

/* Windows of messages with different addresses, each followed by a short answer. */
static void rate(int count, int messages, long times) {
    MPI_Request requests[WINDOW];
    for (long i = 0; i < times && rank < 2; i++) {
        for (int k = 0; k < messages; k++) {
            if (rank == 0) {
                MPI_Isend(out + k * count, count, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD, requests + k);
            } else {
                MPI_Irecv(in + k * count, count, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, requests + k);
            }
        }
        MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
        if (rank == 0) {
            take(0, MPI_DOUBLE, 1);
        } else {
            put(0, MPI_DOUBLE, 0);
        }
    }
}

static void ring(int count, long times) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (long i = 0; i < times && size > 1; i++) {
        if (rank == 0) {
            put(count, MPI_DOUBLE, next);
            take(count, MPI_DOUBLE, before);
        } else {
            take(count, MPI_DOUBLE, before);
            put(count, MPI_DOUBLE, next);
        }
    }
}

static void run(const char *name, size_t octets, long times) {
    int count = (int)(octets / sizeof(double)) + extra;
    if (is_collective(name)) {
        at_median = run_collective(times) * times / 1e9;
    } else if (!strcmp(name, "arrays") || !strcmp(name, "direct") || !strcmp(name, "mpi") || !strcmp(name, "buffers")) {
        ping_pong(count, MPI_DOUBLE, times);
    } else if (!strcmp(name, "timed")) {
        timed(count, times);
    } else if (has_type(name)) {
        ping_pong(1, type, times);
    } else if (!strcmp(name, "sum") || !strcmp(name, "sum-direct")) {
        touched(count, times);
    } else if (!strcmp(name, "rate-arrays") || !strcmp(name, "rate-direct") || !strcmp(name, "rate-buffers")
               || !strcmp(name, "rate-requests") || !strcmp(name, "rate-mpi")) {
        rate(count, window(octets), times);
    } else if (!strcmp(name, "ring")) {
        ring(count, times);
    } else if (!strcmp(name, "alltoall")) {
        for (long i = 0; i < times; i++) {
            MPI_Alltoall(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, MPI_COMM_WORLD);
        }
    } else {
        fail("no such case");
    }
}

/* Prepares type and arrays of a case. */
static void prepare(const char *name, size_t octets) {
    size_t all = octets + extra * sizeof(double);
    if (is_collective(name)) {
        prepare_collective(octets);
    } else if (has_type(name)) {
        make_type(name, octets);
        make_room((!strcmp(name, "column") ? COLUMNS : 2) * octets);
    } else if (!strncmp(name, "rate", 4)) {
        make_room(window(octets) * all);
    } else if (!strcmp(name, "alltoall")) {
        make_room((size_t)size * all);
    } else {
        make_room(all + sizeof(double));
    }
}

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (strlen(path) >= sizeof address.sun_path) {
        fail("the path of the socket is too long");
    }
    strcpy(address.sun_path, path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) {
        fail("no connection");
    }
    return fd;
}

int main(int argc, char **argv) {
    char line[128], name[32];
    size_t octets;
    long times;
    if (argc < 3) {
        MPI_Init(&argc, &argv);
    } else {
        int level;
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
        extra = atoi(argv[2]);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2) {
        fail("usage: peer SOCKET [EXTRA]");
    }
    int fd = connect_to(argv[1]);
    FILE *commands = fdopen(fd, "r"), *answers = fdopen(dup(fd), "w");
    fprintf(answers, "%d\n", rank);
    fflush(answers);
    while (fgets(line, sizeof line, commands) && strcmp(line, "end\n")) {
        if (sscanf(line, "%31s %zu %ld", name, &octets, &times) != 3) {
            fail("an invalid command");
        }
        prepare(name, octets);
        MPI_Barrier(MPI_COMM_WORLD);
        run(name, octets, times / 8 + 1);
        at_median = 0;
        double begin = MPI_Wtime();
        run(name, octets, times);
        double end = MPI_Wtime();
        /* An answer takes a processor from ranks that are not done. */
        MPI_Barrier(MPI_COMM_WORLD);
        fprintf(answers, "%.0f %.0f\n", (end - begin) * 1e9, at_median * 1e9);
        fflush(answers);
    }
    MPI_Finalize();
    return 0;
}
