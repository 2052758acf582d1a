/**
 * Programs of the benchmarks. They use nothing but the public face, and nothing uses them.
 *
 * <p>{@link mpjdev.tools.Bench} measures messages between ranks:
 * {@code mpjrun -n 2 -cp mpjdev-bench.jar mpjdev.tools.Bench pingpong}.
 */
package mpjdev.tools;
