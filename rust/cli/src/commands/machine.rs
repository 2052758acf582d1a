//! The files and the environment of this machine, as a launcher needs them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::job::target::{JarError, Surroundings};

/// The files and the environment of this machine.
#[derive(Debug)]
pub(super) struct Machine;

impl Surroundings for Machine {
    fn is_command(&self, name: &OsStr) -> bool {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).any(|folder| is_executable(&folder.join(name)))
    }

    fn main_class(&self, jar: &Path) -> Result<String, JarError> {
        let mut archive = zip::ZipArchive::new(std::fs::File::open(jar)?)?;
        let manifest = archive.by_name("META-INF/MANIFEST.MF").map_err(|_| JarError::NoManifest)?;
        let text = io::read_to_string(io::Read::take(manifest, MANIFEST_MAX))?;
        main_class(&text).ok_or(JarError::NoMainClass)
    }

    fn java(&self) -> OsString {
        java()
    }

    fn own_jars(&self) -> Vec<OsString> {
        [LIBRARY_JAR, MPJ_JAR].into_iter().filter_map(own_file).map(PathBuf::into_os_string).collect()
    }

    fn class_path(&self) -> OsString {
        env::var_os("CLASSPATH").filter(|path| !path.is_empty()).unwrap_or_else(|| ".".into())
    }
}

/// The `java` command: that of JAVA_HOME, else the one on the PATH.
pub fn java() -> OsString {
    match env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin/java")) {
        Some(java) if is_executable(&java) => java.into(),
        _ => "java".into(),
    }
}

/// Jar of package mpjdev in our folder. The monitor unpacks the native library of this one.
pub(super) const LIBRARY_JAR: &str = "lib/mpjdev.jar";
/// Jar of package mpi in our folder.
const MPJ_JAR: &str = "lib/mpj.jar";

/// A file of our folder, which is the one above the command's, if it exists.
pub(super) fn own_file(name: &str) -> Option<PathBuf> {
    let command = env::current_exe().ok()?;
    let file = command.parent()?.parent()?.join(name);
    file.is_file().then_some(file)
}

/// Maximum octets that are read of a manifest.
const MANIFEST_MAX: u64 = 1 << 20;

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The main class in a manifest. A line of more than 72 octets continues in the next one, which begins with a
/// space (JAR file specification).
fn main_class(manifest: &str) -> Option<String> {
    let whole = manifest.replace("\r\n", "\n").replace("\n ", "");
    let main = whole.lines().take_while(|line| !line.is_empty());
    main.filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("Main-Class"))
        .map(|(_, class)| class.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_class_is_read_from_any_form_of_manifest() {
        let found = |text| main_class(text);
        assert_eq!(found("Manifest-Version: 1.0\r\nMain-Class: a.B\r\n\r\n"), Some("a.B".into()));
        assert_eq!(found("main-class: very.lo\n ng.Name\n"), Some("very.long.Name".into()));
        assert_eq!(found("A: b\n\nName: x\nMain-Class: no\n"), None, "only the main section counts");
    }
}
