package mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.TreeSet;
import java.util.zip.ZipFile;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import mpjdev.Mpjrun;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** {@code mpj.jar} alone is enough to compile and to run a program. */
@Timeout(180)
class JarTest {
    private final Path jar = Path.of(System.getProperty("mpjdev.mpj"));

    @Test
    void shouldHoldThePackageTheCoreAndTheLibrary() throws Exception {
        TreeSet<String> folders = new TreeSet<>();
        try (ZipFile zip = new ZipFile(jar.toFile())) {
            zip.stream().filter(entry -> !entry.isDirectory())
                    .forEach(entry -> folders.add(entry.getName().replaceFirst("[^/]*$", "")));
            assertTrue(zip.stream().anyMatch(entry -> entry.getName().equals("mpi/MPI.class")));
        }
        assertTrue(folders.removeIf(folder -> folder.startsWith("META-INF/native/linux-")), folders::toString);
        assertEquals(List.of("META-INF/", "mpi/", "mpjdev/core/"), List.copyOf(folders));
    }

    @Test
    void shouldCompileAndRunAProgram(@TempDir Path folder) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        assumeTrue(compiler != null, "this Java has no compiler");
        assertEquals(0, compiler.run(null, null, null, "-cp", jar.toString(), "-d", folder.toString(),
                "java/src/mpiExamples/java/hello/Hello.java"));
        Mpjrun.Job job = new Mpjrun(2).classPath(folder + ":" + jar).run(hello.Hello.class);
        assertEquals(0, job.status, job::toString);
        assertEquals(List.of("the sum is 10.0"), job.lines());
        assertEquals("", job.err);
    }
}
