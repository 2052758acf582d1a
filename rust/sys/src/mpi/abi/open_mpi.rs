//! Open MPI 4 and 5: handles are pointers, predefined objects are data of the library (its `mpi.h`).

use std::ffi::{c_int, c_void};

use libloading::os::unix::Library;

use super::{Abi, Family, Handle, Objects, Pointer};

pub(in super::super) struct OpenMpi;

/// `struct ompi_status_public_t`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(in super::super) struct Status {
    source: c_int,
    tag: c_int,
    error: c_int,
    cancelled: c_int,
    ucount: usize,
}

const _: () = assert!(size_of::<Status>() == 24);

impl Abi for OpenMpi {
    type Handle = Pointer;
    type Status = Status;

    const FAMILY: Family = Family::OpenMpi;
    const ANY_SOURCE: c_int = -1;
    const ANY_TAG: c_int = -1;
    const TAG_UB: c_int = 0;
    const THREAD_LEVELS: [c_int; 4] = [0, 1, 2, 3];
    const TRUNCATE: c_int = 15;

    fn objects(library: &Library) -> Result<Objects<Pointer>, libloading::Error> {
        let address = |name: &[u8]| -> Result<Pointer, libloading::Error> {
            // SAFETY: only the address of the object is taken; the library defines its type.
            let symbol = unsafe { library.get::<*mut c_void>(name) }?;
            Ok(Pointer::from_word(symbol.into_raw() as u64))
        };
        Ok(Objects {
            world: address(b"ompi_mpi_comm_world")?,
            byte: address(b"ompi_mpi_byte")?,
            errors_return: address(b"ompi_mpi_errors_return")?,
            request_null: address(b"ompi_request_null")?,
            message_null: address(b"ompi_message_null")?,
        })
    }

    fn source(status: &Status) -> c_int {
        status.source
    }

    fn tag(status: &Status) -> c_int {
        status.tag
    }
}
