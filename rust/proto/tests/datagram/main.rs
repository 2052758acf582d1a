//! Packets of the datagram protocol, and the machines that exchange them.

mod golden;
mod reliable;
mod sequence;
mod unet;
mod unet_simulation;
mod vectors;
mod world;
