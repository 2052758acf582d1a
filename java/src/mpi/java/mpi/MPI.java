package mpi;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import mpjdev.core.Native;
import mpjdev.core.ProcessEnd;
import mpjdev.core.RankLoader;
import mpjdev.core.RankThreads;

/** The environment of a rank, and the constants of the package with their values in MPJ Express. */
public final class MPI {
    /** No value: a count without whole items, an index of no request. */
    public static final int UNDEFINED = -1;
    /** Source of a receive: any rank. */
    public static final int ANY_SOURCE = -2;
    /** Tag of a receive: any tag. */
    public static final int ANY_TAG = -2;
    /** A rank that does not exist: sends to it and receives from it are done at once. */
    public static final int PROC_NULL = -3;

    /** Comparison: the same communicator, or groups of the same members in the same order. */
    public static final int IDENT = 0;
    /** Comparison: the same members in another order. */
    public static final int SIMILAR = 1;
    /** Comparison: other members. */
    public static final int UNEQUAL = 2;
    /** Comparison: two communicators of the same members in the same order. */
    public static final int CONGRUENT = 3;

    /** Kind of a topology: a graph. */
    public static final int GRAPH = 1;
    /** Kind of a topology: a Cartesian grid. */
    public static final int CART = 2;

    /** Key of the attribute with the largest tag. */
    public static final int TAG_UB = 1;
    /** Key of the attribute with the rank of a host process: {@link #PROC_NULL}. */
    public static final int HOST = 2;
    /** Key of the attribute with a rank that can use files: the calling one. */
    public static final int IO = 3;
    /** Key of the attribute that is 1 if all ranks have the same clock: 0. */
    public static final int WTIME_IS_GLOBAL = 4;

    /** One thread calls this package. */
    public static final int THREAD_SINGLE = 1;
    /** The thread that has called {@link #Init} calls this package. */
    public static final int THREAD_FUNNELED = 2;
    /** One thread at a time calls this package. */
    public static final int THREAD_SERIALIZED = 3;
    /** Any number of threads call this package at once. */
    public static final int THREAD_MULTIPLE = 4;

    /** Error class: a buffer is too short, or null. */
    public static final int ERR_BUFFER = 1;
    /** Error class: a count is negative or too large. */
    public static final int ERR_COUNT = 2;
    /** Error class: a datatype does not fit the buffer or the message. */
    public static final int ERR_TYPE = 3;
    /** Error class: a tag is negative. */
    public static final int ERR_TAG = 4;
    /** Error class: a communicator was freed. */
    public static final int ERR_COMM = 5;
    /** Error class: there is no such rank. */
    public static final int ERR_RANK = 6;
    /** Error class: a request cannot do this. */
    public static final int ERR_REQUEST = 7;
    /** Error class: there is no such root. */
    public static final int ERR_ROOT = 8;
    /** Error class: a group does not fit. */
    public static final int ERR_GROUP = 9;
    /** Error class: an operation does not fit. */
    public static final int ERR_OP = 10;
    /** Error class: a topology is invalid. */
    public static final int ERR_TOPOLOGY = 11;
    /** Error class: dimensions are invalid. */
    public static final int ERR_DIMS = 12;
    /** Error class: another argument is invalid. */
    public static final int ERR_ARG = 13;
    /** Error class: an unknown error. */
    public static final int ERR_UNKNOWN = 14;
    /** Error class: a message is longer than the buffer of its receive. */
    public static final int ERR_TRUNCATE = 15;
    /** Error class: an error that its text describes. */
    public static final int ERR_OTHER = 16;
    /** Error class: an error of the library. */
    public static final int ERR_INTERN = 17;

    /** Java {@code byte}. */
    public static final Datatype BYTE = new BasicType(1, "BYTE", Byte.BYTES, new byte[0]);
    /** Java {@code char}. */
    public static final Datatype CHAR = new BasicType(2, "CHAR", Character.BYTES, new char[0]);
    /** Java {@code short}. */
    public static final Datatype SHORT = new BasicType(3, "SHORT", Short.BYTES, new short[0]);
    /** Java {@code boolean}. */
    public static final Datatype BOOLEAN = new BasicType(4, "BOOLEAN", 1, new boolean[0]);
    /** Java {@code int}. */
    public static final Datatype INT = new BasicType(5, "INT", Integer.BYTES, new int[0]);
    /** Java {@code long}. */
    public static final Datatype LONG = new BasicType(6, "LONG", Long.BYTES, new long[0]);
    /** Java {@code float}. */
    public static final Datatype FLOAT = new BasicType(7, "FLOAT", Float.BYTES, new float[0]);
    /** Java {@code double}. */
    public static final Datatype DOUBLE = new BasicType(8, "DOUBLE", Double.BYTES, new double[0]);

