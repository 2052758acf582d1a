//! Two ends of the reliable protocol over simulated networks with impairments.

mod basic;
mod beside_unet;
mod close;
mod flows;
mod fragments;
mod hostile;
mod million;
mod pair;
mod repair;
mod rules;
mod timeouts;
mod world;
