//! Descriptors and memory of the system: the failures that a lack of them causes, and the numbers for error
//! texts.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Whether the system lacks descriptors or memory for this process. It may have some after unused ones are
/// closed.
pub fn is_missing(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS])
}

/// Whether this process may open no more descriptors.
pub fn is_at_limit(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::MFILE])
}

fn is_one_of(error: &io::Error, all: &[Errno]) -> bool {
    all.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// The number of descriptors of this process, and its limit; `None` if the system reports neither.
pub fn descriptors() -> Option<(u64, u64)> {
    let limit = getrlimit(Resource::Nofile).current?;
    match std::fs::read_dir("/proc/self/fd") {
        // One of them is the folder's own.
        Ok(open) => Some((open.count().saturating_sub(1) as u64, limit)),
        Err(error) if is_at_limit(&error) => Some((limit, limit)),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_counted_below_the_limit() {
        let files: Vec<_> =
            (0..50).map(|_| std::fs::File::open("/dev/null").expect("a descriptor")).collect();
        let (open, limit) = descriptors().expect("Linux has limits of descriptors");
        assert!(open >= files.len() as u64 && open < limit, "{open} of {limit}");
    }

    #[test]
    fn descriptor_shortage_differs_from_other_errors() {
        let error = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        assert!(is_missing(&error(Errno::MFILE)) && is_at_limit(&error(Errno::MFILE)));
        assert!(is_missing(&error(Errno::NOMEM)) && !is_at_limit(&error(Errno::NOMEM)));
        assert!(!is_missing(&error(Errno::PERM)) && !is_missing(&io::Error::other("a text")));
    }
}
