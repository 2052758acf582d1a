/** A program of the package's own names, compiled as a user's is: outside package mpi. */
package signatures;