    /** No elements. */
    public static final Datatype NULL = DerivedType.nothing();
    /** Octets that {@link Comm#Pack} has written, in an array of bytes. */
    public static final Datatype PACKED = new PackedType();
    /** Mark of a lower bound in {@link Datatype#Struct}. */
    public static final Datatype LB = DerivedType.mark(Native.LOWER_MARK);
    /** Mark of an upper bound in {@link Datatype#Struct}. */
    public static final Datatype UB = DerivedType.mark(Native.UPPER_MARK);
    /** Two elements of type {@code short}. */
    public static final Datatype SHORT2 = DerivedType.pair(SHORT);
    /** Two elements of type {@code int}. */
    public static final Datatype INT2 = DerivedType.pair(INT);
    /** Two elements of type {@code long}. */
    public static final Datatype LONG2 = DerivedType.pair(LONG);
    /** Two elements of type {@code float}. */
    public static final Datatype FLOAT2 = DerivedType.pair(FLOAT);
    /** Two elements of type {@code double}. */
    public static final Datatype DOUBLE2 = DerivedType.pair(DOUBLE);

    /** The null group. */
    public static final Group GROUP_NULL = null;
    /** The group without members. */
    public static final Group GROUP_EMPTY = new Group(new int[0], UNDEFINED);

    /** Objects that are serialised; an array of rows is an array of objects. */
    public static final Datatype OBJECT = new ObjectType();

    /** Maximum. */
    public static final Op MAX = new Op(1, "MPI.MAX");
    /** Minimum. */
    public static final Op MIN = new Op(2, "MPI.MIN");
    /** Sum; integers wrap. */
    public static final Op SUM = new Op(3, "MPI.SUM");
    /** Product; integers wrap. */
    public static final Op PROD = new Op(4, "MPI.PROD");
    /** Logical and. */
    public static final Op LAND = new Op(5, "MPI.LAND");
    /** Bitwise and. */
    public static final Op BAND = new Op(6, "MPI.BAND");
    /** Logical or. */
    public static final Op LOR = new Op(7, "MPI.LOR");
    /** Bitwise or. */
    public static final Op BOR = new Op(8, "MPI.BOR");
    /** Logical exclusive or. */
    public static final Op LXOR = new Op(9, "MPI.LXOR");
    /** Bitwise exclusive or. */
    public static final Op BXOR = new Op(10, "MPI.BXOR");
    /** Maximum and the smallest index of it, of pairs such as {@link #INT2}. */
    public static final Op MAXLOC = new Op(11, "MPI.MAXLOC");
    /** Minimum and the smallest index of it, of pairs such as {@link #INT2}. */
    public static final Op MINLOC = new Op(12, "MPI.MINLOC");

    /** The null communicator. */
    public static final Comm COMM_NULL = null;
    /** The communicator of all ranks, between {@link #Init} and {@link #Finalize}; null before and after. */
    public static Intracomm COMM_WORLD;
    /** The communicator of the calling rank alone, between {@link #Init} and {@link #Finalize}. */
    public static Intracomm COMM_SELF;

    /** Error handler: a failed call throws an {@link MPIException}. Every communicator has it at first. */
    public static final Errhandler ERRORS_RETURN = new Errhandler("ERRORS_RETURN", false);
    /** Error handler: a failed call ends the job, with the class of the error as its status. */
    public static final Errhandler ERRORS_ARE_FATAL = new Errhandler("ERRORS_ARE_FATAL", true);

    /** A void request. */
    public static final Request REQUEST_NULL = new Request();
    /** An empty status. No call returns this object. */
    public static final Status EMPTY_STATUS = new Status();

    /** Octets that a send takes in a packed buffer beside its contents, in MPJ Express. */
    public static final int SEND_OVERHEAD = 0;
    /** Octets that a receive takes in a packed buffer beside its contents, in MPJ Express. */
    public static final int RECV_OVERHEAD = 0;
    /** Whether MPJ Express prints what it does. */
    public static final boolean DEBUG = false;
    /** Whether MPJ Express is asked for its earlier collective algorithms; ignored. */
    public static boolean isOldSelected;

    /** Number of processors of this machine that the JVM may use. */
    public static final int NUM_OF_PROCESSORS = Runtime.getRuntime().availableProcessors();

    private static final double NANO = 1e-9;
    private static final double MILLI = 1e-3;
    private static final long BEGUN_NANOS = System.nanoTime();
    private static final double BEGUN = System.currentTimeMillis() * MILLI;

    /** Octets that MPI asks a program to add to a buffer for each buffered send. None are needed here. */
    public static final int BSEND_OVERHEAD = 32;

