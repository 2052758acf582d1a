//! `mpjdev mpi-info` where no MPI can be used: what was tried, why that is of no use, and what to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("mpjdev-mpi-info-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Exit status, standard output and standard error with the library of this name.
fn info(library: &Path) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev"));
    command.arg("mpi-info").env("MPJDEV_MPI_LIBRARY", library).stdin(Stdio::null());
    for launchers in ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_FD"] {
        command.env_remove(launchers);
    }
    let output = command.output().expect("it runs");
    let text = |octets| String::from_utf8(octets).expect("UTF-8");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

/// Proves that a library that is named and is of no use is said with the reason, once, and with what to do.
#[test]
fn a_named_library_that_is_of_no_use_is_said_with_what_to_do() {
    let folder = Folder::new("useless");
    let text = folder.0.join("libmpi.so");
    fs::write(&text, "a text that is no library, however long it is: ".repeat(99)).expect("a file");
    for (library, why) in [
        (Path::new("/no/such/libmpi.so"), "cannot open shared object file: No such file or directory"),
        (Path::new("libno-such-mpi.so.40"), "cannot open shared object file: No such file or directory"),
        (&*text, "invalid ELF header"),
        (&*folder.0, "cannot read file data: Is a directory"),
        (Path::new("libm.so.6"), "it is no MPI: it has no MPI_Get_library_version"),
    ] {
        let (status, out, err) = info(library);
        assert_eq!((status, out.as_str()), (2, ""), "{err}");
        let tried = format!("mpjdev: no C MPI that can be used; tried {}: {why} (", library.display());
        assert!(err.starts_with(&tried), "{err}");
        for advice in ["MPJDEV_MPI_LIBRARY names it", "such as libmpi.so.40", "MPJDEV_TRANSPORT=local"] {
            assert!(err.contains(advice), "{advice}: {err}");
        }
    }
}
