//! Markers in process ids, which identify ranks of this project.
//!
//! The start-up protocol of IMPI cannot be extended: existing implementations fail when a client sends an
//! unknown label (IMPI 5.4). A process id is any number that is unique on its host (IMPI 2.2). The id of a
//! Linux process has at most 22 bits (proc(5), `kernel.pid_max`). The bits above them hold the marker.

use super::Dialect;

/// Bits of a process id of Linux.
const PID_BITS: u32 = 22;
/// The position of the marker in 8 octets.
const FINAL_SHIFT: u32 = 40;
/// "mpj", and "mpu".
const FINAL_MARKERS: [i64; 2] = [0x6d_706a, 0x6d_7075];
/// The draft's 4 octets have ten bits above a process id: the upper ten bits of "mpj", or the next number.
const DRAFT_MARKERS: [i64; 2] = [0x36b, 0x36c];

/// The transport between processes of this project, the same in the whole job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Packets of IMPI, as with foreign processes.
    Packets,
    /// Datagrams.
    Datagrams,
}

/// The process id that a process of this project announces.
///
/// A process id of more than 22 bits, which Linux does not use, is announced unmarked. The process then
/// counts as foreign, and cannot use datagrams.
#[must_use]
pub fn marked(dialect: Dialect, pid: u32, way: Way) -> i64 {
    let plain = i64::from(pid);
    match dialect {
        _ if pid >> PID_BITS != 0 => plain,
        Dialect::Final => FINAL_MARKERS[way as usize] << FINAL_SHIFT | plain,
        Dialect::Draft => DRAFT_MARKERS[way as usize] << PID_BITS | plain,
    }
}

/// The transport of the process of this project with this id; `None` for a foreign process. A foreign process
/// can have such an id too; authentication on its connection detects that.
#[must_use]
pub fn way(dialect: Dialect, pid: i64) -> Option<Way> {
    [Way::Packets, Way::Datagrams].into_iter().find(|way| match dialect {
        Dialect::Final => pid >> PID_BITS == FINAL_MARKERS[*way as usize] << (FINAL_SHIFT - PID_BITS),
        Dialect::Draft => pid >> PID_BITS == DRAFT_MARKERS[*way as usize],
    })
}

/// Whether this is the announced id of a process of this project.
#[must_use]
pub fn is_marked(dialect: Dialect, pid: i64) -> bool {
    way(dialect, pid).is_some()
}

/// The id of the process at its own host; `None` for a foreign process.
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

    const WAYS: [Way; 2] = [Way::Packets, Way::Datagrams];

    #[test]
    fn marker_of_our_process_is_recognised_and_unique() {
        for (dialect, announced) in BOTH.into_iter().flat_map(|dialect| WAYS.map(|way| (dialect, way))) {
            for pid in [1, 2, 4711, 65_535, PID_MAX] {
                let marked = marked(dialect, pid, announced);
                assert!(is_marked(dialect, marked), "{dialect:?} {pid}");
                assert_eq!(way(dialect, marked), Some(announced), "{dialect:?} {pid}");
                assert_eq!(unmarked(dialect, marked), Some(pid), "{dialect:?}");
            }
        }
        assert_eq!(marked(Dialect::Final, 0x1234, Way::Packets), 0x6d70_6a00_0000_1234);
        assert_eq!(marked(Dialect::Draft, 0x1234, Way::Packets), 0xdac0_1234);
        assert_eq!(marked(Dialect::Final, 0x1234, Way::Datagrams), 0x6d70_7500_0000_1234);
        assert_eq!(marked(Dialect::Draft, 0x1234, Way::Datagrams), 0xdb00_1234);
    }

    #[test]
    fn other_process_ids_have_no_marker() {
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
    fn draft_marker_fits_into_4_octets() {
        for way in WAYS {
            assert!(u32::try_from(marked(Dialect::Draft, PID_MAX, way)).is_ok());
            assert!(marked(Dialect::Final, PID_MAX, way) > 0);
        }
    }

    #[test]
    fn process_id_beyond_linux_is_sent_unmarked() {
        for (dialect, way) in BOTH.into_iter().flat_map(|dialect| WAYS.map(|way| (dialect, way))) {
            assert_eq!(marked(dialect, PID_MAX + 1, way), i64::from(PID_MAX) + 1);
            assert!(!is_marked(dialect, marked(dialect, u32::MAX, way)), "{dialect:?}");
        }
    }
}
