package mpjdev;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Golden messages: Java reads and writes octets that were written by hand and rejects damaged ones. */
@Timeout(60)
class GoldenTest {
    private static final int CAPACITY = 1 << 16;

    static Stream<Golden> sound() throws IOException {
        return Golden.all().stream().filter(g -> !g.damaged);
    }

    static Stream<Golden> canonical() throws IOException {
        return sound().filter(g -> g.canonical);
    }

    static Stream<Golden> damaged() throws IOException {
        return Golden.all().stream().filter(g -> g.damaged);
    }

    @Test
    void shouldFindEveryVectorOfTheManifest() throws IOException {
        List<String> sound = sound().map(g -> g.name).collect(Collectors.toList());
        assertTrue(sound.size() >= 44, sound.toString());
        assertTrue(damaged().count() >= 40);
        assertTrue(sound.containsAll(List.of("all-types-be", "all-types-le", "objects-shared-be", "unused-le")));
    }

    @ParameterizedTest
    @MethodSource("sound")
    void shouldDecodeWithAnObjectReadBuffer(Golden golden) throws Exception {
        try (ObjectReadBuffer in = new ObjectReadBuffer(CAPACITY)) {
            in.load(golden.octets);
            for (int pass = 0; pass < 2; pass++) {
                assertEquals(golden.sections.size(), in.sectionCount());
                for (Golden.Section section : golden.sections) {
                    assertSame(section.type, in.nextType());
                    assertEquals(section.count(), in.nextCount());
                    Object values = AnyArray.make(section.type, section.count());
                    if (section.type == Type.OBJECT) {
                        in.read((Object[]) values, 0, section.count());
                        assertArrayEquals((Object[]) section.values, (Object[]) values);
                    } else {
                        AnyArray.read(in, values, 0, section.count());
                        assertTrue(AnyArray.same(section.values, values), section.type + " differs");
                    }
                }
                assertNull(in.nextType());
                assertEquals(-1, in.nextCount());
                assertThrows(BufferReadException.class, () -> in.read(new int[0], 0, 0));
                in.reset();
            }
        }
    }

    @ParameterizedTest
    @MethodSource("sound")
    void shouldDecodeThePrimitiveSectionsWithAReadBuffer(Golden golden) throws Exception {
        // A capacity of exactly the primary payload is enough.
        try (ReadBuffer in = new ReadBuffer(golden.primary)) {
            in.load(golden.octets);
            for (Golden.Section section : golden.sections) {
                assertSame(section.type, in.nextType());
                assertEquals(section.count(), in.nextCount());
                if (section.type == Type.OBJECT) {
                    return;
                }
                Object values = AnyArray.make(section.type, section.count() + 2);
                AnyArray.read(in, values, 1, section.count());
                for (int i = 0; i < section.count(); i++) {
                    assertEquals(AnyArray.bits(section.values, i), AnyArray.bits(values, i + 1));
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("canonical")
    void shouldEncodeTheGoldenOctets(Golden golden) throws Exception {
        try (ObjectWriteBuffer out = new ObjectWriteBuffer(CAPACITY, golden.order)) {
            for (Golden.Section section : golden.sections) {
                if (section.type == Type.OBJECT) {
                    out.write((Object[]) section.values, 0, section.count());
                } else {
                    AnyArray.write(out, section.values, 0, section.count());
                }
            }
            assertArrayEquals(golden.octets, out.toByteArray());
            assertEquals(golden.octets.length, 16 + golden.primary + golden.secondary);
        }
        if (golden.secondary > 0) {
            return;
        }
        try (WriteBuffer out = new WriteBuffer(golden.primary, golden.order)) {
            for (Golden.Section section : golden.sections) {
                AnyArray.write(out, section.values, 0, section.count());
            }
            assertArrayEquals(golden.octets, out.toByteArray());
        }
    }

    @ParameterizedTest
    @MethodSource("damaged")
    void shouldRejectDamageWithItsOffsetAndKeepTheBuffer(Golden golden) throws Exception {
        try (WriteBuffer out = new WriteBuffer(CAPACITY); ReadBuffer in = new ReadBuffer(CAPACITY)) {
            out.write(new int[] {1}, 0, 1);
            out.write(new char[] {'a', 'b'}, 0, 2);
            in.load(out.toByteArray());
            in.read(new int[1], 0, 1);
            if (golden.damagedSection < 0) {
                BufferReadException e = assertThrows(BufferReadException.class, () -> in.load(golden.octets));
                assertTrue(e.getMessage().contains("at offset " + golden.damageOffset + ":"), e.getMessage());
                // Message and position are unchanged.
                char[] chars = new char[2];
                in.read(chars, 0, 2);
                assertArrayEquals(new char[] {'a', 'b'}, chars);
                return;
            }
            in.load(golden.octets);
            for (Golden.Section section : golden.sections) {
                AnyArray.read(in, AnyArray.make(section.type, section.count()), 0, section.count());
            }
            int[] dest = {7, 7, 7};
            for (int again = 0; again < 2; again++) {
                for (ThrowingRead read : List.<ThrowingRead>of(b -> b.read(dest, 0, 3), ReadBuffer::nextType,
                        ReadBuffer::nextCount, ReadBuffer::sectionCount)) {
                    BufferReadException e = assertThrows(BufferReadException.class, () -> read.on(in));
                    assertTrue(e.getMessage().contains("at offset " + golden.damageOffset + ":"), e.getMessage());
                }
            }
            assertArrayEquals(new int[] {7, 7, 7}, dest);
        }
    }

    /** A read. */
    private interface ThrowingRead {
        void on(ReadBuffer in) throws BufferReadException;
    }

    @Test
    void shouldRejectEveryTruncationOfEveryVector() throws Exception {
        try (ReadBuffer in = new ReadBuffer(CAPACITY)) {
            for (Golden golden : sound().collect(Collectors.toList())) {
                for (int length = 0; length < golden.octets.length; length++) {
                    byte[] cut = java.util.Arrays.copyOf(golden.octets, length);
                    assertThrows(BufferReadException.class, () -> in.load(cut), golden.name);
                }
                byte[] longer = java.util.Arrays.copyOf(golden.octets, golden.octets.length + 1);
                assertThrows(BufferReadException.class, () -> in.load(longer), golden.name);
            }
        }
    }

    @Test
    void shouldSurviveEveryFlippedBitOfEveryVector() throws Exception {
        try (ObjectReadBuffer in = new ObjectReadBuffer(CAPACITY)) {
            for (Golden golden : sound().filter(g -> g.octets.length <= 256).collect(Collectors.toList())) {
                for (int bit = 0; bit < 8 * (8 + golden.primary + 8); bit++) {
                    byte[] flipped = golden.octets.clone();
                    flipped[bit / 8] ^= (byte) (1 << bit % 8);
                    try {
                        in.load(flipped);
                        while (in.nextType() != null) {
                            if (in.nextType() == Type.OBJECT) {
                                break;
                            }
                            assertTrue(in.nextCount() <= golden.primary, "a count without a check");
                            AnyArray.read(in, AnyArray.make(in.nextType(), in.nextCount()), 0, in.nextCount());
                        }
                    } catch (BufferReadException e) {
                        assertTrue(e.getMessage().matches(".*[0-9].*"), e.getMessage());
                    }
                }
            }
        }
    }
}
