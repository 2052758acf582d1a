/** Natives, handles and the library loader: what every public face sits on. Internal; it may change at any time. */
package mpjdev.core;
