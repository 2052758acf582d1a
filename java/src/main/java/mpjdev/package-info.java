/**
 * Message passing of typed arrays and objects between ranks.
 *
 * <p>The package has the classes and methods of the original mpjdev (HPJava project, 2002 to 2005) with their
 * meaning, and additions. A program writes arrays into a {@link mpjdev.WriteBuffer}, sends it, receives it
 * into a {@link mpjdev.ReadBuffer} and reads them there.
 */
package mpjdev;
