//! The target of a launcher: a command, a jar or a class, and the command line that starts it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Facts about files and environment, which tests replace.
pub trait Surroundings {
    /// Whether the PATH has a command of this name.
    fn is_command(&self, name: &OsStr) -> bool;

    /// The `Main-Class` of a jar.
    ///
    /// # Errors
    /// The jar cannot be read, or has none.
    fn main_class(&self, jar: &Path) -> Result<String, JarError>;

    /// The `java` command.
    fn java(&self) -> OsString;

    /// Our own jars beside the command. A program opens the later ones only if it looks for their classes.
    fn own_jars(&self) -> Vec<OsString>;

    /// The class path of a program that names none.
    fn class_path(&self) -> OsString;
}

/// The reason why a jar has no main class.
#[derive(Debug, Error)]
pub enum JarError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is no archive.
    #[error(transparent)]
    Archive(#[from] zip::result::ZipError),
    /// The archive has no manifest.
    #[error("it has no manifest")]
    NoManifest,
    /// The manifest has no main class.
    #[error("its manifest names no Main-Class")]
    NoMainClass,
}

/// The reason why a program cannot be started.
#[derive(Debug, Error)]
pub enum TargetError {
    /// The command line ends behind the options of the JVM.
    #[error("no program: a class name or a jar is needed after {last}")]
    NoProgram {
        /// The last option.
        last: String,
    },
    /// An option has no value.
    #[error("{option} needs a value")]
    NoValue {
        /// The option.
        option: String,
    },
    /// Neither a command nor a class has this name.
    #[error(
        "{name} is no command on the PATH, no jar and no class name (a command in this folder is written \
         ./{name})"
    )]
    Unknown {
        /// The name.
        name: String,
    },
    /// A command starts no threads of ours.
    #[error("--threads is for a class or a jar with package mpi, not for the command {name}")]
    Threads {
        /// The name.
        name: String,
    },
    /// A command takes no arguments of ours.
    #[error("--args is for a class or a jar with package mpi, not for the command {name}")]
    Args {
        /// The name.
        name: String,
    },
    /// The jar cannot be started.
    #[error("{jar}: {error}")]
    Jar {
        /// The jar.
        jar: String,
        /// The reason.
        error: JarError,
    },
}

/// Options of the JVM whose value is the next word.
const WITH_VALUE: [&str; 12] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-opens",
    "--add-exports",
    "--add-reads",
    "--limit-modules",
    "--patch-module",
];
/// Main class of a job whose ranks are threads.
const RANK_THREADS: &str = "mpjdev.core.RankThreads";
/// Option of the JVM that makes `MPI.Init` remove the prefix of the arguments.
const PREFIX_PROPERTY: &str = "-Dmpjdev.args=mpje";
/// Options that give the class path.
const CLASS_PATH: [&str; 3] = ["-cp", "-classpath", "--class-path"];
/// The jar of package mpi with the classes of MPJ Express.
const COMPAT_JAR: &str = "mpj-compat.jar";

/// The form in which a class is started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// Number of ranks that are threads of one JVM, if they are.
    pub threads: Option<u32>,
    /// Whether the arguments begin with three of MPJ Express.
    pub has_prefix: bool,
}

/// A command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its words.
    pub words: Vec<OsString>,
    /// Number of the last words that are arguments of the program.
    pub args_len: usize,
}

/// The command line for `words`, the words behind mpjrun's own options.
///
/// Words that begin with a dash before the program's name are options of the JVM; the program is Java then.
/// Otherwise a name on the PATH or with a slash is a command. `*.jar` is a jar. Any other valid name is a
/// class.
///
/// # Errors
/// There is no program, none of this name, or it is a command that has to start as a class does.
pub fn resolve(words: &[OsString], start: Start, around: &dyn Surroundings) -> Result<Target, TargetError> {
    let program = Program::of(words, around)?;
    let Program { name, args, .. } = &program;
    let args_len = args.len();
    let text = name.to_string_lossy();
    if !program.is_java {
        return match start {
            Start { threads: Some(_), .. } => Err(TargetError::Threads { name: text.into_owned() }),
            Start { has_prefix: true, .. } => Err(TargetError::Args { name: text.into_owned() }),
            Start { .. } => Ok(Target { words: [name].into_iter().chain(args).cloned().collect(), args_len }),
        };
    }
    let main = if program.is_jar {
        let main = around.main_class(Path::new(name));
        main.map_err(|error| TargetError::Jar { jar: text.into_owned(), error })?.into()
    } else if is_class_name(&text) {
        name.clone()
    } else {
        return Err(TargetError::Unknown { name: text.into_owned() });
    };
    Ok(Target { words: java(&program, started(main, start), around), args_len })
}

