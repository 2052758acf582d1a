package mpjdev.tools;

/**
 * Command to all ranks.
 *
 * @param word word of the case
 * @param octets octets of the elements of a message
 * @param times repetitions
 */
record RunCommand(String word, int octets, long times) {
    /** Parses a line of three words. */
    static RunCommand of(String line) {
        String[] words = line.trim().split(" +");
        if (words.length != 3) {
            throw new IllegalArgumentException("a command has three words, not: " + line);
        }
        return new RunCommand(words[0], Integer.parseInt(words[1]), Long.parseLong(words[2]));
    }
}
