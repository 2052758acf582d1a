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
 * The native library that {@code mpjrun} has unpacked once for all ranks of a job.
 *
 * <p>It is taken only when it is the very one that this class's own jar has; so another jar of mpjdev on the class path
 * works with its own library. Looking that up takes a third of a millisecond, and a resource of a jar several.
 */
final class SharedLibrary {
    /** Set by the launcher: CRC-32 in eight hexadecimal digits, a colon, and the path. */
    static final String VARIABLE = "MPJDEV_LIBRARY";

    private static final int CRC_DIGITS = 8;
    private static final int HEXADECIMAL = 16;

    /** Its path; none when there is none, or when it is not to be used. */
    final String path;
    /** Why not; none when there is nothing to say. */
    final String rejection;

    private SharedLibrary(String path, String rejection) {
        this.path = path;
        this.rejection = rejection;
    }

    /**
     * Looks at what the launcher offers.
     *
     * @param value the variable's value, may be null
     * @param entry the name of our own library in our own jar
     * @return what there is
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

    /** The jar that this class is from; none when it is from elsewhere. */
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