/// A program as the user has written it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The command, the jar or the class.
    pub name: OsString,
    /// Whether `java` starts it.
    pub is_java: bool,
    /// Whether it is a jar.
    pub is_jar: bool,
    /// Options of the JVM without the class path.
    pub options: Vec<OsString>,
    /// Entries of the class path, without the jar and without our own.
    pub class_path: Vec<OsString>,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl Program {
    /// The program of the words behind mpjrun's own options.
    ///
    /// # Errors
    /// There is no program.
    pub fn of(words: &[OsString], around: &dyn Surroundings) -> Result<Program, TargetError> {
        let (jvm, rest) = jvm_options(words)?;
        let Some((name, args)) = rest.split_first() else {
            let last = words.last().map(|w| w.to_string_lossy().into_owned()).unwrap_or_default();
            return Err(TargetError::NoProgram { last });
        };
        let text = name.to_string_lossy();
        let is_jar = text.ends_with(".jar");
        let is_java = !jvm.is_empty() || is_jar || !(text.contains('/') || around.is_command(name));
        let (mut paths, options) = split_class_path(jvm);
        if paths.is_empty() && is_java && !is_jar {
            paths.push(around.class_path());
        }
        let entries = paths.iter().flat_map(std::env::split_paths).map(PathBuf::into_os_string);
        Ok(Program {
            name: name.clone(),
            is_java,
            is_jar,
            options,
            class_path: entries.collect(),
            args: args.to_vec(),
        })
    }

    /// The words of a class or jar `name` with this class path, and with its options and arguments.
    #[must_use]
    pub fn with_class_path(&self, class_path: &OsStr, name: OsString) -> Vec<OsString> {
        let mut words = self.options.clone();
        if !class_path.is_empty() {
            words.extend(["-cp".into(), class_path.to_owned()]);
        }
        words.push(name);
        words.extend(self.args.iter().cloned());
        words
    }
}

/// The values of the options that give a class path, and the other options.
fn split_class_path(jvm: &[OsString]) -> (Vec<OsString>, Vec<OsString>) {
    let (mut paths, mut others) = (Vec::new(), Vec::new());
    let mut words = jvm.iter();
    while let Some(word) = words.next() {
        if CLASS_PATH.iter().any(|option| *word == **option) {
            paths.extend(words.next().cloned());
        } else if let Some(path) = word.to_str().and_then(|word| word.strip_prefix("--class-path=")) {
            paths.push(path.into());
        } else {
            others.push(word.clone());
        }
    }
    (paths, others)
}

/// The options before the program's name, and the rest.
fn jvm_options(words: &[OsString]) -> Result<(&[OsString], &[OsString]), TargetError> {
    let mut n = 0;
    while let Some(word) = words.get(n).filter(|w| w.as_encoded_bytes().starts_with(b"-")) {
        let takes_value = WITH_VALUE.iter().any(|o| *word == **o);
        n += 1 + usize::from(takes_value);
        if n > words.len() {
            return Err(TargetError::NoValue { option: word.to_string_lossy().into_owned() });
        }
    }
    Ok(words.split_at(n))
}

/// The words that start a main class: itself, or behind the class that starts it in each rank.
fn started(main: OsString, start: Start) -> Vec<OsString> {
    let starter = start.threads.map(|ranks| [RANK_THREADS.into(), ranks.to_string().into()]);
    let property = start.has_prefix.then(|| PREFIX_PROPERTY.into());
    property.into_iter().chain(starter.into_iter().flatten()).chain([main]).collect()
}

/// The command line of `java` that starts a program by these words.
fn java(program: &Program, main: Vec<OsString>, around: &dyn Surroundings) -> Vec<OsString> {
    let jar = program.is_jar.then(|| program.name.clone());
    let mut class_path: Vec<OsString> = jar.into_iter().chain(program.class_path.iter().cloned()).collect();
    if !class_path.iter().any(|entry| names_compat(entry)) {
        class_path.extend(around.own_jars());
    }
    let mut line = vec![around.java(), "--enable-native-access=ALL-UNNAMED".into()];
    line.extend(program.options.iter().cloned());
    line.extend(["-cp".into(), class_path.join(OsStr::new(":"))]);
    line.extend(main);
    line.extend(program.args.iter().cloned());
    line
}

/// Whether an entry of a class path is the jar that replaces ours.
fn names_compat(entry: &OsStr) -> bool {
    Path::new(entry).file_name().is_some_and(|name| name == COMPAT_JAR)
}

