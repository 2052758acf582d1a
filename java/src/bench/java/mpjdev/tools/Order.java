package mpjdev.tools;

/**
 * Order to all ranks.
 *
 * @param what what to do
 * @param octets octets of the elements of a message
 * @param times how often
 */
record Order(Case what, int octets, long times) {
    /** The order in a line of three words. */
    static Order of(String line) {
        String[] words = line.trim().split(" +");
        if (words.length != 3) {
            throw new IllegalArgumentException("an order has three words, not: " + line);
        }
        return new Order(Case.of(words[0]), Integer.parseInt(words[1]), Long.parseLong(words[2]));
    }
}
