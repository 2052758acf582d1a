//! Tests of `mpjdev inspect --impi`.

mod captures;
mod command;
mod golden;
mod hostile;
mod packets;
mod startup;
mod support;
