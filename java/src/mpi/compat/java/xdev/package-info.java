/** The superclass of all exceptions of MPJ Express. */
package xdev;
