/** The first program of docs/user/mpj.md. */
package hello;
