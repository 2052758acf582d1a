//! Packets of the datagram protocol, and the machines that exchange them.

mod classic;
mod classic_simulation;
mod golden;
mod modern;
mod network;
mod sequence;
mod vectors;
mod world;
