//! Protection of the signals that a JVM needs for itself, against any library that is loaded or initialised.
//!
//! HotSpot uses SIGSEGV, SIGBUS, SIGFPE and SIGILL to run Java code. UCX below an MPI takes them to print a
//! stack, unless a variable forbids it (open-mpi/ompi 10158, 10223). The variable is set before UCX is
//! loaded, since a JVM that checks its signals meanwhile complains, and any signals that a library has taken
//! are restored. The signals that ask a JVM to end are protected as well.

use std::ffi::c_int;
use std::mem::zeroed;
use std::ptr;
use std::sync::Once;

const OURS: [c_int; 9] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGQUIT,
    libc::SIGPIPE,
];

/// The variable that lists the signals that UCX takes.
const UCX_SIGNALS: &str = "UCX_ERROR_SIGNALS";

/// Makes UCX take no signals, unless the user has chosen some.
pub(super) fn leave_to_us() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if std::env::var_os(UCX_SIGNALS).is_none() {
            // SAFETY: no other code changes the environment of a process that becomes a rank: a JVM has
            // copied it at its start, and the library, which will read it, is not loaded yet.
            unsafe { std::env::set_var(UCX_SIGNALS, "") };
        }
    });
}

/// The actions of these signals before a call that may take them.
pub(super) struct Kept([libc::sigaction; OURS.len()]);

impl Kept {
    pub(super) fn now() -> Kept {
        Kept(OURS.map(|signal| {
            // SAFETY: a sigaction is numbers and a pointer, all of which may be zero.
            let mut action: libc::sigaction = unsafe { zeroed() };
            // SAFETY: nothing is set; there is room for the current action.
            unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
            action
        }))
    }

    /// Restores the signals that were taken. Returns them.
    pub(super) fn restore(&self) -> Vec<c_int> {
        let now = Kept::now();
        let taken = OURS.iter().zip(&self.0).zip(&now.0).filter(|((_, before), after)| {
            before.sa_sigaction != after.sa_sigaction || before.sa_flags != after.sa_flags
        });
        taken
            .map(|((signal, before), _)| {
                // SAFETY: that action was set before, by code that had the right to.
                unsafe { libc::sigaction(*signal, &raw const *before, ptr::null_mut()) };
                *signal
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_signal_action_is_restored_and_named() {
        let kept = Kept::now();
        assert_eq!(kept.restore(), []);
        // No process sends SIGILL here meanwhile.
        let mut other = kept.0[3];
        other.sa_sigaction = libc::SIG_IGN;
        // SAFETY: ignoring it is always allowed.
        assert_eq!(unsafe { libc::sigaction(libc::SIGILL, &raw const other, ptr::null_mut()) }, 0);
        assert_eq!(kept.restore(), [libc::SIGILL]);
        assert_eq!(Kept::now().0[3].sa_sigaction, kept.0[3].sa_sigaction);
    }
}
