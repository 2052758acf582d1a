package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** Agreement of both sides of the boundary. A mismatch would be memory corruption, not an exception. */
class NativeTest {
    @Test
    void shouldDeclareEveryNativeMethodWithTheSignatureOfItsShell() {
        Set<String> declared = new TreeSet<>();
        for (Method method : Native.class.getDeclaredMethods()) {
            if (Modifier.isNative(method.getModifiers())) {
                String type = MethodType.methodType(method.getReturnType(), method.getParameterTypes())
                        .toMethodDescriptorString();
                declared.add(method.getName() + type);
            }
        }
        Set<String> listed = new TreeSet<>(List.of(Native.table().split("\n")));
        Set<String> unlisted = new TreeSet<>(declared);
        unlisted.removeAll(listed);
        listed.removeAll(declared);
        assertTrue(unlisted.isEmpty() && listed.isEmpty(), "Native.java alone has " + unlisted
                + "; natives! in rust/jni/src/natives.rs alone has " + listed);
    }

    @Test
    void shouldHaveTheFailureCodesOfTheNativeSide() throws IllegalAccessException {
        List<String> names = new ArrayList<>();
        for (Field field : NativeFailure.class.getFields()) {
            if (field.getType() == int.class) {
                names.add(field.getName());
                assertEquals(names.size(), field.getInt(null), field.getName());
            }
        }
        assertEquals(names, List.of(Native.failureNames().split("\n")));
    }

    @Test
    void shouldHaveTheConstantsOfTheNativeSide() throws ReflectiveOperationException {
        Class<?>[] homes = {Native.class, NativeStatus.class, mpjdev.Buffer.class};
        for (String line : Native.constants().split("\n")) {
            String[] parts = line.split("=");
            int found = 0;
            for (Class<?> home : homes) {
                for (Field field : home.getDeclaredFields()) {
                    if (field.getName().equals(parts[0])) {
                        field.setAccessible(true);
                        assertEquals(Long.parseLong(parts[1]), ((Number) field.get(null)).longValue(), parts[0]);
                        found++;
                    }
                }
            }
            assertEquals(1, found, parts[0]);
        }
    }

    @Test
    void shouldThrowNativePanicAndReleaseTheBuffer() {
        long handle = Native.newReader(8);
        NativePanic panic = assertThrows(NativePanic.class, () -> Native.panic(handle, "on purpose \u00e9"));
        assertEquals("internal error: on purpose \u00e9", panic.getMessage());
        // The buffer is no longer in use.
        assertEquals(8, Native.capacity(handle));
        Native.close(handle);
        assertThrows(IllegalStateException.class, () -> Native.panic(handle, "never"));
    }

    @Test
    void shouldRejectStaleAndInventedHandles() {
        long handle = Native.newReader(8);
        Native.close(handle);
        Native.close(handle);
        for (long bad : new long[] {handle, 0, -1, Long.MAX_VALUE, Long.MIN_VALUE, handle + 1}) {
            assertThrows(IllegalStateException.class, () -> Native.capacity(bad));
        }
    }
}
