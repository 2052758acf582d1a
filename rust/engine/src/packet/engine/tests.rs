//! Tests of one rank over a real transport, with a peer that is the bare transport.

mod pipeline;
mod pipeline_net;
mod shm;
mod tcp;
