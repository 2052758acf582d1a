package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import mpjdev.Comm;
import mpjdev.Mpjrun;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The library that the launcher unpacks once for all ranks. A rank with another version uses its own. */
@Timeout(180)
@Tag("jdk")
class SharedLibraryTest {
    private static final String ENTRY =
            SharedLibrary.entry();
    private static final String REFUSED = "mpjdev: each rank unpacks its own native library instead of taking mpjrun's: ";

    @TempDir
    Path folder;

    private Path command;
    private Path jar;

    /** Prints the origin of its library. */
    static final class Load {
        private Load() {}

        public static void main(String[] args) throws Exception {
            Comm.init(args);
            boolean shared = false;
            boolean other = false;
            for (String line : Files.readAllLines(Path.of("/proc/self/maps"))) {
                shared |= line.contains("/memfd:libmpjdev.so");
                other |= line.contains("mpjdev") && line.contains(".so") && !line.contains("/memfd:");
            }
            System.out.println("shared " + shared + ", other " + other);
            Comm.finish();
        }
    }

    /** Makes an installation: the command beside the folder of its jar. */
    @BeforeEach
    void install() throws Exception {
        command = folder.resolve("bin/mpjdev");
        jar = folder.resolve("lib/mpjdev.jar");
        Files.createDirectories(command.getParent());
        Files.createDirectories(jar.getParent());
        Files.copy(Path.of(System.getProperty("mpjdev.command")), command);
        pack(jar, "");
    }

    /** Packs the classes and the library of mpjdev, with additional octets at the end of the library. */
    private static void pack(Path to, String more) throws Exception {
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(to))) {
            Path classes = Path.of(Native.class.getProtectionDomain().getCodeSource().getLocation().toURI());
            try (Stream<Path> files = Files.walk(classes)) {
                for (Path file : files.filter(Files::isRegularFile).toList()) {
                    out.putNextEntry(new ZipEntry(classes.relativize(file).toString()));
                    Files.copy(file, out);
                }
            }
            out.putNextEntry(new ZipEntry(ENTRY));
            copyLibrary(out);
            out.write(more.getBytes("UTF-8"));
        }
    }

    private static void copyLibrary(OutputStream out) throws IOException {
        try (InputStream in = SharedLibrary.class.getResourceAsStream("/" + ENTRY)) {
            in.transferTo(out);
        }
    }

    /** Returns the class path of this JVM with a jar of mpjdev instead of its classes. */
    private static String classPath(Path jar) {
        List<String> path = new ArrayList<>(List.of(jar.toString()));
        for (String entry : System.getProperty("java.class.path").split(":")) {
            boolean isMain = Files.exists(Path.of(entry, "mpjdev/core/Native.class"));
            if (!isMain && !Files.exists(Path.of(entry, ENTRY))) {
                path.add(entry);
            }
        }
        return String.join(":", path);
    }

    private Mpjrun job(Path jar) {
        return new Mpjrun(3).launcher(command).classPath(classPath(jar));
    }

    @Test
    void shouldLoadTheLibraryOfTheLauncher() throws Exception {
        // A rank has no folder to unpack the library in.
        String nowhere = "-Dmpjdev.tmpdir=" + folder.resolve("missing");
        for (String script : new String[] {"exec \"$@\"", "\"$@\"; exit $?"}) {
            Mpjrun.Job job = job(jar).jvm(nowhere).by(script).run(Load.class);
            assertEquals(0, job.status, job.toString());
            assertEquals(List.of("shared true, other false", "shared true, other false", "shared true, other false"),
                    job.lines());
            assertEquals("", job.err);
        }
    }

    @Test
    void shouldLoadTheLibraryOfTheProperty() throws Exception {
        Path own = folder.resolve("mpjdev-own.so");
        try (OutputStream out = Files.newOutputStream(own)) {
            copyLibrary(out);
        }
        Mpjrun.Job job = job(jar).jvm("-Dmpjdev.library=" + own).run(Load.class);
        assertEquals("shared false, other true", job.lines().get(0), job.toString());
        assertEquals("", job.err);
    }

    @Test
    void shouldUnpackItsOwnLibraryWhenTheLauncherHasAnother() throws Exception {
        Path other = folder.resolve("other.jar");
        pack(other, "another version");
        Path temporary = Files.createDirectory(folder.resolve("temporary"));
        Mpjrun.Job job = job(other).jvm("-Djava.io.tmpdir=" + temporary).run(Load.class);
        assertEquals(0, job.status, job.toString());
        assertEquals("shared false, other true", job.lines().get(0), job.toString());
        assertEquals(REFUSED + "mpjrun is of another version than " + other + "\n", job.err);
        try (Stream<Path> left = Files.list(temporary)) {
            assertEquals(List.of(), left.toList());
        }
    }

    @Test
    void shouldGiveASecondClassLoaderARemedy() throws Exception {
        Mpjrun.Job job = job(jar).run(NativeLoaderTest.Twice.class);
        assertTrue(job.out.contains("first: loaded 8"), job.toString());
        assertTrue(job.out.contains("second: java.lang.UnsatisfiedLinkError: mpjdev is already loaded by"
                + " another class loader"), job.toString());
    }

    @Test
    void shouldNameTheReasonOfARejection() {
        assertNull(SharedLibrary.find(null, ENTRY).rejection);
        for (String said : new String[] {"", "12345678", "/tmp/libmpjdev.so", "123456789:/tmp/x"}) {
            SharedLibrary shared = SharedLibrary.find(said, ENTRY);
            assertNull(shared.path);
            assertEquals("MPJDEV_LIBRARY=" + said + " is not CRC-32:PATH", shared.rejection);
        }
        assertEquals("mpjdev's classes are in no jar", SharedLibrary.find("12345678:/tmp/x", ENTRY).rejection);
    }
}
