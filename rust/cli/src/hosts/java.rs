//! The `java` command of a host, and its version.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The oldest version that runs mpjdev.
const MIN: u32 = 17;

/// The `java` command that `mpjrun` starts with these variables: that of JAVA_HOME, else the one on the PATH.
///
/// # Errors
/// There is none, or it is too old. The text says what to do.
pub fn find(home: Option<OsString>, path: Option<OsString>) -> Result<String, String> {
    let of_home = home.map(|home| PathBuf::from(home).join("bin/java"));
    let path = path.unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("java"));
    let java = of_home.into_iter().chain(on_path).find(|file| is_executable(file));
    let Some(java) = java else {
        return Err(format!(
            "no java on the PATH of a remote shell, and JAVA_HOME is not set there: install a JDK of version \
             {MIN} or later, or name one with -x JAVA_HOME=/path"
        ));
    };
    let shown = java.display();
    match version(&java) {
        Some((major, text)) if major < MIN => Err(format!(
            "{shown} is version {text}, and mpjdev needs {MIN} or later: name a later one with \
             -x JAVA_HOME=/path"
        )),
        Some((_, text)) => Ok(format!("{shown}, version {text}")),
        None => Ok(shown.to_string()),
    }
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The version in the file `release` of a JDK, which costs no start of a JVM.
fn version(java: &Path) -> Option<(u32, String)> {
    let home = java.canonicalize().ok()?.parent()?.parent()?.to_owned();
    let text = std::fs::read_to_string(home.join("release")).ok()?;
    let value =
        text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?.trim_matches('"').to_owned();
    // 1.8.0_392 is version 8.
    let numbers = value.strip_prefix("1.").unwrap_or(&value);
    let digits: String = numbers.chars().take_while(char::is_ascii_digit).collect();
    Some((digits.parse().ok()?, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_is_found_and_old_versions_are_refused() {
        let folder = std::env::temp_dir().join(format!("mpjdev-java-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("bin")).expect("a folder");
        let java = folder.join("bin/java");
        std::fs::write(&java, "#!/bin/sh\n").expect("a file");
        assert!(
            find(Some(folder.clone().into()), None).is_err_and(|why| why.starts_with("no java")),
            "not executable"
        );
        std::fs::set_permissions(&java, std::fs::Permissions::from_mode(0o755)).expect("ours");
        assert_eq!(find(Some(folder.clone().into()), None), Ok(java.display().to_string()));
        assert_eq!(find(None, Some(folder.join("bin").into())), Ok(java.display().to_string()));
        for (text, is_good) in [("17.0.9", true), ("25", true), ("11.0.2", false), ("1.8.0_392", false)] {
            std::fs::write(folder.join("release"), format!("A=\"b\"\nJAVA_VERSION=\"{text}\"\n"))
                .expect("a file");
            let found = find(Some(folder.clone().into()), None);
            assert_eq!(found.is_ok(), is_good, "{found:?}");
            assert!(found.unwrap_or_else(|why| why).contains(&format!("version {text}")));
        }
        assert!(find(None, Some(OsString::new())).is_err());
        std::fs::remove_dir_all(folder).expect("ours");
    }
}
