/**
 * Programs of the benchmarks.
 *
 * <p>{@link mpjdev.tools.Bench} measures messages between ranks:
 * {@code mpjrun -n 2 -cp mpjdev-bench.jar mpjdev.tools.Bench pingpong}.
 */
package mpjdev.tools;
