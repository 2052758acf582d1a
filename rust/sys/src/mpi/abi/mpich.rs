//! MPICH and implementations that follow its ABI: handles are ints, and so are predefined objects (its
//! `mpi.h`).

use std::ffi::c_int;

use libloading::os::unix::Library;

use super::{Abi, Family, Objects};

pub(in super::super) struct Mpich;

/// `MPI_Status`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(in super::super) struct Status {
    count_lo: c_int,
    count_hi_and_cancelled: c_int,
    source: c_int,
    tag: c_int,
    error: c_int,
}

const _: () = assert!(size_of::<Status>() == 20);

impl Abi for Mpich {
    type Handle = c_int;
    type Status = Status;

    const FAMILY: Family = Family::Mpich;
    const ANY_SOURCE: c_int = -2;
    const ANY_TAG: c_int = -1;
    const TAG_UB: c_int = 0x6440_0001;
    const THREAD_LEVELS: [c_int; 4] = [0, 1, 2, 3];
    const TRUNCATE: c_int = 14;

    fn objects(_: &Library) -> Result<Objects<c_int>, libloading::Error> {
        Ok(Objects {
            world: 0x4400_0000,
            byte: 0x4c00_010d,
            errors_return: 0x5400_0001,
            request_null: 0x2c00_0000,
            message_null: 0x2c00_0000,
        })
    }

    fn source(status: &Status) -> c_int {
        status.source
    }

    fn tag(status: &Status) -> c_int {
        status.tag
    }
}
