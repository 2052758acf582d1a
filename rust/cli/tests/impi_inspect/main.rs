//! What `mpjdev inspect --impi` makes of conversations and packets.

mod captures;
mod command;
mod golden;
mod hostile;
mod packets;
mod startup;
mod support;
