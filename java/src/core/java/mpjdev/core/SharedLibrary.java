package mpjdev.core;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;
import java.security.CodeSource;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * The native library that {@code mpjrun} unpacks once for all ranks of a job.
 *
 * <p>A rank uses it only if it is equal to the library in the jar of this class, so another jar of mpjdev on
 * the class path works with its own library. The comparison is shorter than opening a resource of
 * the jar (decision 0030). A rank that takes this library does not load {@link NativeLoader}.
 */
final class SharedLibrary {
    /** Variable that the launcher sets: CRC-32 in eight hexadecimal digits, a colon, and the path. */
    static final String VARIABLE = "MPJDEV_LIBRARY";

    private static final int CRC_DIGITS = 8;
    private static final int HEXADECIMAL = 16;

    /** Path of the library; null if it does not exist or the rank must not use it. */
    final String path;
    /** Reason that the rank must not use it; null without a variable and for a good library. */
    final String rejection;

    private SharedLibrary(String path, String rejection) {
        this.path = path;
        this.rejection = rejection;
    }

    /**
     * Loads the library. Returns false if the rank must load another one, and prints the reason unless a
     * property asks for that.
     */
    static boolean load() {
        if (System.getProperty(NativeLoader.LIBRARY_PROPERTY) != null) {
            return false;
        }
        SharedLibrary shared = find(System.getenv(VARIABLE), entry());
        String why = shared.rejection;
        if (shared.path != null) {
            synchronized (System.getProperties()) {
                try {
                    System.load(shared.path);
                    System.setProperty(NativeLoader.UNPACKED_PROPERTY, shared.path);
                    return true;
                } catch (UnsatisfiedLinkError e) {
                    why = String.valueOf(e.getMessage());
                    if (why.contains(NativeLoader.ELSEWHERE)) {
                        throw NativeLoader.explained(e);
                    }
                }
            }
        }
        // The other ranks of the job would print the same.
        if (why != null && "0".equals(System.getenv("MPJDEV_RANK"))) {
            System.err.println("mpjdev: each rank unpacks its own native library instead of taking mpjrun's: " + why);
        }
        return false;
    }

    /** Returns the name of the library in the jar of this class. */
    static String entry() {
        return "META-INF/native/" + platform() + "/" + System.mapLibraryName("mpjdev");
    }

    /**
     * Returns {@code linux-x86_64}, {@code linux-aarch64}, or the same form for a platform that is not
     * supported.
     */
    static String platform() {
        String os = System.getProperty("os.name").toLowerCase(java.util.Locale.ROOT);
        String arch = System.getProperty("os.arch");
        switch (arch) {
            case "amd64":
                arch = "x86_64";
                break;
            case "arm64":
                arch = "aarch64";
                break;
            default:
                break;
        }
        return os + "-" + arch;
    }

    /**
     * Checks the library of the launcher.
     *
     * @param value value of the variable, may be null
     * @param entry name of the library in the jar of this class
     * @return the library, or the reason against it
     */
    static SharedLibrary find(String value, String entry) {
        if (value == null) {
            return new SharedLibrary(null, null);
        }
        if (value.length() <= CRC_DIGITS || value.charAt(CRC_DIGITS) != ':') {
            return new SharedLibrary(null, VARIABLE + "=" + value + " is not CRC-32:PATH");
        }
        File file = new File(value.substring(CRC_DIGITS + 1));
        String jar = ownJar();
        if (jar == null) {
            return new SharedLibrary(null, "mpjdev's classes are in no jar");
        }
        try (ZipFile zip = new ZipFile(jar)) {
            ZipEntry own = zip.getEntry(entry);
            if (own == null || own.getCrc() != Long.parseLong(value.substring(0, CRC_DIGITS), HEXADECIMAL)) {
                return new SharedLibrary(null, "mpjrun is of another version than " + jar);
            }
            if (file.length() != own.getSize()) {
                return new SharedLibrary(null, "there is no such library at " + file);
            }
            return new SharedLibrary(file.getPath(), null);
        } catch (IOException | NumberFormatException e) {
            return new SharedLibrary(null, e.toString());
        }
    }

    /** Returns the jar of this class, or null if it is in no jar. */
    private static String ownJar() {
        CodeSource source = SharedLibrary.class.getProtectionDomain().getCodeSource();
        URL place = source == null ? null : source.getLocation();
        if (place == null || !place.getProtocol().equals("file")) {
            return null;
        }
        try {
            File file = new File(new URI(place.toString()));
            return file.isFile() ? file.getPath() : null;
        } catch (URISyntaxException | IllegalArgumentException e) {
            return null;
        }
    }
}
