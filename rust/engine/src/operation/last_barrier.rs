//! The barrier that ends a job with foreign ranks.

use mpjdev_transport::wait::WaitControl;

use crate::error::DeviceError;

/// Runs the barrier of all ranks that ends a job with foreign ones (IMPI 14). The engine calls it in the
/// middle of its finish.
pub type LastBarrier<'a> = dyn FnMut(&mut dyn WaitControl) -> Result<(), DeviceError> + 'a;
