package mpjdev.core;

import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.MalformedURLException;
import java.net.URL;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Starts a program whose ranks are threads of this JVM. Internal.
 *
 * <p>Each rank loads the program and the public package with a {@link RankLoader}, so their static fields are
 * those of the rank. As with processes, the job ends with an exception that a rank does not catch, or with
 * {@link System#exit} of any rank.
 */
public final class RankThreads {
    private static final int RANKS_MAX = 1024;
    private static final int UNUSABLE = 2;

    private final int ranks;
    /** Worlds of all jobs of the ranks, in their order. */
    private final List<long[]> jobs = new ArrayList<>();

    private RankThreads(int ranks) {
        this.ranks = ranks;
    }

    /**
     * Runs a program in each rank.
     *
     * @param args number of ranks, main class, arguments of the program
     */
    public static void main(String[] args) {
        int ranks = args.length < 2 ? 0 : number(args[0]);
        if (ranks < 1 || ranks > RANKS_MAX) {
            System.err.println("mpjdev: the arguments are a number of ranks from 1 to " + RANKS_MAX
                    + ", a main class, and its arguments");
            System.exit(UNUSABLE);
        }
        RankThreads job = new RankThreads(ranks);
        URL[] classPath = classPath();
        for (int rank = 0; rank < ranks; rank++) {
            RankLoader loader = new RankLoader(classPath, job, rank);
            List<String> words = new ArrayList<>(List.of(job.prefix(rank)));
            words.addAll(Arrays.asList(args).subList(2, args.length));
            Thread thread = new Thread(() -> run(loader, args[1], words.toArray(String[]::new)), "rank-" + rank);
            thread.setContextClassLoader(loader);
            thread.start();
        }
    }

    String[] prefix(int rank) {
        return prefix("" + rank, "" + ranks);
    }

    /**
     * Returns the arguments that the launcher passes before those of the program.
     *
     * @param rank number of the rank
     * @param size number of ranks
     * @return these two and the device, as of MPJ Express, with {@code mpjrun --args mpje}; else none
     */
    public static String[] prefix(String rank, String size) {
        boolean isAsked = "mpje".equals(System.getProperty("mpjdev.args"));
        return isAsked ? new String[] {rank, size, "multicore"} : new String[0];
    }

    private static int number(String text) {
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException e) {
            return 0;
        }
    }

    private static URL[] classPath() {
        List<URL> entries = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            try {
                entries.add(new File(entry).toURI().toURL());
            } catch (MalformedURLException e) {
                throw new IllegalArgumentException(entry, e);
            }
        }
        return entries.toArray(URL[]::new);
    }

    private static void run(ClassLoader loader, String name, String[] args) {
        try {
            Method main = Class.forName(name, true, loader).getMethod("main", String[].class);
            // The class need not be public.
            main.setAccessible(true);
            main.invoke(null, (Object) args);
        } catch (InvocationTargetException e) {
            end(e.getCause());
        } catch (ReflectiveOperationException | RuntimeException | Error e) {
            // A rank whose class cannot be initialised would leave the others waiting.
            end(e);
        }
    }

    /** Ends the job as an uncaught exception does in a process. */
    private static void end(Throwable thrown) {
        System.err.print("Exception in thread \"" + Thread.currentThread().getName() + "\" ");
        thrown.printStackTrace();
        System.exit(1);
    }

    /** Returns the world of a rank in its n-th job. The first rank that joins makes the job. */
    synchronized long world(int rank, int job) {
        if (job == jobs.size()) {
            long[] worlds = new long[ranks];
            Native.localJob(worlds, ranks, false);
            jobs.add(worlds);
        }
        return jobs.get(job)[rank];
    }
}
