package mpjdev.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.StackWalker.StackFrame;
import java.lang.reflect.Method;
import java.util.List;
import mpjdev.Comm;
import mpjdev.Mpjrun;
import mpjdev.PeerFailedException;

/**
 * Runs a case with a process for each rank.
 *
 * <p>A task cannot be sent to another process. So each process calls the test method again, up to the same
 * call of {@link TransportFixture#run}, where it runs the task as a rank and ends. So a case has one job, and
 * each rank executes the code before it.
 */
final class Processes {
    /** Begins the line with the exception of a task. */
    private static final String THREW = "conformance: a rank threw ";
    private static final String SEPARATOR = " with ";

    private static boolean isRank;

    private Processes() {}

    static <E extends Exception> void run(int ranks, Comm.Task<E> task) throws E {
        if (isRank) {
            runRank(task);
        }
        StackFrame test = StackWalker.getInstance().walk(frames -> frames.filter(Processes::isTest).findFirst())
                .orElseThrow();
        Mpjrun.Job job;
        try {
            // Every rank runs to its end, and has as much message memory as if all were threads here.
            job = new Mpjrun(ranks).with("--keep-going").jvm("-Dmpjdev.memory=" + Runtime.getRuntime().maxMemory())
                    .run(Processes.class, test.getClassName(), test.getMethodName());
        } catch (Exception e) {
            throw new AssertionError(e);
        }
        List<String> thrown = job.err.lines().filter(line -> line.startsWith(THREW))
                .map(line -> line.substring(THREW.length())).toList();
        if (thrown.isEmpty()) {
            assertEquals(0, job.status, job::toString);
            return;
        }
        Processes.<E>rethrow(job, first(thrown));
    }

    private static boolean isTest(StackFrame frame) {
        String owner = frame.getClassName();
        return owner.startsWith("mpjdev.conformance.") && owner.endsWith("Test")
                && !frame.getMethodName().startsWith("lambda$");
    }

    /** The root cause: errors come before exceptions on purpose, and these before failures of peers. */
    private static String first(List<String> thrown) {
        List<String> causes = thrown.stream().filter(t -> !t.startsWith(PeerFailedException.class.getName())).toList();
        return causes.stream().filter(t -> t.contains("Error" + SEPARATOR)).findFirst()
                .orElse(causes.isEmpty() ? thrown.get(0) : causes.get(0));
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> void rethrow(Mpjrun.Job job, String thrown) throws E {
        int end = thrown.indexOf(SEPARATOR);
        Throwable made;
        try {
            made = (Throwable) Class.forName(thrown.substring(0, end)).getConstructor(String.class)
                    .newInstance(thrown.substring(end + SEPARATOR.length()));
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(job.toString(), e);
        }
        made.addSuppressed(new AssertionError(job.toString()));
        throw (E) made;
    }

    private static <E extends Exception> void runRank(Comm.Task<E> task) {
        try {
            Comm.init(new String[0]);
            task.run(Comm.WORLD);
            Comm.finish();
        } catch (Throwable t) {
            t.printStackTrace();
            System.err.println(THREW + t.getClass().getName() + SEPARATOR + t.getMessage());
            System.exit(1);
        }
        System.exit(0);
    }

    /** One rank: arguments are the class and the name of the test method. */
    public static void main(String[] args) throws Exception {
        isRank = true;
        Class<?> suite = Class.forName(args[0]);
        Method test = suite.getDeclaredMethod(args[1], TransportFixture.class);
        var constructor = suite.getDeclaredConstructor();
        constructor.setAccessible(true);
        test.setAccessible(true);
        test.invoke(constructor.newInstance(), TransportFixture.PROCESSES);
        throw new AssertionError(args[1] + " has run no job");
    }
}
