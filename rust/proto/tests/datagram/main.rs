//! Packets of the datagram protocol, and the machines that exchange them.

mod golden;
mod network;
mod sequence;
mod vectors;
