package mpjdev.core;

import java.net.URL;
import java.net.URLClassLoader;

/**
 * The class loader of a rank that is a thread: each rank has its own static fields. Classes of the platform
 * and of the core are common to all ranks. Internal.
 */
public final class RankLoader extends URLClassLoader {
    private static final String CORE = RankLoader.class.getPackageName() + ".";

    private final RankThreads job;
    private final int rank;
    private int joins;

    RankLoader(URL[] classPath, RankThreads job, int rank) {
        super("rank-" + rank, classPath, RankLoader.class.getClassLoader());
        this.job = job;
        this.rank = rank;
    }

    /**
     * Makes this rank join its job, or another one after it has left that. Does not block.
     *
     * @return handle of the world
     */
    public synchronized long join() {
        return job.world(rank, joins++);
    }

    /**
     * Returns the arguments before those of the program.
     *
     * @return as {@link RankThreads#prefix}
     */
    public String[] prefix() {
        return job.prefix(rank);
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (name.startsWith(CORE)) {
            return super.loadClass(name, resolve);
        }
        synchronized (getClassLoadingLock(name)) {
            Class<?> loaded = findLoadedClass(name);
            return loaded == null ? find(name) : loaded;
        }
    }

    /** Finds a class of the platform, or loads a copy of one of the class path. */
    private Class<?> find(String name) throws ClassNotFoundException {
        try {
            return getPlatformClassLoader().loadClass(name);
        } catch (ClassNotFoundException e) {
            return findClass(name);
        }
    }
}
