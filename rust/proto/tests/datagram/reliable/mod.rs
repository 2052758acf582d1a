//! Two ends of the reliable protocol over networks that are as bad as they are told to be.

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
