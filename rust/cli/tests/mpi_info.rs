//! Tests of `mpjdev mpi-info` without a usable MPI: the tried libraries, the reasons and the remedies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory that is removed on drop.
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

/// Proves that a named library that cannot be used is reported once, with the reason and the remedy.
#[test]
fn unusable_library_is_named_with_a_remedy() {
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

/// The functions of an MPI that grant a thread level, with the ABI of MPICH. Real libraries with a low level
/// are rare.
const STAND_IN: &str = r#"
#include <stdlib.h>
#include <string.h>
int MPI_Get_library_version(char *text, int *len) {
    strcpy(text, "MPICH Version: 4.0.2");
    *len = strlen(text);
    return 0;
}
int MPI_Initialized(int *flag) { *flag = OVER; return 0; }
int MPI_Finalized(int *flag) { *flag = OVER; return 0; }
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) { *provided = LEVEL; return 0; }
int MPI_Query_thread(int *provided) { if (OVER) abort(); *provided = LEVEL; return 0; }
int MPI_Comm_rank(int comm, int *rank) { return *rank = 0; }
int MPI_Comm_size(int comm, int *size) { *size = 1; return 0; }
int MPI_Comm_get_attr(int comm, int key, void *value, int *flag) { return *flag = 0; }
#define UNUSED(name) int name(void) { return 0; }
UNUSED(MPI_Finalize) UNUSED(MPI_Abort) UNUSED(MPI_Error_string) UNUSED(MPI_Error_class)
UNUSED(MPI_Comm_idup) UNUSED(MPI_Comm_free) UNUSED(MPI_Comm_set_errhandler) UNUSED(MPI_Comm_group) UNUSED(MPI_Group_incl)
UNUSED(MPI_Group_free) UNUSED(MPI_Comm_create_group) UNUSED(MPI_Isend) UNUSED(MPI_Issend) UNUSED(MPI_Irecv)
UNUSED(MPI_Ibarrier) UNUSED(MPI_Test) UNUSED(MPI_Get_count) UNUSED(MPI_Test_cancelled) UNUSED(MPI_Cancel)
UNUSED(MPI_Iprobe) UNUSED(MPI_Improbe) UNUSED(MPI_Imrecv)
"#;

/// Builds the library for a thread level, and optionally as finalised.
fn stand_in(folder: &Folder, level: u32, is_over: bool) -> PathBuf {
    let (source, library) = (folder.0.join("mpi.c"), folder.0.join(format!("libmpi-{level}.so")));
    fs::write(&source, STAND_IN).expect("a file");
    let mut command = Command::new("cc");
    let defined = [format!("-DLEVEL={level}"), format!("-DOVER={}", u32::from(is_over))];
    command.args(["-shared", "-fPIC", "-w"]).args(defined).arg("-o").arg(&library).arg(&source);
    assert!(command.status().expect("the compiler that rustc links by").success());
    library
}

/// Proves that a library with a low thread level is refused with its level, the required one and a remedy.
#[test]
fn low_thread_level_is_refused_with_a_remedy() {
    let folder = Folder::new("threads");
    for (level, granted) in
        ["MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED"].iter().enumerate()
    {
        let library = stand_in(&folder, level as u32, false);
        let (status, out, err) = info(&library);
        assert_eq!((status, out.as_str()), (1, ""), "{err}");
        let said = format!(
            "mpjdev: {} (MPICH Version: 4.0.2) grants {granted} only, and the threads of a rank need MPI_THREAD_MULTIPLE: ",
            library.display()
        );
        assert!(err.starts_with(&said), "{err}");
        for advice in ["MPICH_MAX_THREAD_SAFETY=multiple", "MPJDEV_MPI_LIBRARY name one", "mpjdev mpi-info"] {
            assert!(err.contains(advice), "{advice}: {err}");
        }
    }
    let (status, out, err) = info(&stand_in(&folder, 3, false));
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.contains("threads   MPI_THREAD_MULTIPLE\nprocess   0 of 1\n"), "{out}");
}

/// Proves that no function is called that aborts the process after MPI_Finalize.
#[test]
fn finalised_library_is_named() {
    let folder = Folder::new("over");
    let (status, out, err) = info(&stand_in(&folder, 3, true));
    assert_eq!((status, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("it was finalised before, and MPI can be used once in a process"), "{err}");
}
