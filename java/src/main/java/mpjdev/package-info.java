/**
 * mpjdev: typed arrays and objects in message buffers, sent between ranks.
 *
 * <p>The classes and methods are those of the original mpjdev (HPJava project, 2002 to 2005) with its meaning; what is new
 * is additional. A program packs arrays into a {@link mpjdev.WriteBuffer}, sends it, receives it into a
 * {@link mpjdev.ReadBuffer} and unpacks it there.
 */
package mpjdev;
