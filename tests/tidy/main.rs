//! Rules of the tree that the compiler does not check: the edges that ARCHITECTURE.md draws, the texts that
//! the documents list, and the words, widths and names of all files.
#![forbid(unsafe_code)]

mod charts;
mod citations;
mod dependencies;
mod documents;
mod figures;
mod functions;
mod known;
mod locks;
mod logging;
mod modules;
mod names;
mod natives;
mod prose;
mod public_items;
mod sources;
mod text;
mod tree;
mod troubleshooting;
mod words;
