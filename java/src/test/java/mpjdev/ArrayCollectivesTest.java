package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.LongBinaryOperator;
import mpjdev.Mpjrun.Job;
import mpjdev.core.Native;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Collective operations on arrays, on every transport, against loops of the test. */
@Timeout(180)
class ArrayCollectivesTest {
    /** Elements of a vector: nothing, less than the ranks, and in the longest types more than one packet. */
    private static final int[] COUNTS = {0, 1, 7, 600, 9000};

    private static final int NUMBERS = 4;

    // ---- Elements

    /** A small number that differs between ranks and elements, as far as the type has numbers. */
    private static long number(Type type, int rank, int k) {
        long number = (rank * 7L + k * 3L) % NUMBERS;
        return type == Type.BOOLEAN ? number & 1 : number;
    }

    private static void put(Object array, int at, long number) {
        if (array instanceof float[]) {
            ((float[]) array)[at] = number;
        } else if (array instanceof double[]) {
            ((double[]) array)[at] = number;
        } else {
            AnyArray.set(array, at, number);
        }
    }

    private static Object vector(Type type, int rank, int first, int count, int off, int length) {
        Object vector = AnyArray.make(type, length);
        for (int k = 0; k < count; k++) {
            put(vector, off + k, number(type, rank, first + k));
        }
        return vector;
    }

    private static void check(Object expected, Object found, String what, Type type, int count) {
        assertTrue(AnyArray.same(expected, found), () -> what + " of " + count + " x " + type);
    }