    /** The thread that has called {@link #Init}. */
    private static Thread mainThread;
    private static boolean isFinalized;
    /** The number of this rank since the last {@link #Init}; -1 before the first. */
    private static volatile int worldRank = -1;

    private MPI() {}

    /**
     * Makes this process a rank of its job, or rank 0 of 1 without a launcher (MPI-1.1, section 7.5). Blocks
     * until all ranks of the job have called it.
     *
     * <p>A program may call it again after {@link #Finalize}, any number of times. Then all ranks must do so,
     * and they form a new job.
     *
     * @param args arguments of the program; null stands for none
     * @return a copy of the arguments, never null. Rank, number of ranks and device, which
     *     {@code mpjrun --args mpje} passes before them, are left out
     * @throws MPIException if this rank is initialised, the launcher rejects it, or a rank has ended
     */
    public static synchronized String[] Init(String[] args) throws MPIException {
        if (COMM_WORLD != null) {
            throw raised(new MPIException("MPI.Init was called before: call MPI.Finalize first"));
        }
        try {
            Intracomm world = new Intracomm(join());
            COMM_SELF = new Intracomm(Native.selfComm(world.handle()));
            worldRank = Native.rank(world.handle());
            COMM_WORLD = world;
        } catch (RuntimeException e) {
            throw Failures.of(e);
        }
        isFinalized = false;
        mainThread = Thread.currentThread();
        return own(args);
    }

    /** Returns the arguments of the program, without those that {@code mpjrun --args mpje} passes before. */
    private static String[] own(String[] args) {
        if (args == null) {
            return new String[0];
        }
        if (System.getProperty("mpjdev.args") == null) {
            return args.clone();
        }
        RankLoader loader = loader();
        String[] prefix = loader != null ? loader.prefix()
                : RankThreads.prefix(System.getenv("MPJDEV_RANK"), System.getenv("MPJDEV_SIZE"));
        boolean hasPrefix = prefix.length <= args.length && Arrays.equals(prefix, Arrays.copyOf(args, prefix.length));
        return Arrays.copyOfRange(args, hasPrefix ? prefix.length : 0, args.length);
    }

    /** Returns the class loader of a rank that is a thread, or null. */
    private static RankLoader loader() {
        ClassLoader own = MPI.class.getClassLoader();
        return own != Native.class.getClassLoader() && own instanceof RankLoader ? (RankLoader) own : null;
    }

    private static long join() {
        RankLoader loader = loader();
        if (loader != null) {
            return loader.join();
        }
        long world = Native.processWorld();
        if (System.getenv("MPJDEV_STATS") != null || System.getenv("MPJDEV_PROFILE") != null) {
            ProcessEnd.report();
        }
        if (Native.usesMpi()) {
            ProcessEnd.endMpi(world);
        }
        return world;
    }

    /**
     * Ends this rank (MPI-1.1, section 7.5). Collective; blocks until all ranks have called it and all
     * messages to other ranks have left this one.
     *
     * <p>Unreceived messages are no failure: one line on standard error names them. Communicators and
     * requests of the rank throw afterwards.
     *
     * @throws MPIException if this rank is not initialised, a rank has failed, messages could not be
     *     delivered, or requests are not complete: receives that were neither waited for nor freed, and sends
     *     that no receive can match any more. The rank has ended all the same
     */
    public static synchronized void Finalize() throws MPIException {
        Intracomm world = world();
        try {
            world.barrier();
        } finally {
            end(world);
        }
    }

    private static void end(Intracomm world) {
        Intracomm self = COMM_SELF;
        COMM_WORLD = null;
        COMM_SELF = null;
        isFinalized = true;
        mainThread = null;
        BsendQuota.leave();
        Request.leaveFreed();
        RuntimeException failure = null;
        long incomplete = 0;
        try {
            Native.finish(world.handle());
        } catch (RuntimeException e) {
            failure = Failures.of(e);
        } finally {
            incomplete = Native.incompleteRequests(world.handle());
            // Free it now: no part of the rank has to wait for a garbage collection.
            self.release();
            world.release();
        }
        if (incomplete != 0) {
            failure = Failures.incomplete((int) (incomplete >> 32), (int) incomplete, failure);
        }
        if (failure != null) {
            throw world.raised(Failures.of(failure));
        }
    }

    /**
     * Attaches a buffer for sends in buffered mode (MPI-1.1, section 3.6). A buffer that is attached is
     * detached first, as {@link #Buffer_detach} does. Nothing is stored in it: its length limits the octets
     * of buffered sends that are not done.
     *
     * @param buffer the buffer
     * @throws MPIException if the buffer is null, or this rank is not initialised
     */
    public static void Buffer_attach(byte[] buffer) throws MPIException {
        attach(buffer, buffer == null ? 0 : buffer.length, buffer);
    }

