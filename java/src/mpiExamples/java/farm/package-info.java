/** A master that gives tasks to workers. */
package farm;
