package mpjdev.tools;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Launcher in place of that of MPJ Express. Its ranks are processes of {@code mpjrun}, whose package mpi is
 * the jar in the home folder.
 */
final class StarterStub {
    private StarterStub() {}

    public static void main(String[] args) throws Exception {
        List<String> words = Arrays.asList(args);
        if (!words.subList(2, 4).equals(List.of("-dev", "multicore"))) {
            throw new IllegalArgumentException("not the words of MPJ Express: " + words);
        }
        int classPath = words.indexOf("-cp") + 1;
        Path home = Path.of(System.getenv("MPJ_HOME"));
        List<String> line = new ArrayList<>(List.of(Files.readString(home.resolve("launcher")), "run", "-n",
                words.get(words.indexOf("-np") + 1), "java", "--enable-native-access=ALL-UNNAMED"));
        line.addAll(words.subList(4, classPath));
        line.add(words.get(classPath) + ':' + home.resolve("lib/mpj.jar"));
        line.addAll(words.subList(classPath + 1, words.size()));
        System.exit(new ProcessBuilder(line).inheritIO().start().waitFor());
    }
}
