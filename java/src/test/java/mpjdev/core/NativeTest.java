package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** Both sides of the boundary agree: a mismatch would be memory corruption, not an exception. */
class NativeTest {
    @Test
    void everyNativeMethodHasTheSignatureThatItsShellExpects() {
        Set<String> declared = new TreeSet<>();
        for (Method method : Native.class.getDeclaredMethods()) {
            if (Modifier.isNative(method.getModifiers())) {
                String type = MethodType.methodType(method.getReturnType(), method.getParameterTypes())
                        .toMethodDescriptorString();
                declared.add(method.getName() + type);
            }
        }
        assertEquals(declared, new TreeSet<>(List.of(Native.table().split("\n"))));
    }

    @Test
    void failureCodesAreTheNativeOnes() throws IllegalAccessException {
        List<String> names = new ArrayList<>();
        for (Field field : Failure.class.getFields()) {
            if (field.getType() == int.class) {
                names.add(field.getName());
                assertEquals(names.size(), field.getInt(null), field.getName());
            }
        }
        assertEquals(names, List.of(Native.failureNames().split("\n")));
    }

    @Test
    void staleAndForgedHandlesAreExceptions() {
        long handle = Native.newReader(8);
        Native.close(handle);
        Native.close(handle);
        for (long bad : new long[] {handle, 0, -1, Long.MAX_VALUE, Long.MIN_VALUE, handle + 1}) {
            assertThrows(IllegalStateException.class, () -> Native.capacity(bad));
        }
    }
}
