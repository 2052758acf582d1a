/** Small real programs that use mpjdev: {@link mpjdev.examples.Hello} and {@link mpjdev.examples.MainJob}. */
package mpjdev.examples;
