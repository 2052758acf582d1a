package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import mpjdev.Fork;
import mpjdev.WriteBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Loading of the library: where it is found, that no file remains, and that errors name a remedy. */
@Timeout(120)
class NativeLoaderTest {
    @TempDir
    Path folder;

    /** Loads the library and prints the result or the error. */
    static final class Load {
        private Load() {}

        public static void main(String[] args) {
            try (WriteBuffer b = new WriteBuffer(8)) {
                System.out.println("loaded " + b.toByteArray().length);
            } catch (UnsatisfiedLinkError | ExceptionInInitializerError e) {
                System.out.println(e.getClass().getSimpleName() + ": " + e.getMessage());
            }
        }
    }

    private static void copyLibrary(Path to) throws Exception {
        String name = "/" + SharedLibrary.entry();
        try (InputStream in = NativeLoader.class.getResourceAsStream(name)) {
            Files.copy(in, to, StandardCopyOption.REPLACE_EXISTING);
        }
    }

    private static List<String> names(Path folder) throws Exception {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(f -> f.getFileName().toString()).collect(Collectors.toList());
        }
    }

    @Test
    void shouldNameThePlatformAsTheJarNamesIt() {
        assertTrue(List.of("linux-x86_64", "linux-aarch64").contains(SharedLibrary.platform()), SharedLibrary.platform());
    }

    @Test
    void shouldUnpackBelowTheRequestedFolderAndLeaveNothing() throws Exception {
        String output = new Fork().with("-Dmpjdev.tmpdir=" + folder).run(Load.class).ok();
        assertTrue(output.contains("loaded 16"), output);
        assertEquals(List.of(), names(folder));
    }

    @Test
    void shouldUnpackBelowTheTemporaryDirectoryAndLeaveNothing() throws Exception {
        String output = new Fork().with("-Djava.io.tmpdir=" + folder).run(Load.class).ok();
        assertTrue(output.contains("loaded 16"), output);
        assertFalse(names(folder).stream().anyMatch(name -> name.startsWith("mpjdev-")), names(folder).toString());
    }

    @Test
    void shouldNameAMissingFolder() throws Exception {
        String output = new Fork().with("-Dmpjdev.tmpdir=" + folder.resolve("missing")).run(Load.class).ok();
        assertTrue(output.contains("UnsatisfiedLinkError") && output.contains("missing")
                && output.contains("-Dmpjdev.tmpdir=DIR"), output);
    }

    @Test
    void shouldHintAtNoexecWhenMappingFails() throws Exception {
        Path noexec = null;
        for (String line : Files.readAllLines(Path.of("/proc/mounts"))) {
            String[] words = line.split(" ");
            if (Arrays.asList(words[3].split(",")).contains("noexec") && Files.isDirectory(Path.of(words[1]))
                    && Files.isWritable(Path.of(words[1])) && words[2].equals("tmpfs")) {
                noexec = Path.of(words[1]);
            }
        }
        assumeTrue(noexec != null, "no writable file system here is mounted noexec");
        Path inside = Files.createTempDirectory(noexec, "mpjdev-test");
        try {
            String output = new Fork().with("-Dmpjdev.tmpdir=" + inside).run(Load.class).ok();
            assertTrue(output.contains("noexec") && output.contains("-Dmpjdev.tmpdir=DIR"), output);
            assertEquals(List.of(), names(inside), "no file remains after a failure either");
        } finally {
            Files.delete(inside);
        }
    }

    /** The texts are those of glibc 2.36 and musl 1.2. */
    @Test
    void shouldAddARemedyToErrorsOfTheSystem() {
        String so = "/tmp/mpjdev-1/libmpjdev.so";
        String[][] cases = {
            {so + ": failed to map segment from shared object", "noexec"},
            {"/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by " + so + ")", "newer glibc"},
            {"Error loading shared library libgcc_s.so.1: No such file or directory (needed by " + so + ")", "needs glibc"},
            {"Error relocating " + so + ": __res_init: symbol not found", "needs glibc"},
        };
        for (String[] c : cases) {
            String text = NativeLoader.explain(c[0]);
            assertTrue(text.startsWith(c[0] + ": ") && text.contains(c[1]), text);
        }
        assertEquals("anything else", NativeLoader.explain("anything else"));
    }

    @Test
    void shouldLoadAnExplicitPathAndNothingElse() throws Exception {
        Path library = folder.resolve("own name.so");
        copyLibrary(library);
        String output = new Fork().withoutLibrary().with("-Dmpjdev.library=" + library).run(Load.class).ok();
        assertTrue(output.contains("loaded 16"), output);
        assertTrue(Files.exists(library), "a library of the user is not deleted");
        output = new Fork().with("-Dmpjdev.library=" + folder.resolve("missing.so")).run(Load.class).ok();
        assertTrue(output.contains("UnsatisfiedLinkError") && output.contains("missing.so"), output);
        Path empty = Files.writeString(folder.resolve("text.so"), "no library");
        output = new Fork().with("-Dmpjdev.library=" + empty).run(Load.class).ok();
        assertTrue(output.contains("UnsatisfiedLinkError") && output.contains("text.so"), output);
    }

    @Test
    void shouldNameThePlatformWithoutALibrary() throws Exception {
        String output = new Fork().withoutLibrary().run(Load.class).ok();
        assertTrue(output.contains("/META-INF/native/" + SharedLibrary.platform()) && output.contains("glibc")
                && output.contains("-Dmpjdev.library=FILE"), output);
        output = new Fork().with("-Dos.arch=sparc").run(Load.class).ok();
        assertTrue(output.contains("/META-INF/native/linux-sparc/"), output);
    }

    @Test
    void shouldRejectALibraryOfAnotherVersion() throws Exception {
        // The same class with another number, as in a jar of another version.
        Path source = folder.resolve("Native.java");
        Files.writeString(source, Files.readString(Path.of("java/src/core/java/mpjdev/core/Native.java"))
                .replaceFirst("int ABI = \\d+;", "int ABI = 4711;"));
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        assumeTrue(compiler != null, "this Java has no compiler");
        assertEquals(0, compiler.run(null, null, null, "-nowarn", "--release", "17", "-cp",
                System.getProperty("java.class.path"), "-d", folder.toString(), source.toString()));
        String output = new Fork().ahead(folder).run(Load.class).ok();
        assertTrue(output.contains("UnsatisfiedLinkError") && output.contains("ABI " + Native.ABI)
                && output.contains("4711"), output);
    }

    /** Loads the engine twice, through loaders that share nothing. */
    static final class Twice {
        private Twice() {}

        public static void main(String[] args) throws Exception {
            String first = load();
            System.out.println("first: " + first);
            System.out.println("second: " + load());
            System.out.println("mine: " + Native.abi());
        }

        private static String load() throws Exception {
            URL[] path = Arrays.stream(System.getProperty("java.class.path").split(":")).map(entry -> {
                try {
                    return Path.of(entry).toUri().toURL();
                } catch (java.net.MalformedURLException e) {
                    throw new AssertionError(e);
                }
            }).toArray(URL[]::new);
            URLClassLoader loader = new URLClassLoader(path, ClassLoader.getPlatformClassLoader());
            Class<?> buffers = Class.forName("mpjdev.ReadBuffer", true, loader);
            assertNotEquals(mpjdev.ReadBuffer.class, buffers);
            KEPT.add(loader);
            try {
                Object buffer = buffers.getConstructor(int.class).newInstance(8);
                return "loaded " + buffers.getMethod("capacity").invoke(buffer);
            } catch (InvocationTargetException e) {
                return e.getCause().toString();
            }
        }

        private static final List<ClassLoader> KEPT = new java.util.ArrayList<>();
    }

    @Test
    void shouldGiveASecondClassLoaderARemedy() throws Exception {
        for (boolean explicit : new boolean[] {false, true}) {
            Fork fork = new Fork().with("-Dmpjdev.tmpdir=" + folder);
            Path library = folder.resolve("explicit.so");
            if (explicit) {
                copyLibrary(library);
                fork.with("-Dmpjdev.library=" + library);
            }
            Fork.Result result = fork.run(Twice.class);
            Files.deleteIfExists(library);
            assertTrue(result.output.contains("first: loaded 8"), result.output);
            assertTrue(result.output.contains("second: java.lang.UnsatisfiedLinkError: mpjdev is already loaded by"
                    + " another class loader"), result.output);
            assertFalse(result.output.contains("mine: "), "a third loader fails too");
            assertEquals(List.of(), names(folder));
        }
    }

    /** Drops the loader that has the engine and loads the engine again. */
    static final class Again {
        private Again() {}

        public static void main(String[] args) throws Exception {
            System.out.println("first: " + Twice.load());
            Twice.KEPT.clear();
            long end = System.nanoTime() + 20_000_000_000L;
            String second;
            do {
                System.gc();
                second = Twice.load();
                Twice.KEPT.clear();
            } while (!second.startsWith("loaded") && System.nanoTime() < end);
            System.out.println("second: " + second);
        }
    }

    @Test
    void shouldLoadAgainAfterTheFirstLoaderIsCollected() throws Exception {
        String output = new Fork().run(Again.class).ok();
        assumeTrue(output.contains("second: loaded 8"), "the first loader was not collected: " + output);
    }

    @Test
    void shouldLoadOnce() {
        assertSame(Native.ABI, Native.abi());
        assertThrows(IllegalArgumentException.class, () -> Native.newReader(-1));
    }
}
