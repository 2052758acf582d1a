//! The files that `--stage` copies to each host: our own jars and the class path of the program.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::hello::StagedFile;
use crate::job::target::Program;

/// The staged folder of a host, in the words for its agent. The agent knows its name.
pub const STAGED_FOLDER: &str = "%{MPJDEV_STAGE}";
/// Maximum files of a class path.
const FILES_MAX: usize = 100_000;

/// The reason why a program cannot be staged.
#[derive(Debug, Error)]
pub enum StageError {
    /// A file cannot be read.
    #[error("--stage: {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A command has no class path.
    #[error("--stage copies the class path of a class or a jar; {program} is a command")]
    Command {
        /// The command.
        program: String,
    },
    /// A name is not UTF-8, or has a colon.
    #[error("--stage: {path:?} has a name that cannot be copied: it is not UTF-8")]
    Name {
        /// The file.
        path: PathBuf,
    },
    /// The class path has too many files.
    #[error("--stage: {path} has more than {FILES_MAX} files; put them into a jar")]
    Many {
        /// The folder.
        path: PathBuf,
    },
}

/// A file here, and its place on the host.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file here.
    pub file: PathBuf,
    /// Its place there.
    pub staged: StagedFile,
}

/// The files for each host.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// The files.
    pub sources: Vec<Source>,
    /// The words of the program there.
    pub words: Vec<OsString>,
}

impl Stage {
    /// The stage of a program, with these jars of ours.
    ///
    /// # Errors
    /// The program is a command, or a file cannot be read.
    pub fn of(program: &Program, own_jars: &[OsString]) -> Result<Stage, StageError> {
        if !program.is_java {
            return Err(StageError::Command { program: program.name.to_string_lossy().into_owned() });
        }
        let mut stage = Stage::default();
        for jar in own_jars {
            let name = Path::new(jar).file_name().unwrap_or_default();
            stage.add(Path::new(jar), &Path::new("lib").join(name))?;
        }
        let mut entries = Vec::new();
        for (at, entry) in program.class_path.iter().enumerate() {
            entries.extend(stage.entry(at, Path::new(entry))?);
        }
        let mut name = program.name.clone();
        if program.is_jar {
            let jar = Path::new(&program.name);
            name = stage.entry(program.class_path.len(), jar)?.unwrap_or(name);
        }
        stage.words = program.with_class_path(&entries.join(OsStr::new(":")), name);
        Ok(stage)
    }

    /// Adds an entry of the class path, and returns its place there. An entry that does not exist has none.
    fn entry(&mut self, at: usize, entry: &Path) -> Result<Option<OsString>, StageError> {
        let place = PathBuf::from(format!("cp/{at}"));
        // All jars of a folder (java(1), -cp).
        if entry.file_name() == Some(OsStr::new("*")) {
            let folder =
                entry.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let jars = list(folder)?.into_iter().filter(|file| {
                file.extension().is_some_and(|end| end.eq_ignore_ascii_case("jar")) && file.is_file()
            });
            for jar in jars {
                let name = jar.file_name().unwrap_or_default().to_owned();
                self.add(&jar, &place.join(name))?;
            }
            return Ok(Some(format!("{STAGED_FOLDER}/{}/*", place.display()).into()));
        }
        if !entry.exists() {
            return Ok(None);
        }
        if entry.is_dir() {
            self.add_folder(entry, &place)?;
            return Ok(Some(format!("{STAGED_FOLDER}/{}", place.display()).into()));
        }
        let name = entry.file_name().unwrap_or_default();
        let place = place.join(name);
        self.add(entry, &place)?;
        Ok(Some(format!("{STAGED_FOLDER}/{}", place.display()).into()))
    }

    fn add_folder(&mut self, folder: &Path, place: &Path) -> Result<(), StageError> {
        for file in list(folder)? {
            let place = place.join(file.file_name().unwrap_or_default());
            // A link to a folder above would have no end.
            if file.is_dir() && !file.is_symlink() {
                self.add_folder(&file, &place)?;
            } else if file.is_file() {
                self.add(&file, &place)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, file: &Path, place: &Path) -> Result<(), StageError> {
        let failed = |source| StageError::File { path: file.to_owned(), source };
        let meta = fs::metadata(file).map_err(failed)?;
        if self.sources.len() >= FILES_MAX {
            return Err(StageError::Many { path: file.to_owned() });
        }
        let path = place.to_str().ok_or_else(|| StageError::Name { path: file.to_owned() })?.to_owned();
        let staged = StagedFile { path, mode: meta.permissions().mode() & 0o777, len: meta.len() };
        self.sources.push(Source { file: file.to_owned(), staged });
        Ok(())
    }
}

/// The files of a folder, in order.
fn list(folder: &Path) -> Result<Vec<PathBuf>, StageError> {
    let failed = |source| StageError::File { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut files = entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect::<Result<Vec<_>, _>>()?;
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_path_is_staged_and_its_words_are_rewritten() {
        let folder = std::env::temp_dir().join(format!("mpjdev-stage-test-{}", std::process::id()));
        fs::create_dir_all(folder.join("classes/a")).expect("a folder");
        for name in ["classes/a/B.class", "x.jar", "y.JAR", "z.txt"] {
            fs::write(folder.join(name), name).expect("a file");
        }
        let at = |name: &str| folder.join(name).into_os_string();
        let program = Program {
            name: "a.B".into(),
            is_java: true,
            is_jar: false,
            options: vec!["-Xmx1g".into()],
            class_path: vec![at("classes"), at("*"), at("x.jar"), at("none")],
            args: vec!["-cp".into(), "1".into()],
        };
        let stage = Stage::of(&program, &[at("x.jar")]).expect("files");
        let places: Vec<&str> = stage.sources.iter().map(|source| source.staged.path.as_str()).collect();
        assert_eq!(places, ["lib/x.jar", "cp/0/a/B.class", "cp/1/x.jar", "cp/1/y.JAR", "cp/2/x.jar"]);
        let lens: Vec<u64> = stage.sources.iter().map(|source| source.staged.len).collect();
        assert_eq!(lens, [5, 17, 5, 5, 5]);
        let path = format!("{STAGED_FOLDER}/cp/0:{STAGED_FOLDER}/cp/1/*:{STAGED_FOLDER}/cp/2/x.jar");
        assert_eq!(stage.words, ["-Xmx1g", "-cp", &path, "a.B", "-cp", "1"]);
        let command = Program { is_java: false, ..program };
        assert!(matches!(Stage::of(&command, &[]), Err(StageError::Command { .. })));
        fs::remove_dir_all(folder).expect("ours");
    }
}
