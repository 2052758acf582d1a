//! Files of the installation: launcher, jars, library of the baseline.
//!
//! `installBench` lays out the folder `mpjdev-bench` beside the product's, which is `mpjdev`.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::BenchError;

/// Name of the product's folder.
const PRODUCT: &str = "mpjdev";
/// Jar of the Java benchmarks, in the folder of the benchmarks.
const BENCH_JAR: &str = "lib/mpjdev-bench.jar";
/// Jars of the Java benchmarks that need Aeron and of Aeron, in the folder of the benchmarks.
const AERON_JARS: [&str; 2] = ["lib/mpjdev-bench-aeron.jar", "lib/aeron-all.jar"];
/// Library of the baseline, in the folder of the benchmarks.
const BASELINE: &str = "lib/libmpjdev_baseline.so";
/// Jars of the library, in the folder of the product.
const LIBRARY_JARS: [&str; 2] = ["lib/mpjdev.jar", "lib/mpj.jar"];
/// The launcher, in the folder of the product.
const LAUNCHER: &str = "bin/mpjdev";

/// An installation.
#[derive(Debug)]
pub struct Installation {
    program: PathBuf,
}

impl Installation {
    /// The installation of this program.
    ///
    /// # Errors
    /// The path of this program is unknown.
    pub fn own() -> io::Result<Installation> {
        env::current_exe().map(|program| Installation { program })
    }

    /// This program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The product's launcher, or this program, which contains the same code.
    pub fn launcher(&self) -> PathBuf {
        self.of_product(LAUNCHER).unwrap_or_else(|| self.program.clone())
    }

    /// Class path of the Java benchmarks, if all jars exist.
    pub fn class_path(&self) -> Option<OsString> {
        let bench = self.home()?.join(BENCH_JAR);
        let [mpjdev, mpi] = LIBRARY_JARS.map(|jar| self.of_product(jar));
        env::join_paths([bench.is_file().then_some(bench)?, mpjdev?, mpi?]).ok()
    }

    /// The given class path of the Java benchmarks, or that of the installation.
    ///
    /// # Errors
    /// It names no file.
    pub fn java_class_path(&self, given: Option<&OsString>) -> Result<OsString, BenchError> {
        let class_path = given.cloned().or_else(|| self.class_path()).unwrap_or_default();
        if env::split_paths(&class_path).any(|entry| entry.exists()) {
            return Ok(class_path);
        }
        Err(BenchError::Missing(format!(
            "no Java counterpart at '{}': --class-path names mpjdev-bench.jar, mpjdev.jar and mpj.jar",
            class_path.display()
        )))
    }

    /// Additions to the class path for Aeron, if both jars exist.
    pub fn aeron(&self) -> Option<OsString> {
        let home = self.home()?;
        let jars = AERON_JARS.map(|jar| home.join(jar));
        jars.iter().all(|jar| jar.is_file()).then(|| env::join_paths(jars).ok())?
    }

    /// Library of the baseline, if it exists.
    pub fn baseline(&self) -> Option<PathBuf> {
        self.home().map(|home| home.join(BASELINE)).filter(|library| library.is_file())
    }

    /// Folder of the benchmarks.
    fn home(&self) -> Option<&Path> {
        self.program.parent()?.parent()
    }

    /// A file of the product, whose folder is beside that of the benchmarks or the same.
    fn of_product(&self, file: &str) -> Option<PathBuf> {
        let home = self.home()?;
        let beside = home.parent().map(|folder| folder.join(PRODUCT));
        let places = [Some(home.to_owned()), beside];
        places.into_iter().flatten().map(|folder| folder.join(file)).find(|file| file.is_file())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::contestant::Folder;

    fn file(folder: &Path, name: &str) -> PathBuf {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, "").expect("a file");
        file
    }

    #[test]
    fn launcher_and_jars_are_found_in_the_installation() {
        let folder = Folder::new().expect("a folder");
        let home = folder.path().join("mpjdev-bench");
        let program = file(&home, "bin/mpjdev-bench");
        let installation = Installation { program: program.clone() };
        assert_eq!((installation.launcher(), installation.class_path()), (program, None));
        let bench = file(&home, BENCH_JAR);
        assert_eq!(installation.class_path(), None, "the library is missing");
        for product in [folder.path().join(PRODUCT), home] {
            let (launcher, libraries) =
                (file(&product, LAUNCHER), LIBRARY_JARS.map(|jar| file(&product, jar)));
            assert_eq!(installation.launcher(), launcher);
            let expected = env::join_paths([&bench, &libraries[0], &libraries[1]]).ok();
            assert_eq!(installation.class_path(), expected);
        }
    }

    #[test]
    fn aeron_is_found_when_both_of_its_jars_are_there() {
        let folder = Folder::new().expect("a folder");
        let installation = Installation { program: file(folder.path(), "bin/mpjdev-bench") };
        let [ours, theirs] = AERON_JARS;
        let ours = file(folder.path(), ours);
        assert_eq!(installation.aeron(), None);
        let theirs = file(folder.path(), theirs);
        assert_eq!(installation.aeron(), env::join_paths([ours, theirs]).ok());
    }
}
