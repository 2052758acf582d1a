/**
 * The Java side of the native engine: native methods, handles, views, the reclaimer and the library loader.
 * Internal.
 *
 * <p>{@code mpjdev} is built on this package. Another public package may be built on it too, so it knows none
 * of them (the tidy tests check that). It may change at any time.
 */
package mpjdev.core;