    /**
     * Attaches a buffer as {@link #Buffer_attach(byte[])} does; its capacity counts.
     *
     * @param buffer the buffer
     * @throws MPIException as there
     */
    public static void Buffer_attach(ByteBuffer buffer) throws MPIException {
        attach(null, buffer == null ? 0 : buffer.capacity(), buffer);
    }

    private static void attach(byte[] array, int octets, Object buffer) {
        if (buffer == null) {
            throw raised(new MPIException(ERR_BUFFER, "the buffer is null", null));
        }
        world();
        try {
            BsendQuota.attach(array, octets);
        } catch (MPIException e) {
            throw raised(e);
        }
    }

    /**
     * Waits until all sends in buffered mode are done, and detaches the buffer. Blocks.
     *
     * @return the array that was attached; null for a {@link ByteBuffer}, and without an attached buffer
     * @throws MPIException if the thread is interrupted; the buffer is attached then
     */
    public static byte[] Buffer_detach() throws MPIException {
        try {
            return BsendQuota.detach();
        } catch (MPIException e) {
            throw raised(e);
        }
    }

    /**
     * Returns whether this rank is initialised.
     *
     * @return true between {@link #Init} and {@link #Finalize}
     */
    public static boolean Initialized() {
        return COMM_WORLD != null;
    }

    /**
     * Returns whether this rank has ended.
     *
     * @return true after {@link #Finalize}, until another {@link #Init}
     */
    public static boolean Finalized() {
        return isFinalized;
    }

    /**
     * Initialises this rank as {@link #Init} does, unless it is initialised. {@link #THREAD_MULTIPLE} holds
     * in any case.
     *
     * @param required level of threads that the program needs
     * @param provided ignored, as in MPJ Express
     * @param args arguments of the program; null stands for none
     * @return a copy of the arguments, never null
     * @throws MPIException as {@link #Init}
     */
    public static synchronized String[] initThread(int required, int provided, String[] args) throws MPIException {
        if (COMM_WORLD == null) {
            return Init(args);
        }
        return own(args);
    }

    /**
     * Sets what a failed call of {@link #COMM_WORLD} does, as in MPJ Express.
     *
     * @param errhandler as for {@link Comm#Errhandler_set}
     * @throws MPIException if it is null, or this rank is not initialised
     */
    public static void Errorhandler_set(Errhandler errhandler) throws MPIException {
        world().Errhandler_set(errhandler);
    }

    /**
     * Returns what a failed call of {@link #COMM_WORLD} does.
     *
     * @return as {@link Comm#Errhandler_get}
     * @throws MPIException if this rank is not initialised
     */
    public static Errhandler Errorhandler_get() throws MPIException {
        return world().Errhandler_get();
    }

    private static Intracomm world() {
        Intracomm world = COMM_WORLD;
        if (world == null) {
            throw new MPIException("not initialised: call MPI.Init first");
        }
        return world;
    }

    /** Returns the number of this rank in the world, also after its end; -1 if it never had one. */
    static int worldRank() {
        return worldRank;
    }

    /**
     * Returns the exception of a failed call without a communicator, unless the error handler of
     * {@link #COMM_WORLD} ends the job. Without a world the exception is all there is.
     */
    static MPIException raised(MPIException failure) {
        Intracomm world = COMM_WORLD;
        return world == null ? failure : world.raised(failure);
    }

    /** Returns an argument, which is not null, of a call without a communicator. */
    static <T> T present(T argument, String what) {
        if (argument == null) {
            throw raised(new MPIException(ERR_ARG, what + " is null", null));
        }
        return argument;
    }

    /**
     * Returns the level of threads.
     *
     * @return {@link #THREAD_MULTIPLE}
     */
    public static int queryThread() {
        return THREAD_MULTIPLE;
    }

    /**
     * Returns whether the calling thread has called {@link #Init}.
     *
     * @return whether it has
     */
    public static boolean isMainThread() {
        return Thread.currentThread() == mainThread;
    }

    /**
     * Returns the time, from a clock that never goes back.
     *
     * @return seconds since 1970
     */
    public static double Wtime() {
        return BEGUN + (System.nanoTime() - BEGUN_NANOS) * NANO;
    }

    /**
     * Returns the resolution of the clock of {@link #Wtime}.
     *
     * @return seconds
     */
    public static double Wtick() {
        return NANO;
    }

    /**
     * Returns the name of this machine.
     *
     * @return the name; {@code localhost} if the system does not report it
     */
    public static String Get_processor_name() {
        try {
            String name = Files.readString(Path.of("/proc/sys/kernel/hostname")).trim();
            return name.isEmpty() ? "localhost" : name;
        } catch (IOException e) {
            return "localhost";
        }
    }
}
