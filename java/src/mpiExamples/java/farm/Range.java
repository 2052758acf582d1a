package farm;

import java.io.Serializable;

/** A task: to find the primes of a range of numbers. */
final class Range implements Serializable {
    private static final long serialVersionUID = 1L;

    private final int from;
    private final int to;

    /** Makes the range of the numbers from {@code from} to {@code to - 1}. */
    Range(int from, int to) {
        this.from = from;
        this.to = to;
    }

    /** Returns the primes in ascending order. */
    int[] primes() {
        return java.util.stream.IntStream.range(from, to).filter(Range::isPrime).toArray();
    }

    private static boolean isPrime(int number) {
        for (int divisor = 2; divisor * divisor <= number; divisor++) {
            if (number % divisor == 0) {
                return false;
            }
        }
        return number > 1;
    }
}
