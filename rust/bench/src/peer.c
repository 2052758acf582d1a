/*
 * The C program that mpjdev is measured against: what somebody would write who uses MPI from C.
 *
 * Each rank connects to the socket that its argument names, says its rank and then follows orders, as all contestants do
 * (order.rs): "case octets times" is answered with the nanoseconds that it took and a second result, "end" ends it.
 * Between orders a rank sleeps in a read, so that nobody else is disturbed by it. With EXTRA it is for comparison with ranks over the same MPI: as they do,
 * it asks for MPI_THREAD_MULTIPLE, and sends so many doubles more.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WINDOW = 64, TAG = 1, TIMED_MAX = 1 << 16 };
/* Octets of a window's messages at most (order.rs). */
static const size_t WINDOW_OCTETS = (size_t)256 << 20;

static int rank, size;
/* Doubles that stand for the headers of our messages, where ours go over the same MPI: added to each message. */
static int extra;
/* Two arrays of so many octets, touched; they only grow. */
static double *out, *in;
static size_t room;
/* The derived type that is in use, and what it describes. */
static MPI_Datatype type = MPI_DATATYPE_NULL;
static char type_case[16];
static size_t type_octets;
/* Keeps sums from being left out. */
static volatile double sink;
/* Trips that were timed, at most TIMED_MAX, and the time that all would take at their median. */
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

static void swap_with_one_before(int *places, int i, uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    int other = (int)((*state >> 33) % (uint64_t)(i + 1));
    int kept = places[i];
    places[i] = places[other];
    places[other] = kept;
}

/* Every second double, or all of them in random order. */
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
    } else {
        int *places = malloc((size_t)n * sizeof(int));
        uint64_t state = 1;
        for (int i = 0; i < n; i++) {
            places[i] = i;
        }
        for (int i = n - 1; i > 0; i--) {
            swap_with_one_before(places, i, &state);
        }
        MPI_Type_create_indexed_block(n, 1, places, MPI_DOUBLE, &type);
        free(places);
    }
    MPI_Type_commit(&type);
    snprintf(type_case, sizeof type_case, "%s", name);
    type_octets = octets;
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

/* There and back, each trip timed by the first rank. */
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

/* Whoever sends rewrites every element before, whoever receives adds them all up. */
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

/* So many messages in a row, each from and to a place of its own, then a short answer. */
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
    if (!strcmp(name, "arrays") || !strcmp(name, "direct") || !strcmp(name, "buffers")) {
        ping_pong(count, MPI_DOUBLE, times);
    } else if (!strcmp(name, "timed")) {
        timed(count, times);
    } else if (!strcmp(name, "strided") || !strcmp(name, "random")) {
        ping_pong(1, type, times);
    } else if (!strcmp(name, "sum") || !strcmp(name, "sum-direct")) {
        touched(count, times);
    } else if (!strcmp(name, "rate-arrays") || !strcmp(name, "rate-direct") || !strcmp(name, "rate-buffers")) {
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

/* What a case needs, for all octets that it touches. */
static void prepare(const char *name, size_t octets) {
    size_t all = octets + extra * sizeof(double);
    if (!strcmp(name, "strided") || !strcmp(name, "random")) {
        make_type(name, octets);
        make_room(2 * octets);
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
    char line[128], name[16];
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
    FILE *orders = fdopen(fd, "r"), *answers = fdopen(dup(fd), "w");
    fprintf(answers, "%d\n", rank);
    fflush(answers);
    while (fgets(line, sizeof line, orders) && strcmp(line, "end\n")) {
        if (sscanf(line, "%15s %zu %ld", name, &octets, &times) != 3) {
            fail("an order that makes no sense");
        }
        prepare(name, octets);
        MPI_Barrier(MPI_COMM_WORLD);
        run(name, octets, times / 8 + 1);
        at_median = 0;
        double begin = MPI_Wtime();
        run(name, octets, times);
        double end = MPI_Wtime();
        fprintf(answers, "%.0f %.0f\n", (end - begin) * 1e9, at_median * 1e9);
        fflush(answers);
    }
    MPI_Finalize();
    return 0;
}
