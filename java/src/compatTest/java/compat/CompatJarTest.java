package compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeSet;
import java.util.zip.ZipFile;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code mpj-compat.jar} is a replacement of {@code mpj.jar}. */
class CompatJarTest {
    /** Imports all packages at once: simple names are unique but for those that MPJ Express has twice. */
    private static final String PROGRAM = """
            import mpi.*;
            import mpjbuf.*;
            import mpjdev.*;

            class Program {
                Buffer buffer = new Buffer(BufferFactory.create(8), MPI.SEND_OVERHEAD, 8);
                mpi.Status status;

                int pack(Intracomm comm) throws BufferException, MPJDevException {
                    buffer.putSectionHeader(Type.INT);
                    comm.mpjdevComm.send(buffer, 0, 0, true);
                    Type type = status.type;
                    return comm.Pack(null, 0, 0, MPI.INT, buffer, status.count);
                }
            }
            """;

    private final Path jar = Path.of(System.getProperty("mpjdev.compat"));

    @Test
    void shouldHoldThePackagesTheCoreAndTheLibrary() throws Exception {
        TreeSet<String> folders = new TreeSet<>();
        try (ZipFile zip = new ZipFile(jar.toFile())) {
            zip.stream().filter(entry -> !entry.isDirectory())
                    .forEach(entry -> folders.add(entry.getName().replaceFirst("[^/]*$", "")));
        }
        assertTrue(folders.removeIf(folder -> folder.startsWith("META-INF/native/linux-")), folders::toString);
        assertEquals(List.of("META-INF/", "mpi/", "mpjbuf/", "mpjdev/", "mpjdev/core/", "xdev/"), List.copyOf(folders));
    }

    @Test
    void shouldCompileAProgramThatImportsAllPackages(@TempDir Path folder) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        assumeTrue(compiler != null, "this Java has no compiler");
        Path source = Files.writeString(folder.resolve("Program.java"), PROGRAM);
        assertEquals(0, compiler.run(null, null, null, "-cp", jar.toString(), "-d", folder.toString(), source.toString()));
    }
}