    /** Calls the overload for these arrays: the other arguments are ints and operations. */
    private static void call(Comm comm, String name, Object... arguments) throws Exception {
        Class<?>[] types = new Class<?>[arguments.length];
        for (int i = 0; i < types.length; i++) {
            types[i] = arguments[i] instanceof Integer ? int.class : arguments[i].getClass();
        }
        try {
            Comm.class.getMethod(name, types).invoke(comm, arguments);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Exception) {
                throw (Exception) e.getCause();
            }
            throw (Error) e.getCause();
        }
    }

    // ---- Programs of any number of ranks, for every transport

    private static void moves(Comm comm, Type type, int count, int root) throws Exception {
        int size = comm.size();
        int rank = comm.id();
        Object sent = vector(type, rank == root ? 5 : 6, 0, count, 2, count + 3);
        call(comm, "bcast", sent, 2, count, root);
        check(vector(type, 5, 0, count, 2, count + 3), sent, "bcast", type, count);

        Object own = vector(type, rank, 0, count, 1, count + 1);
        Object all = AnyArray.make(type, size * count + 2);
        Object expected = AnyArray.make(type, size * count + 2);
        for (int source = 0; source < size; source++) {
            for (int k = 0; k < count; k++) {
                put(expected, 2 + source * count + k, number(type, source, k));
            }
        }
        call(comm, "gather", own, 1, all, 2, count, root);
        check(rank == root ? expected : AnyArray.make(type, size * count + 2), all, "gather", type, count);
        all = AnyArray.make(type, size * count + 2);
        call(comm, "allgather", own, 1, all, 2, count);
        check(expected, all, "allgather", type, count);

        Object blocks = vector(type, root, 0, size * count, 0, size * count);
        Object part = AnyArray.make(type, count + 1);
        call(comm, "scatter", rank == root ? blocks : AnyArray.make(type, 0), 0, part, 1, count, root);
        check(vector(type, root, rank * count, count, 1, count + 1), part, "scatter", type, count);

        blocks = vector(type, rank, 0, size * count, 0, size * count);
        Object exchanged = AnyArray.make(type, size * count);
        for (int source = 0; source < size; source++) {
            for (int k = 0; k < count; k++) {
                put(exchanged, source * count + k, number(type, source, rank * count + k));
            }
        }
        Object found = AnyArray.make(type, size * count);
        call(comm, "alltoall", blocks, 0, found, 0, count);
        check(exchanged, found, "alltoall", type, count);
        call(comm, "alltoall", blocks, 0, blocks, 0, count);
        check(exchanged, blocks, "alltoall in place", type, count);
    }

    private static LongBinaryOperator model(Op op) {
        switch (op) {
            case MAX:
                return Math::max;
            case MIN:
                return Math::min;
            case SUM:
                return Long::sum;
            case PROD:
                return (a, b) -> a * b;
            case LAND:
                return (a, b) -> a != 0 && b != 0 ? 1 : 0;
            case BAND:
                return (a, b) -> a & b;
            case LOR:
                return (a, b) -> a != 0 || b != 0 ? 1 : 0;
            case BOR:
                return (a, b) -> a | b;
            case LXOR:
                return (a, b) -> (a != 0) != (b != 0) ? 1 : 0;
            default:
                return (a, b) -> a ^ b;
        }
    }

    /** Whether an operation on numbers applies to the type (mpi-java 8). */
    private static boolean applies(Op op, Type type) {
        boolean isArithmetic = op.compareTo(Op.PROD) <= 0;
        return isArithmetic ? type != Type.BOOLEAN : type != Type.FLOAT && type != Type.DOUBLE;
    }

    private static void reductions(Comm comm, Op op, Type type, int count, int root) throws Exception {
        int size = comm.size();
        Object own = vector(type, comm.id(), 0, count, 2, count + 2);
        Object result = AnyArray.make(type, count + 1);
        if (!applies(op, type)) {
            assertThrows(IllegalArgumentException.class, () -> call(comm, "allreduce", own, 2, result, 1, count, op));
            return;
        }
        Object expected = AnyArray.make(type, count + 1);
        for (int k = 0; k < count; k++) {
            long all = number(type, 0, k);
            for (int rank = 1; rank < size; rank++) {
                all = model(op).applyAsLong(all, number(type, rank, k));
            }
            put(expected, 1 + k, all);
        }
        call(comm, "reduce", own, 2, result, 1, count, op, root);
        check(comm.id() == root ? expected : AnyArray.make(type, count + 1), result, "reduce " + op, type, count);
        call(comm, "allreduce", own, 2, result, 1, count, op);
        check(expected, result, "allreduce " + op, type, count);
        call(comm, "allreduce", own, 2, own, 2, count, op);
        for (int k = 0; k < count; k++) {
            assertEquals(AnyArray.bits(expected, 1 + k), AnyArray.bits(own, 2 + k), () -> "in place " + op + " " + type);
        }
    }

    /** Runs all calls with all types, and returns the bits of a sum that depends on its order. */
    private static long all(Comm comm) throws Exception {
        int call = 0;
        for (Type type : AnyArray.TYPES) {
            for (int count : COUNTS) {
                moves(comm, type, count, call++ % comm.size());
            }
            for (Op op : Op.values()) {
                if (op.compareTo(Op.MAXLOC) < 0) {
                    reductions(comm, op, type, COUNTS[call % COUNTS.length], call++ % comm.size());
                }
            }
        }
        pairs(comm);
        return bits(comm);
    }

    /** The maximum and the minimum with the smallest rank that has them. */
    private static void pairs(Comm comm) {
        int[] pair = {comm.id() % 2, comm.id(), 7, comm.id()};
        int[] found = new int[4];
        comm.allreduce(pair, 0, found, 0, 4, Op.MAXLOC);
        assertEquals(comm.size() > 1 ? "[1, 1, 7, 0]" : "[0, 0, 7, 0]", Arrays.toString(found));
        double[] low = {-comm.id(), comm.id()};
        comm.allreduce(low, 0, low, 0, 2, Op.MINLOC);
        assertEquals(comm.size() - 1, low[1]);
        assertThrows(IllegalArgumentException.class, () -> comm.allreduce(pair, 0, found, 0, 3, Op.MINLOC));
    }

    /** The sum of numbers whose rounding depends on the order, of one length for each algorithm. */
    private static long bits(Comm comm) {
        long hash = 0;
        for (int count : new int[] {1, 100, 3000, 40_000}) {
            double[] vector = new double[count];
            for (int k = 0; k < count; k++) {
                vector[k] = Math.pow(1.1 + comm.id(), k % 40) / 3;
            }
            comm.allreduce(vector, 0, vector, 0, count, Op.SUM);
            long own = Arrays.hashCode(vector);
            long[] all = new long[comm.size()];
            comm.allgather(new long[] {own}, 0, all, 0, 1);
            for (long one : all) {
                assertEquals(own, one, "all ranks have the same bits");
            }
            hash = 31 * hash + own;
        }
        return hash;
    }

    /** Runs all calls in a process that is a rank. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            long bits = all(Comm.WORLD);
            Comm.WORLD.barrier();
            assertEquals(0, Native.openRequests());
            System.out.println(bits);
            Comm.finish();
        }
    }

    /** The bits that threads of this process get. */
    private static List<String> bitsOfThreads(int ranks) throws Exception {
        ConcurrentLinkedQueue<String> bits = new ConcurrentLinkedQueue<>();
        Comm.<Exception>runThreads(ranks, world -> bits.add(Long.toString(bits(world))));
        return new ArrayList<>(bits);
    }

    private static void check(Job job, int ranks) throws Exception {
        assertEquals(0, job.status, job::toString);
        assertEquals(bitsOfThreads(ranks), job.lines(), job::toString);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 5, 8, 9})
    void shouldMoveAndCombineElementsOfThreads(int ranks) throws Exception {
        ConcurrentLinkedQueue<Long> bits = new ConcurrentLinkedQueue<>();
        Comm.<Exception>runThreads(ranks, world -> bits.add(all(world)));
        assertEquals(Collections.nCopies(ranks, bits.peek()), new ArrayList<>(bits));
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp"})
    void shouldMoveAndCombineElementsOfProcesses(String transport) throws Exception {
        Mpjrun run = new Mpjrun(3);
        check((transport.equals("shm") ? run : run.with("--transport", transport)).run(Program.class), 3);
    }

    /** Two sites of two ranks are operands of the tree order, sites of three are not. */
    @ParameterizedTest
    @ValueSource(ints = {2, 3})
    void shouldMoveAndCombineElementsOfSites(int ranksOfASite) throws Exception {
        check(new Mpjrun(ranksOfASite).with("--sites", "2").run(Program.class), 2 * ranksOfASite);
    }

    @ParameterizedTest
    @MethodSource("mpjdev.Mpirun#launchers")
    void shouldMoveAndCombineElementsUnderAnMpi(List<String> launcher) throws Exception {
        check(Mpirun.job(launcher, 2).run(Program.class), 2);
    }

    // ---- Refused calls and failures

    @Test
    void shouldChangeNothingWhenACallIsRefused() {
        Comm.runThreads(1, world -> {
            int[] array = {1, 2, 3};
            int[] none = null;
            Executable[] bounds = {() -> world.bcast(array, 1, 3, 0), () -> world.bcast(array, -1, 1, 0),
                () -> world.gather(array, 0, array, 3, 1, 0),
                () -> world.scatter(array, 3, array, 0, 1, 0), () -> world.allgather(array, 0, new int[0], 0, 1),
                () -> world.alltoall(array, 2, array, 0, 2), () -> world.reduce(array, 0, array, 1, 3, Op.SUM, 0),
                () -> world.allreduce(array, Integer.MAX_VALUE, array, 0, Integer.MAX_VALUE, Op.SUM)};
            for (Executable call : bounds) {
                assertThrows(ArrayIndexOutOfBoundsException.class, call);
            }
            assertThrows(IllegalArgumentException.class, () -> world.bcast(array, 0, -1, 0));
            assertThrows(IllegalArgumentException.class, () -> world.reduce(array, 0, array, 0, Integer.MIN_VALUE, Op.MAX, 0));
            Executable[] roots = {() -> world.bcast(array, 0, 3, 1), () -> world.gather(array, 0, array, 0, 1, -1),
                () -> world.scatter(array, 0, array, 0, 1, Integer.MIN_VALUE),
                () -> world.reduce(array, 0, array, 0, 3, Op.SUM, 7)};
            for (Executable call : roots) {
                assertThrows(BadArgumentException.class, call);
            }
            Executable[] nulls = {() -> world.bcast(none, 0, 0, 0), () -> world.gather(array, 0, none, 0, 0, 0),
                () -> world.scatter(none, 0, array, 0, 0, 0), () -> world.allreduce(array, 0, none, 0, 0, Op.SUM),
                () -> world.reduce(array, 0, array, 0, 1, null, 0)};
            for (Executable call : nulls) {
                assertThrows(NullPointerException.class, call);
            }
            assertEquals("[1, 2, 3]", Arrays.toString(array));
            assertEquals(0, Native.openRequests());
        });
    }

    @Test
    void shouldIgnoreArraysThatOnlyTheRootUses() {
        Comm.runThreads(2, world -> {
            boolean isRoot = world.id() == 1;
            int[] own = {world.id() + 1};
            int[] all = isRoot ? new int[2] : null;
            world.gather(own, 0, all, 0, 1, 1);
            int[] sum = isRoot ? new int[1] : null;
            world.reduce(own, 0, sum, isRoot ? 0 : -5, 1, Op.SUM, 1);
            world.scatter(all, 0, own, 0, 1, 1);
            assertEquals(world.id() + 1, own[0]);
            assertEquals(3, isRoot ? sum[0] : 3);
        });
    }

    /** Rank 1 has less room than the root sends; rank 2 is not behind it in the tree. */
    @Test
    void shouldFailOnlyWhereAMessageIsTooLong() {
        Comm.runThreads(3, world -> {
            int[] array = {world.id(), 5, 6};
            if (world.id() == 1) {
                assertThrows(TruncationException.class, () -> world.bcast(array, 0, 1, 0));
                assertEquals("[1, 5, 6]", Arrays.toString(array));
            } else {
                world.bcast(array, 0, 3, 0);
                assertEquals("[0, 5, 6]", Arrays.toString(array));
            }
            world.allreduce(array, 1, array, 1, 1, Op.SUM);
            assertEquals(15, array[1]);
        });
    }

    @Test
    void shouldEndAtAllWhenOneRankFails() {
        assertThrows(ArithmeticException.class, () -> Comm.runThreads(3, world -> {
            if (world.id() == 2) {
                throw new ArithmeticException("of the test");
            }
            PeerFailedException thrown = assertThrows(PeerFailedException.class,
                    () -> world.allreduce(new long[1], 0, new long[1], 0, 1, Op.MAX));
            assertEquals(2, thrown.rank());
        }));
    }

    /** Makes calls of all lengths until the process of rank 2 is killed. */
    static final class Killed {
        private static final int VICTIM = 2;
        private static final int[] LENGTHS = {1, 100, 5000, 60_000};

        private Killed() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            Comm world = Comm.WORLD;
            PeerFailedException thrown = assertThrows(PeerFailedException.class, () -> {
                for (int round = 0;; round++) {
                    if (world.id() == VICTIM && round == 50) {
                        new ProcessBuilder("kill", "-9", "" + ProcessHandle.current().pid()).start().waitFor();
                    }
                    int count = LENGTHS[round % LENGTHS.length];
                    double[] vector = new double[count * world.size()];
                    world.allreduce(vector, 0, vector, 0, count, Op.SUM);
                    world.bcast(vector, 0, count, round % world.size());
                    world.alltoall(vector, 0, vector, 0, count);
                }
            });
            assertEquals(VICTIM, thrown.rank(), thrown.getMessage());
            System.out.println("named");
            // The end of this rank must not be the failure that another one notices.
            Path noticed = Path.of(args[0]);
            Files.createFile(noticed.resolve("rank " + world.id()));
            Wait.until("all ranks have noticed the failure", () -> noticed.toFile().list().length == 3);
            Runtime.getRuntime().halt(0);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "tcp", "udp", "sites"})
    void shouldNameTheRankWhoseProcessIsKilled(String transport) throws Exception {
        boolean hasSites = transport.equals("sites");
        Path noticed = Files.createTempDirectory("mpjdev-test");
        Mpjrun run = new Mpjrun(hasSites ? 2 : 4).with("--keep-going");
        run = hasSites ? run.with("--sites", "2") : run.with("--transport", transport);
        Job job = run.run(Killed.class, noticed.toString());
        for (File rank : noticed.toFile().listFiles()) {
            Files.delete(rank.toPath());
        }
        Files.delete(noticed);
        assertEquals(List.of("named", "named", "named"), job.lines(), job::toString);
    }

    @Test
    void shouldEndAtAllWhenOneRankIsInterrupted() {
        Comm.runThreads(2, world -> {
            Comm other = world.dup();
            if (world.id() == 1) {
                Thread.currentThread().interrupt();
                assertThrows(InterruptedOperationException.class, () -> other.bcast(new int[1], 0, 1, 0));
                assertTrue(Thread.interrupted());
            } else {
                assertThrows(CollectiveAbandonedException.class, () -> other.gather(new int[1], 0, new int[2], 0, 1, 0));
            }
            int[] sum = {1};
            world.allreduce(sum, 0, sum, 0, 1, Op.SUM);
            assertEquals(2, sum[0]);
        });
    }
}
