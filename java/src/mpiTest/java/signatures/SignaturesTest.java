package signatures;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import mpi.MPI;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@link EverySignature} names all public members of package mpi, and compiles with the jar alone. */
class SignaturesTest {
    private static final int UTF8 = 1;
    private static final int CLASS = 7;
    private static final int FIELD = 9;
    private static final int METHOD = 10;
    private static final int NAME_AND_TYPE = 12;

    @Test
    void shouldCompileWithTheJarAlone(@TempDir Path folder) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        assumeTrue(compiler != null, "this Java has no compiler");
        assertEquals(0, compiler.run(null, null, null, "-cp", System.getProperty("mpjdev.mpj"), "-d", folder.toString(),
                "java/src/mpiTest/java/signatures/EverySignature.java"));
    }

    @Test
    void shouldNameEveryPublicMember() throws Exception {
        Set<String> missing = new TreeSet<>();
        for (Class<?> type : publicClasses()) {
            for (Method method : type.getDeclaredMethods()) {
                // An inherited method is named by the class that has it first.
                if (isPublic(method.getModifiers()) && (!method.isSynthetic() || isFirst(type, method))) {
                    missing.add(key(first(type, method), method.getName(), descriptor(method)));
                }
            }
            for (Constructor<?> constructor : type.getConstructors()) {
                missing.add(key(type, "<init>", MethodType.methodType(void.class, constructor.getParameterTypes())
                        .toMethodDescriptorString()));
            }
            for (Field field : type.getFields()) {
                // A compiler replaces a constant by its value: another test names those.
                boolean isConstant = Modifier.isFinal(field.getModifiers()) && field.getType().isPrimitive()
                        && Modifier.isStatic(field.getModifiers());
                if (!isConstant) {
                    missing.add(key(type, field.getName(), field.getType().descriptorString()));
                }
            }
        }
        missing.removeIf(member -> member.contains(".toString()"));
        assertTrue(missing.contains("mpi.Comm.Send(Ljava/lang/Object;IILmpi/Datatype;II)V"), missing::toString);
        missing.removeAll(named());
        assertEquals(Set.of(), missing, "EverySignature.java does not name them");
    }

    @Test
    void shouldHaveTheSpecifiedValues() {
        assertArrayEquals(new int[] {-1, -2, -2, -3, 0, 1, 2, 3, 1, 2, 1, 2, 3, 4, 1, 2, 3, 4, 0, 0, 32},
                EverySignature.numbers());
        assertArrayEquals(IntStream.rangeClosed(1, 17).toArray(), EverySignature.errorClasses());
        long constants = Stream.of(MPI.class.getFields())
                .filter(field -> Modifier.isFinal(field.getModifiers()) && field.getType() == int.class).count();
        // NUM_OF_PROCESSORS is no number of the specification.
        assertEquals(EverySignature.numbers().length + EverySignature.errorClasses().length + 1, constants);
        assertEquals("IDENT", EverySignature.constant(MPI.IDENT));
    }

    private static boolean isPublic(int modifiers) {
        return Modifier.isPublic(modifiers);
    }

    private static String key(Class<?> type, String name, String descriptor) {
        return type.getName() + "." + name + descriptor;
    }

    private static String descriptor(Method method) {
        return MethodType.methodType(method.getReturnType(), method.getParameterTypes()).toMethodDescriptorString();
    }

    private static boolean isFirst(Class<?> type, Method method) {
        return first(type, method) == type;
    }

    /** Returns the public class furthest up that has the method. */
    private static Class<?> first(Class<?> type, Method method) {
        Class<?> first = type;
        for (Class<?> above = type; above != Object.class; above = above.getSuperclass()) {
            if (isPublic(above.getModifiers()) && Stream.of(above.getMethods()).anyMatch(
                    m -> m.getName().equals(method.getName()) && descriptor(m).equals(descriptor(method)))) {
                first = above;
            }
        }
        return first;
    }

    private static List<Class<?>> publicClasses() throws Exception {
        Path folder = Path.of(MPI.class.getProtectionDomain().getCodeSource().getLocation().toURI()).resolve("mpi");
        List<Class<?>> classes = new ArrayList<>();
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.toList()) {
                String name = file.getFileName().toString();
                if (name.endsWith(".class") && !name.startsWith("package-info")) {
                    Class<?> type = Class.forName("mpi." + name.replace(".class", ""));
                    if (isPublic(type.getModifiers())) {
                        classes.add(type);
                    }
                }
            }
        }
        return classes;
    }

    /** Returns the members that the class file of EverySignature refers to. */
    private static Set<String> named() throws Exception {
        Set<String> named = new TreeSet<>();
        for (String file : List.of("EverySignature.class", "EverySignature$Function.class")) {
            named.addAll(named(file));
        }
        return named;
    }

    private static Set<String> named(String classFile) throws Exception {
        Set<String> named = new TreeSet<>();
        try (InputStream file = EverySignature.class.getResourceAsStream(classFile)) {
            Object[] pool = constantPool(new DataInputStream(file));
            for (Object entry : pool) {
                if (entry instanceof int[] && ((int[]) entry)[0] != NAME_AND_TYPE) {
                    int[] member = (int[]) entry;
                    int[] nameAndType = (int[]) pool[member[2]];
                    String owner = (String) pool[(Integer) pool[member[1]]];
                    String name = (String) pool[nameAndType[1]];
                    String descriptor = (String) pool[nameAndType[2]];
                    if (owner.startsWith("mpi/")) {
                        Class<?> type = Class.forName(owner.replace('/', '.'));
                        Class<?> first = Stream.of(type.getMethods())
                                .filter(m -> m.getName().equals(name) && descriptor(m).equals(descriptor)).findFirst()
                                .<Class<?>>map(m -> first(type, m)).orElse(type);
                        named.add(key(first, name, descriptor));
                    }
                }
            }
        }
        return named;
    }

    /** Returns texts, the numbers of classes' names, and members as kind and two numbers. */
    private static Object[] constantPool(DataInputStream in) throws IOException {
        in.readLong();
        Object[] pool = new Object[in.readUnsignedShort()];
        for (int i = 1; i < pool.length; i++) {
            int kind = in.readUnsignedByte();
            switch (kind) {
                case UTF8:
                    pool[i] = in.readUTF();
                    break;
                case CLASS:
                    pool[i] = in.readUnsignedShort();
                    break;
                case FIELD:
                case METHOD:
                case NAME_AND_TYPE:
                    pool[i] = new int[] {kind, in.readUnsignedShort(), in.readUnsignedShort()};
                    break;
                default:
                    i += skip(in, kind);
            }
        }
        return pool;
    }

    /** Skips an entry; returns the number of entries that it takes beyond one. */
    private static int skip(DataInputStream in, int kind) throws IOException {
        final int longNumber = 5;
        final int doubleNumber = 6;
        final int reference = 15;
        if (kind == longNumber || kind == doubleNumber) {
            in.readLong();
            return 1;
        }
        boolean hasTwoOctets = kind == 8 || kind == 16 || kind == 19 || kind == 20;
        in.skipBytes(hasTwoOctets ? 2 : kind == reference ? reference / 5 : 4);
        return 0;
    }
}
