/** The device level of MPJ Express, for programs that use it beside package mpi. */
package mpjdev;
