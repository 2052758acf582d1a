//! Two ends of the reliable protocol over networks that are as bad as they are told to be.

mod basic;
mod beside_unet;
mod closing;
mod flows;
mod hostile;
mod million;
mod pair;
mod patience;
mod pieces;
mod repair;
mod rules;
mod world;
