/** Message buffers of MPJ Express, for programs that use them beside package mpi. */
package mpjbuf;
