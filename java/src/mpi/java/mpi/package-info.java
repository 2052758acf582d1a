/**
 * MPJ: the Java binding of MPI-1.1 as mpiJava 1.2 and MPJ Express define it.
 *
 * <p>A message buffer is an array, an offset, a count and a {@link mpi.Datatype}. Offsets, counts and extents
 * are in elements of the array, never in octets. Any number of threads may call any method at once
 * ({@link mpi.MPI#THREAD_MULTIPLE}), but two threads may not use one request. Failures are
 * {@link mpi.MPIException}s.
 */
package mpi;
