//! One rank with its matching over a real transport, and a peer that is the transport alone.

mod shm;
mod tcp;
