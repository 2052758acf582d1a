//! Which processes of a job are ours, told by their process ids.
//!
//! What is said at start-up has no place for an extension: living implementations fail when a client sends a label that they
//! do not know (IMPI 5.4). But a process id is any number that is unique on its host (IMPI 2.2), and that of a Linux process
//! has at most 22 bits (proc(5), `kernel.pid_max`), so the bits above say whose it is.

use super::Dialect;

/// Bits of a process id of Linux.
const PID_BITS: u32 = 22;
/// Where the marker begins in 8 octets.
const FINAL_SHIFT: u32 = 40;
/// "mpj".
const FINAL_MARKER: i64 = 0x6d_706a;
/// In the draft's 4 octets there are ten bits above a process id: the upper ten of "mpj".
const DRAFT_MARKER: i64 = 0x36b;

/// The process id that a process of ours announces.
///
/// A process id of more than 22 bits, which Linux does not have, is announced as it is: then it is taken for a foreign one,
/// with whom everything works as well.
#[must_use]
pub fn marked(dialect: Dialect, pid: u32) -> i64 {
    let plain = i64::from(pid);
    match dialect {
        _ if pid >> PID_BITS != 0 => plain,
        Dialect::Final => FINAL_MARKER << FINAL_SHIFT | plain,
        Dialect::Draft => DRAFT_MARKER << PID_BITS | plain,
    }
}

/// Whether a process that has announced this id is one of ours. It may still be none, which the proof on its connection
/// shows.
#[must_use]
pub fn is_marked(dialect: Dialect, pid: i64) -> bool {
    match dialect {
        Dialect::Final => pid >> PID_BITS == FINAL_MARKER << (FINAL_SHIFT - PID_BITS),
        Dialect::Draft => pid >> PID_BITS == DRAFT_MARKER,
    }
}

/// The id that a process of ours has where it runs; none of a process that has announced another.
#[must_use]
pub fn unmarked(dialect: Dialect, pid: i64) -> Option<u32> {
    let own = pid & ((1 << PID_BITS) - 1);
    is_marked(dialect, pid).then_some(own as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Dialect; 2] = [Dialect::Final, Dialect::Draft];
    const PID_MAX: u32 = (1 << 22) - 1;

    #[test]
    fn what_a_process_of_ours_announces_is_known_and_differs_by_process() {
        for dialect in BOTH {
            for pid in [1, 2, 4711, 65_535, PID_MAX] {
                assert!(is_marked(dialect, marked(dialect, pid)), "{dialect:?} {pid}");
                assert_eq!(unmarked(dialect, marked(dialect, pid)), Some(pid), "{dialect:?}");
            }
        }
        assert_eq!(marked(Dialect::Final, 0x1234), 0x6d70_6a00_0000_1234);
        assert_eq!(marked(Dialect::Draft, 0x1234), 0xdac0_1234);
    }

    #[test]
    fn no_process_id_of_linux_and_no_other_number_is_taken_for_ours() {
        let near = 0x6d70_6a00_0000_1234_i64;
        let others = [0, 1, i64::from(PID_MAX), -1, i64::MIN, i64::MAX, near ^ 1 << 22, near ^ 1 << 62];
        for dialect in BOTH {
            assert!(others.iter().all(|pid| !is_marked(dialect, *pid)), "{dialect:?}");
            assert!(others.iter().all(|pid| unmarked(dialect, *pid).is_none()), "{dialect:?}");
        }
        assert!(!is_marked(Dialect::Draft, near) && !is_marked(Dialect::Final, 0xdac0_1234));
        assert!(!is_marked(Dialect::Draft, 0xdac0_1234 | 1 << 32), "more than 4 octets");
    }

    #[test]
    fn what_the_draft_announces_fits_into_4_octets() {
        assert!(u32::try_from(marked(Dialect::Draft, PID_MAX)).is_ok());
        assert!(marked(Dialect::Final, PID_MAX) > 0);
    }

    #[test]
    fn a_process_id_that_linux_does_not_have_is_announced_as_it_is() {
        for dialect in BOTH {
            assert_eq!(marked(dialect, PID_MAX + 1), i64::from(PID_MAX) + 1);
            assert!(!is_marked(dialect, marked(dialect, u32::MAX)), "{dialect:?}");
        }
    }
}
