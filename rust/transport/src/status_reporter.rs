//! Interface through which a rank reports its status to its launcher.

use std::fmt::Debug;

/// Receiver of a rank's status reports.
pub trait StatusReporter: Debug + Send + Sync {
    /// Reports a peer that this rank has seen fail. Only the first report counts. The launcher must know
    /// before the rank acts on the failure, because the rank may end as a consequence.
    fn report_failed_peer(&self, rank: u32);

    /// Reports that this rank has finished and had not failed.
    fn mark_finished(&self);
}
