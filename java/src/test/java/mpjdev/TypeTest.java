package mpjdev;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import mpjdev.core.Types;
import org.junit.jupiter.api.Test;

/** Type codes: those of the message format on both sides of the boundary. */
class TypeTest {
    @Test
    void shouldHaveTheCodesOfTheFormat() throws Exception {
        assertEquals("[BYTE, CHAR, SHORT, BOOLEAN, INT, LONG, FLOAT, DOUBLE, OBJECT]", Arrays.toString(Type.values()));
        int[] codes = {Types.BYTE, Types.CHAR, Types.SHORT, Types.BOOLEAN, Types.INT, Types.LONG, Types.FLOAT,
            Types.DOUBLE, Types.OBJECT};
        for (int i = 0; i < codes.length; i++) {
            assertEquals(i, codes[i]);
            assertEquals(i, Type.values()[i].code());
            assertSame(Type.values()[i], Type.ofCode(i));
        }
    }

    @Test
    void shouldPutTheCodeIntoTheSectionHeader() {
        for (Type type : AnyArray.TYPES) {
            try (WriteBuffer b = new WriteBuffer(8)) {
                AnyArray.write(b, AnyArray.make(type, 0), 0, 0);
                assertEquals(type.code(), b.toByteArray()[8]);
            }
        }
    }

    @Test
    void shouldReturnTheTypeOfEveryArray() {
        for (Type type : AnyArray.TYPES) {
            assertSame(type, Type.ofArray(AnyArray.make(type, 1)));
        }
        assertSame(Type.OBJECT, Type.ofArray(new Object[0]));
        assertSame(Type.OBJECT, Type.ofArray(new String[0]));
        assertSame(Type.OBJECT, Type.ofArray(new int[0][0]));
        assertThrows(IllegalArgumentException.class, () -> Type.ofArray("text"));
    }
}