/// Whether this can be a class: identifiers with dots between them.
fn is_class_name(text: &str) -> bool {
    let is_identifier = |part: &str| {
        let mut letters = part.chars();
        letters.next().is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$')
            && letters.all(|c| c.is_alphanumeric() || c == '_' || c == '$')
    };
    text.split('.').all(is_identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Around;

    impl Surroundings for Around {
        fn is_command(&self, name: &OsStr) -> bool {
            name == "java" || name == "hostname"
        }

        fn main_class(&self, jar: &Path) -> Result<String, JarError> {
            if jar == Path::new("app.jar") { Ok("app.Main".into()) } else { Err(JarError::NoMainClass) }
        }

        fn java(&self) -> OsString {
            "/jdk/bin/java".into()
        }

        fn own_jars(&self) -> Vec<OsString> {
            ["/lib/mpjdev.jar", "/lib/mpj.jar"].map(OsString::from).into()
        }

        fn class_path(&self) -> OsString {
            ".".into()
        }
    }

    fn resolved(line: &str) -> Result<String, TargetError> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        resolve(&words, Start::default(), &Around).map(|target| joined(&target))
    }

    fn joined(target: &Target) -> String {
        target.words.join(OsStr::new(" ")).into_string().unwrap()
    }

    const JAVA: &str = "/jdk/bin/java --enable-native-access=ALL-UNNAMED";
    const OURS: &str = "/lib/mpjdev.jar:/lib/mpj.jar";

    #[test]
    fn name_on_the_path_or_with_a_slash_is_a_command() {
        assert_eq!(resolved("java -cp app.jar Main 1").unwrap(), "java -cp app.jar Main 1");
        assert_eq!(resolved("./prog -n 3").unwrap(), "./prog -n 3");
        assert_eq!(resolved("hostname").unwrap(), "hostname");
    }

    #[test]
    fn jar_is_started_by_its_main_class_with_our_jars_on_the_class_path() {
        let expected = format!("{JAVA} -cp app.jar:{OURS} app.Main -cp x");
        assert_eq!(resolved("app.jar -cp x").unwrap(), expected);
        let expected = format!("{JAVA} -Xmx1g -cp app.jar:dep.jar:{OURS} app.Main");
        assert_eq!(resolved("-Xmx1g -cp dep.jar app.jar").unwrap(), expected);
    }

    #[test]
    fn our_jars_stay_away_where_the_class_path_names_their_replacement() {
        let expected = format!("{JAVA} -cp classes:lib/mpj-compat.jar app.Main");
        assert_eq!(resolved("-cp classes:lib/mpj-compat.jar app.Main").unwrap(), expected);
        let expected = format!("{JAVA} -cp mpj-compat.jar.d:{OURS} app.Main");
        assert_eq!(resolved("-cp mpj-compat.jar.d app.Main").unwrap(), expected);
    }

    #[test]
    fn other_name_is_a_class_and_options_before_it_go_to_java() {
        let expected = format!("{JAVA} -cp .:{OURS} demo.Main 7");
        assert_eq!(resolved("demo.Main 7").unwrap(), expected);
        let expected = format!("{JAVA} -Da=b -Xss1m -cp out:{OURS} Main");
        assert_eq!(resolved("-Da=b -cp out -Xss1m Main").unwrap(), expected);
        let expected = format!("{JAVA} -cp out:{OURS} Main");
        assert_eq!(resolved("--class-path=out Main").unwrap(), expected);
        let expected = format!("{JAVA} --add-modules x -cp .:{OURS} java");
        assert_eq!(resolved("--add-modules x java").unwrap(), expected, "with JVM options it is Java");
    }

    #[test]
    fn class_with_threads_is_started_in_each_rank_of_one_jvm() {
        let threaded = |line: &str| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let start = Start { threads: Some(3), has_prefix: false };
            resolve(&words, start, &Around).map(|target| joined(&target))
        };
        let expected = format!("{JAVA} -Xss1m -cp .:{OURS} mpjdev.core.RankThreads 3 demo.Main 7");
        assert_eq!(threaded("-Xss1m demo.Main 7").unwrap(), expected);
        let expected = format!("{JAVA} -cp app.jar:{OURS} mpjdev.core.RankThreads 3 app.Main");
        assert_eq!(threaded("app.jar").unwrap(), expected);
        assert!(matches!(threaded("java Main"), Err(TargetError::Threads { name }) if name == "java"));
    }

    #[test]
    fn class_with_a_prefix_has_a_property_and_a_place_for_it() {
        let target = |line: &str, threads| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            resolve(&words, Start { threads, has_prefix: true }, &Around)
        };
        let found = target("-Xss1m demo.Main 7 8", None).unwrap();
        assert_eq!(joined(&found), format!("{JAVA} -Xss1m -cp .:{OURS} {PREFIX_PROPERTY} demo.Main 7 8"));
        assert_eq!(found.args_len, 2);
        let found = target("app.jar", Some(2)).unwrap();
        let started = format!("{PREFIX_PROPERTY} mpjdev.core.RankThreads 2 app.Main");
        assert_eq!(joined(&found), format!("{JAVA} -cp app.jar:{OURS} {started}"));
        assert!(matches!(target("./prog", None), Err(TargetError::Args { name }) if name == "./prog"));
    }

    #[test]
    fn unusable_targets_are_refused_with_a_reason() {
        let error = |line| resolved(line).expect_err(line);
        assert!(matches!(error("-cp out"), TargetError::NoProgram { last } if last == "out"));
        assert!(matches!(error("-cp"), TargetError::NoValue { option } if option == "-cp"));
        assert!(matches!(error("no-such-thing"), TargetError::Unknown { name } if name == "no-such-thing"));
        assert_eq!(error("lib.jar").to_string(), "lib.jar: its manifest names no Main-Class");
    }
}
