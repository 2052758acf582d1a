package mpjdev.core;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;

/**
 * Loads the native library if a rank does not take the {@link SharedLibrary} of its job: the file that a
 * property names, or the copy in the jar.
 *
 * <p>{@code -Dmpjdev.library=FILE} names the library, and no other is tried. Otherwise the loader unpacks the
 * copy in the jar into a fresh directory that only this user can enter, below {@code -Dmpjdev.tmpdir} or the
 * temporary directory. It loads the copy and unlinks it at once: the mapping survives, and no file remains
 * even after {@code kill -9}.
 */
final class NativeLoader {
    static final String LIBRARY_PROPERTY = "mpjdev.library";
    static final String DIRECTORY_PROPERTY = "mpjdev.tmpdir";

    /**
     * Property that the loader sets: the path to which the loader or the launcher has unpacked the
     * library.
     */
    static final String UNPACKED_PROPERTY = "mpjdev.core.unpacked";

    private static final String FILE = System.mapLibraryName("mpjdev");

    /** Part of the JVM's text if another class loader has the library. */
    static final String ELSEWHERE = "already loaded in another classloader";

    private NativeLoader() {}

    /** Loads the library, or throws an error that names a remedy. */
    static void load() {
        String explicit = System.getProperty(LIBRARY_PROPERTY);
        if (explicit != null) {
            loadFile(Path.of(explicit).toAbsolutePath());
            return;
        }
        String resource = "/" + SharedLibrary.entry();
        try (InputStream in = NativeLoader.class.getResourceAsStream(resource)) {
            if (in == null) {
                throw new UnsatisfiedLinkError("mpjdev has no native library for this platform: " + resource
                        + " is not on the class path. Linux with glibc on x86-64 and aarch64 is supported;"
                        + " -D" + LIBRARY_PROPERTY + "=FILE names a library of your own.");
            }
            unpackAndLoad(in);
        } catch (IOException e) {
            UnsatisfiedLinkError error = new UnsatisfiedLinkError("cannot unpack " + resource + ": " + e
                    + "; -D" + DIRECTORY_PROPERTY + "=DIR names a directory that is writable");
            error.initCause(e);
            throw error;
        }
    }

    private static void unpackAndLoad(InputStream in) throws IOException {
        // Another class loader may do the same at this time, so the lock must be one of the whole process.
        synchronized (System.getProperties()) {
            Path directory = directory();
            Path file = directory.resolve(FILE);
            try {
                Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
                loadFile(file);
            } finally {
                Files.deleteIfExists(file);
                Files.deleteIfExists(directory);
            }
        }
    }

    /**
     * Creates a directory for the library. The JVM identifies a library by its path. A second class loader of
     * this process gets the path of the first, so the JVM rejects it for as long as the first loader lives.
     */
    private static Path directory() throws IOException {
        FileAttribute<?> mine = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
        String before = System.getProperty(UNPACKED_PROPERTY);
        if (before != null && before.startsWith("/proc/")) {
            // The first loader uses the launcher's library. A second one would be a second engine in this
            // process.
            throw new UnsatisfiedLinkError(explain(ELSEWHERE));
        }
        if (before != null) {
            return Files.createDirectory(Path.of(before), mine);
        }
        Path parent = Path.of(System.getProperty(DIRECTORY_PROPERTY, System.getProperty("java.io.tmpdir")));
        Path directory = Files.createTempDirectory(parent, "mpjdev-", mine).toAbsolutePath();
        System.setProperty(UNPACKED_PROPERTY, directory.toString());
        return directory;
    }

    private static void loadFile(Path file) {
        try {
            System.load(file.toString());
        } catch (UnsatisfiedLinkError e) {
            throw explained(e);
        }
    }

    static UnsatisfiedLinkError explained(UnsatisfiedLinkError e) {
        UnsatisfiedLinkError explained = new UnsatisfiedLinkError(explain(String.valueOf(e.getMessage())));
        explained.initCause(e);
        return explained;
    }

    /**
     * Adds a remedy to the text of the JVM or the system about a library that it does not load.
     *
     * @param text the original text
     * @return the text for the user
     */
    static String explain(String text) {
        if (text.contains(ELSEWHERE)) {
            return "mpjdev is already loaded by another class loader of this process: there is one engine per process, so"
                    + " put mpjdev.jar where both loaders' parent finds it";
        }
        if (text.contains("failed to map segment") || text.contains("Operation not permitted")) {
            return text + ": the directory may be mounted noexec, -D" + DIRECTORY_PROPERTY + "=DIR names another";
        }
        if (text.contains("GLIBC_")) {
            return text + ": mpjdev was built for a newer glibc than this system has; build it here, or on a system as old";
        }
        // Texts of musl: its loader has neither these libraries nor the symbols of glibc.
        if (text.contains("Error loading shared library") || text.contains("Error relocating")
                || text.contains("ld-linux")) {
            return text + ": mpjdev needs glibc, and this system seems to have another C library";
        }
        if (System.getProperty(LIBRARY_PROPERTY) != null) {
            return text + " (named by -D" + LIBRARY_PROPERTY + ")";
        }
        return text;
    }
}
