//! ABI of MPI-5: handles are as large as pointers, predefined ones small numbers (MPI 5.0, 20; `mpi_abi.h`).

use std::ffi::c_int;

use libloading::os::unix::Library;

use super::{Abi, Family, Handle, Objects, Pointer};

pub(in super::super) struct Standard;

/// `MPI_Status`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(in super::super) struct Status {
    source: c_int,
    tag: c_int,
    error: c_int,
    internal: [c_int; 5],
}

const _: () = assert!(size_of::<Status>() == 32);

impl Abi for Standard {
    type Handle = Pointer;
    type Status = Status;

    const FAMILY: Family = Family::Standard;
    const ANY_SOURCE: c_int = -1;
    const ANY_TAG: c_int = -2;
    const TAG_UB: c_int = 501;
    const THREAD_LEVELS: [c_int; 4] = [0, 1024, 2048, 4096];
    const TRUNCATE: c_int = 15;

    fn objects(_: &Library) -> Result<Objects<Pointer>, libloading::Error> {
        let number = Pointer::from_word;
        Ok(Objects {
            world: number(0x101),
            byte: number(0x247),
            errors_return: number(0x143),
            request_null: number(0x180),
            message_null: number(0x128),
        })
    }

    fn source(status: &Status) -> c_int {
        status.source
    }

    fn tag(status: &Status) -> c_int {
        status.tag
    }
}
