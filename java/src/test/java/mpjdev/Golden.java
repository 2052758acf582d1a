package mpjdev;

import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** One message of tests/golden: its octets and their meaning. MANIFEST.md there defines the notation. */
final class Golden {
    private static final Path FOLDER = Path.of("tests", "golden");

    final String name;
    final byte[] octets;
    final List<Section> sections = new ArrayList<>();
    ByteOrder order;
    boolean canonical = true;
    /** For a damaged message: offset of the field, and number of the section or -1 if the load fails. */
    boolean damaged;
    long damageOffset;
    int damagedSection = -1;
    int primary = -1;
    int secondary = -1;

    /** A section: its values as an array of its type. */
    static final class Section {
        final Type type;
        final Object values;

        Section(Type type, Object values) {
            this.type = type;
            this.values = values;
        }

        int count() {
            return AnyArray.length(values);
        }
    }

    private Golden(String name) throws IOException {
        this.name = name;
        octets = octets(Files.readAllLines(FOLDER.resolve(name + ".hex")));
        for (String line : Files.readAllLines(FOLDER.resolve(name + ".txt"))) {
            String[] words = line.trim().split(" ");
            if (words[0].isEmpty() || words[0].startsWith("#")) {
                continue;
            }
            fact(words);
        }
    }

    static List<Golden> all() throws IOException {
        try (Stream<Path> files = Files.list(FOLDER)) {
            List<String> names = files.map(f -> f.getFileName().toString()).filter(f -> f.endsWith(".hex"))
                    .filter(f -> !f.startsWith("impi-") && !f.startsWith("datagram-"))
                    .map(f -> f.substring(0, f.length() - 4)).sorted().collect(Collectors.toList());
            List<Golden> all = new ArrayList<>();
            for (String name : names) {
                all.add(new Golden(name));
            }
            return all;
        }
    }

    @Override
    public String toString() {
        return name;
    }

    private static byte[] octets(List<String> lines) {
        List<Integer> octets = new ArrayList<>();
        for (String line : lines) {
            for (String word : line.replaceFirst("#.*", "").trim().split("\\s+")) {
                if (!word.isEmpty() && !word.endsWith(":")) {
                    octets.add(Integer.parseInt(word, 16));
                }
            }
        }
        byte[] array = new byte[octets.size()];
        for (int i = 0; i < array.length; i++) {
            array[i] = (byte) (int) octets.get(i);
        }
        return array;
    }

    private void fact(String[] words) {
        switch (words[0]) {
            case "encoding":
                order = words[1].equals("big") ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN;
                break;
            case "primary":
                primary = Integer.parseInt(words[1]);
                break;
            case "secondary":
                secondary = Integer.parseInt(words[1]);
                break;
            case "noncanonical":
                canonical = false;
                break;
            case "section":
                sections.add(section(words));
                break;
            case "error":
                damaged = true;
                damagedSection = words[1].equals("load") ? -1 : Integer.parseInt(words[2]);
                damageOffset = Long.parseLong(words[words.length - 2]);
                break;
            case "stream":
                break;
            default:
                throw new IllegalArgumentException(name + ": unknown fact " + words[0]);
        }
    }

    private static Section section(String[] words) {
        Type type = Type.valueOf(words[1].toUpperCase(java.util.Locale.ROOT));
        Object values = AnyArray.make(type, words.length - 2);
        for (int i = 2; i < words.length; i++) {
            if (type == Type.OBJECT) {
                // Equal texts are the same object, as they were for the writer of the vector.
                ((Object[]) values)[i - 2] =
                        words[i].equals("null") ? null : words[i].substring(1, words[i].length() - 1).intern();
            } else if (words[i].startsWith("0x")) {
                AnyArray.set(values, i - 2, Long.parseUnsignedLong(words[i].substring(2), 16));
            } else {
                AnyArray.set(values, i - 2, Long.parseLong(words[i]));
            }
        }
        return new Section(type, values);
    }
}
