package mpjdev.tools;

import java.util.List;
import mpjdev.Comm;

/** Case of a measurement, as in {@code mpjdev-bench}. */
enum Case {
    ARRAYS("arrays", "array to array", 2, 8, 1 << 10, 64 << 10, 1 << 20, 16 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return new ArrayTrips(world, octets);
        }
    },
    DIRECT("direct", "array to array, direct", 2, 8, 1 << 10, 64 << 10, 1 << 20, 16 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return new DirectTrips(world, octets);
        }
    },
    MPI("mpi", "array to array, package mpi", 2, 8, 1 << 10, 64 << 10, 1 << 20, 16 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return MpiTrips.whole(world, octets);
        }
    },
    TIMED("timed", "array to array, mean", 2, 8, 64 << 10) {
        @Override
        Work work(Comm world, int octets) {
            return new DirectTrips.Timed(world, octets);
        }
    },
    BUFFERS("buffers", "buffer to buffer", 2, 8, 1 << 10, 64 << 10, 1 << 20, 16 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return new BufferTrips(world, octets);
        }
    },
    STRIDED("strided", "every second double", 2, 1 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return new ShapedTrips.Strided(world, octets);
        }
    },
    STRIDED_DIRECT("strided-direct", "every second double, direct", 2, 1 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return new ShapedTrips.StridedDirect(world, octets);
        }
    },
    RANDOM("random", "random doubles", 2, 1 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return new ShapedTrips.Random(world, octets);
        }
    },
    RANDOM_DIRECT("random-direct", "random doubles, direct", 2, 1 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return new ShapedTrips.RandomDirect(world, octets);
        }
    },
    SUM("sum", "rewritten and summed up", 2, 16 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return new ShapedTrips.Sum(world, octets);
        }
    },
    SUM_DIRECT("sum-direct", "rewritten and summed up, direct", 2, 16 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return new DirectTrips.Sum(world, octets);
        }
    },
    COLUMN("column", "column, package mpi", 2, 1 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return MpiTrips.column(world, octets);
        }
    },
    INDEXED("indexed", "random doubles, package mpi", 2, 1 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return MpiTrips.indexed(world, octets);
        }
    },
    OBJECTS_MPI("objects-mpi", "1000 objects, package mpi", 2, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new ObjectTrips.OfMpi(world);
        }
    },
    OBJECTS("objects", "1000 objects", 2, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new ObjectTrips(world);
        }
    },
    SERIAL("serial", "1000 objects in one JVM", 1, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new Serial(world);
        }
    },
    RATE_ARRAYS("rate-arrays", "window, array to array", Windows.PER_TIME, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new Windows.Arrays(world, octets);
        }
    },
    RATE_DIRECT("rate-direct", "window, direct", Windows.PER_TIME, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new Windows.Direct(world, octets);
        }
    },
    RATE_BUFFERS("rate-buffers", "window, buffer to buffer", Windows.PER_TIME, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new Windows.Buffers(world, octets);
        }
    },
    RATE_REQUESTS("rate-requests", "window, requests", Windows.PER_TIME, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new Windows.Requests(world, octets);
        }
    },
    RATE_MPI("rate-mpi", "window, package mpi", Windows.PER_TIME, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new Windows.Mpi(world, octets);
        }
    },
    BUSY("busy", "window, receiver computes", Windows.PER_TIME, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new Windows.Busy(world, octets);
        }
    },
    SEND_COMPUTE("send-compute", "sender computes after send", 1, 1 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return new BusyPeer.Sender(world, octets);
        }
    },
    RECV_COMPUTE("recv-compute", "receiver computes after irecv", 1, 1 << 10) {
        @Override
        Work work(Comm world, int octets) {
            return new BusyPeer.Receiver(world, octets);
        }
    },
    RING("ring", "ring, one hop", Rounds.PER_TIME, 8, 1 << 10) {
        @Override
        Work work(Comm world, int octets) {
            return new Rounds.Ring(world, octets);
        }
    },
    ALLTOALL("alltoall", "all to all", 1, 8, 1 << 10, 64 << 10) {
        @Override
        Work work(Comm world, int octets) {
            return new Rounds.AllToAll(world, octets);
        }
    },
    MPI_BARRIER("mpi-barrier", "Barrier", 1, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new CollectiveWork(this, world, octets);
        }
    },
    MPI_BCAST("mpi-bcast", "Bcast", 1, 8, 64 << 10, 1 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return new CollectiveWork(this, world, octets);
        }
    },
    MPI_ALLREDUCE("mpi-allreduce", "Allreduce", 1, 8, 1 << 10, 64 << 10, 8 << 20) {
        @Override
        Work work(Comm world, int octets) {
            return new CollectiveWork(this, world, octets);
        }
    },
    MPI_ALLREDUCE_USER("mpi-allreduce-user", "Allreduce by a user function", 1, 8000) {
        @Override
        Work work(Comm world, int octets) {
            return new CollectiveWork(this, world, octets);
        }
    },
    MPI_ALLREDUCE_GARBAGE("mpi-allreduce-garbage", "garbage of Allreduce", 1, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new CollectiveWork.Garbage(this, world, octets);
        }
    },
    MPI_REDUCE("mpi-reduce", "Reduce", 1, 1 << 10, 256 << 10) {
        @Override
        Work work(Comm world, int octets) {
            return new CollectiveWork(this, world, octets);
        }
    },
    MPI_REDUCE_SCATTER("mpi-reduce-scatter", "Reduce_scatter", 1, 1 << 10, 256 << 10) {
        @Override
        Work work(Comm world, int octets) {
            return new CollectiveWork(this, world, octets);
        }
    },
    MPI_SCAN("mpi-scan", "Scan", 1, 1 << 10, 256 << 10) {
        @Override
        Work work(Comm world, int octets) {
            return new CollectiveWork(this, world, octets);
        }
    },
    MPI_ALLTOALL("mpi-alltoall", "Alltoall", 1, 8, 4 << 10, 256 << 10) {
        @Override
        Work work(Comm world, int octets) {
            return new CollectiveWork(this, world, octets);
        }
    },
    MPI_ALLGATHER("mpi-allgather", "Allgather", 1, 1 << 10, 256 << 10) {
        @Override
        Work work(Comm world, int octets) {
            return new CollectiveWork(this, world, octets);
        }
    },
    MPI_GATHER("mpi-gather", "Gather", 1, 1 << 10, 256 << 10) {
        @Override
        Work work(Comm world, int octets) {
            return new CollectiveWork(this, world, octets);
        }
    },
    MPI_SCATTER("mpi-scatter", "Scatter", 1, 1 << 10, 256 << 10) {
        @Override
        Work work(Comm world, int octets) {
            return new CollectiveWork(this, world, octets);
        }
    },
    GARBAGE("garbage", "garbage", 1, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new Garbage(new ArrayTrips(world, octets));
        }
    },
    GARBAGE_MPI("garbage-mpi", "garbage, package mpi", 1, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new Garbage(MpiTrips.whole(world, octets));
        }
    },
    GARBAGE_DIRECT("garbage-direct", "garbage, direct", 1, 8) {
        @Override
        Work work(Comm world, int octets) {
            return new Garbage(new DirectTrips(world, octets));
        }
    };

    /** Word of the case in a command. */
    final String word;
    /** Name in reports. */
    final String title;
    /** Default sizes. */
    final List<Integer> sizes;

    private final int perTime;

    Case(String word, String title, int perTime, Integer... sizes) {
        this.word = word;
        this.title = title;
        this.perTime = perTime;
        this.sizes = List.of(sizes);
    }

    /** Work of one rank with messages of this length. */
    abstract Work work(Comm world, int octets);

    /** Number of reported units of one repetition: one-way trips, messages or hops. */
    int perTime(int octets, int ranks) {
        return switch (perTime) {
            case Windows.PER_TIME -> Windows.window(octets);
            case Rounds.PER_TIME -> ranks;
            default -> perTime;
        };
    }

    /** The case of a word. */
    static Case of(String word) {
        for (Case c : values()) {
            if (c.word.equals(word)) {
                return c;
            }
        }
        throw new IllegalArgumentException(word + " is not a case; --help lists the cases");
    }
}
