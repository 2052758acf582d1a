//! MPJ Express with threads: an installation whose ranks take part in collective calls.
//!
//! Its ranks are threads of one JVM. Their class path has our benchmarks and none of our packages.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Main class of its ranks.
const RANK_CLASS: &str = "mpjdev.tools.MpjExpressRank";
/// File of the main class in a folder of classes.
const RANK_FILE: &str = "mpjdev/tools/MpjExpressRank.class";
/// Jar of the benchmarks.
const BENCH_JAR: &str = "mpjdev-bench.jar";
/// The launcher in the home folder.
const STARTER: &str = "lib/starter.jar";
/// Files of the home folder without which it is none.
const FILES: [&str; 2] = [STARTER, "lib/mpj.jar"];
/// Variable with the path of the home folder.
const HOME: &str = "MPJ_HOME";
/// Heap of all ranks, which have arrays of their own and copies in buffers.
const HEAP: [&str; 2] = ["-Xmx2g", "-Xms256m"];

/// An installation of MPJ Express.
#[derive(Clone, Debug)]
pub struct MpjExpress {
    home: PathBuf,
    /// Class path of the ranks: the benchmarks.
    classes: PathBuf,
}

impl MpjExpress {
    /// The installation in a folder, or else that of the environment. `class_path` has our benchmarks, and
    /// `temporary` is a folder without libraries of ours.
    ///
    /// # Errors
    /// There is none, and why.
    pub fn find(given: Option<&Path>, class_path: &OsStr, temporary: &Path) -> Result<MpjExpress, String> {
        let of_environment = || env::var_os(HOME).filter(|home| !home.is_empty()).map(PathBuf::from);
        let home = given.map(Path::to_owned).or_else(of_environment);
        let home = home.ok_or_else(|| {
            format!("no installation is named: --mpj-express or {HOME} is the path of its home folder")
        })?;
        MpjExpress::of(&home, class_path, temporary)
    }

    fn of(home: &Path, class_path: &OsStr, temporary: &Path) -> Result<MpjExpress, String> {
        let missing: Vec<&str> = FILES.into_iter().filter(|file| !home.join(file).is_file()).collect();
        if !missing.is_empty() {
            return Err(format!("{} has no {}", home.display(), missing.join(" and no ")));
        }
        let classes = env::split_paths(class_path).find_map(|entry| benchmarks(&entry, temporary));
        let classes = classes
            .ok_or_else(|| format!("the class path has no {BENCH_JAR}: {}", class_path.display()))?
            .map_err(|error| format!("{}: {error}", temporary.display()))?;
        Ok(MpjExpress { home: home.to_owned(), classes })
    }

    /// The command line that starts its ranks.
    pub fn command(&self, java: &OsStr, ranks: u32, socket: &Path) -> Vec<OsString> {
        let mut words = vec![java.to_owned(), "-jar".into(), self.home.join(STARTER).into()];
        words.extend(["-np".into(), ranks.to_string().into()]);
        words.extend(["-dev", "multicore"].iter().chain(&HEAP).map(OsString::from));
        words.extend(["-cp".into(), self.classes.clone().into(), RANK_CLASS.into(), socket.into()]);
        words
    }

    /// Variables of the launcher, which takes the JVM of the ranks from the PATH.
    pub fn environment(&self, java: &OsStr) -> Vec<(&'static str, OsString)> {
        let folder = Path::new(java).parent().filter(|folder| !folder.as_os_str().is_empty());
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = folder.map(Path::to_owned).into_iter().chain(env::split_paths(&path));
        let path = env::join_paths(folders).ok().map(|path| ("PATH", path));
        [(HOME, self.home.clone().into())].into_iter().chain(path).collect()
    }
}

/// The benchmarks, if this entry of a class path has them. A jar gets another path, since its manifest names
/// the libraries that lie beside it.
fn benchmarks(entry: &Path, temporary: &Path) -> Option<io::Result<PathBuf>> {
    if entry.join(RANK_FILE).is_file() {
        return Some(Ok(entry.to_owned()));
    }
    (entry.file_name()? == BENCH_JAR && entry.is_file()).then(|| {
        let link = temporary.join(BENCH_JAR);
        symlink(fs::canonicalize(entry)?, &link)?;
        Ok(link)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestant::Folder;

    fn write(folder: &Path, name: &str) -> PathBuf {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, "").expect("a file");
        file
    }

    fn found(home: &Path, class_path: &[PathBuf]) -> Result<MpjExpress, String> {
        let temporary = Folder::new().expect("a folder");
        MpjExpress::of(home, &env::join_paths(class_path).expect("no colon"), temporary.path())
    }

    #[test]
    fn home_without_its_jars_is_refused_with_their_names() {
        let folder = Folder::new().expect("a folder");
        let classes = [write(folder.path(), BENCH_JAR)];
        let why = found(folder.path(), &classes).expect_err("nothing is there");
        assert!(why.ends_with("has no lib/starter.jar and no lib/mpj.jar"), "{why}");
        write(folder.path(), FILES[0]);
        let why = found(folder.path(), &classes).expect_err("half of it");
        assert!(why.ends_with("has no lib/mpj.jar"), "{why}");
        write(folder.path(), FILES[1]);
        found(folder.path(), &classes).expect("an installation");
    }

    #[test]
    fn class_path_of_the_ranks_has_the_benchmarks_alone() {
        let folder = Folder::new().expect("a folder");
        FILES.iter().for_each(|file| drop(write(folder.path(), file)));
        let ours = ["mpjdev.jar", "mpj.jar"].map(|jar| write(folder.path(), jar));
        let why = found(folder.path(), &ours).expect_err("no benchmarks");
        assert!(why.contains("has no mpjdev-bench.jar"), "{why}");
        write(folder.path(), "classes/mpjdev/tools/MpjExpressRank.class");
        let classes = folder.path().join("classes");
        let [mpjdev, mpi] = ours;
        let found = found(folder.path(), &[mpjdev, classes.clone(), mpi]).expect("an installation");
        let words = found.command("java".as_ref(), 3, Path::new("socket"));
        let at = words.iter().position(|word| word == "-cp").expect("a class path");
        assert_eq!(words[at + 1..], [classes.as_os_str(), RANK_CLASS.as_ref(), "socket".as_ref()]);
        assert!(words.windows(2).any(|pair| pair == ["-np", "3"]), "{words:?}");
    }

    #[test]
    fn jar_of_the_benchmarks_has_no_libraries_beside_it() {
        let (folder, temporary) = (Folder::new().expect("a folder"), Folder::new().expect("a folder"));
        FILES.iter().for_each(|file| drop(write(folder.path(), file)));
        let jar = write(folder.path(), BENCH_JAR);
        let found =
            MpjExpress::of(folder.path(), jar.as_os_str(), temporary.path()).expect("an installation");
        assert_eq!(found.classes, temporary.path().join(BENCH_JAR));
        assert_eq!(fs::canonicalize(&found.classes).ok(), fs::canonicalize(&jar).ok());
    }

    #[test]
    fn ranks_run_in_the_jvm_of_the_other_contestants() {
        let mpj_express = MpjExpress { home: "/home/mpj".into(), classes: PathBuf::new() };
        let environment = mpj_express.environment("/jdk/bin/java".as_ref());
        assert_eq!(environment[0], (HOME, "/home/mpj".into()));
        assert!(environment[1].1.to_string_lossy().starts_with("/jdk/bin:"), "{environment:?}");
        let environment = mpj_express.environment("java".as_ref());
        assert_eq!(Some(&environment[1].1), env::var_os("PATH").as_ref());
    }
}
