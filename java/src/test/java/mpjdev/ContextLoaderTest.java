package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Exceptions of native code under context class loaders as containers set them. The loaders have no effect.
 */
@Timeout(120)
class ContextLoaderTest {
    /** Overflows a buffer under several loaders, and with little stack left. */
    static final class Overflow {
        private Overflow() {}

        public static void main(String[] args) throws Exception {
            ClassLoader stopped = new ClassLoader() {
                @Override
                protected Class<?> loadClass(String name, boolean resolve) {
                    throw new IllegalStateException("stopped");
                }
            };
            URL[] path = Arrays.stream(System.getProperty("java.class.path").split(":")).map(entry -> {
                try {
                    return Path.of(entry).toUri().toURL();
                } catch (java.net.MalformedURLException e) {
                    throw new AssertionError(e);
                }
            }).toArray(URL[]::new);
            // This loader has other classes with the names of ours.
            ClassLoader apart = new URLClassLoader(path, ClassLoader.getPlatformClassLoader());
            for (ClassLoader loader : new ClassLoader[] {stopped, apart, null}) {
                Thread.currentThread().setContextClassLoader(loader);
                System.out.println(overflow());
            }
            System.out.println("deep: " + deep(0));
        }

        private static String overflow() {
            try (WriteBuffer b = new WriteBuffer(8)) {
                b.write(new int[100], 0, 100);
                return "no exception";
            } catch (BufferOverflowException e) {
                return "overflow";
            } catch (RuntimeException e) {
                return e.toString();
            }
        }

        /** Recurses to the end of the stack with a native failure on each level. */
        private static boolean deep(int level) {
            try {
                if (level > 500 && level % 50 == 0) {
                    overflow();
                }
                return deep(level + 1);
            } catch (StackOverflowError e) {
                return true;
            }
        }
    }

    @Test
    void shouldThrowTheSameUnderAnyContextLoader() throws Exception {
        String output = new Fork().run(Overflow.class).ok();
        assertEquals(3, output.split("overflow\\n", -1).length - 1, output);
        assertTrue(output.contains("deep: true"), output);
    }
}
