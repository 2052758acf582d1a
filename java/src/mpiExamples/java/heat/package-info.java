/** A heat solver on a Cartesian grid of ranks. */
package heat;
