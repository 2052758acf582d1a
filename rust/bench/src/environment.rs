//! Environment of a run: date, commit, processor, kernel and JDK.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::contestant::processors;

/// Placeholder of a value that the system does not report.
pub const UNKNOWN: &str = "unknown";

/// Environment of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Command line, without the folder of the program.
    pub command: String,
    /// Day in UTC, as 2026-11-23.
    pub date: String,
    /// Commit of the checkout that contains the program, with a plus sign if files were changed.
    pub commit: String,
    /// Model of the processor.
    pub processor: String,
    /// Number of processors that the run could use.
    pub processors: u32,
    /// Kernel with its release.
    pub kernel: String,
    /// First line of `java --version`.
    pub jdk: String,
}

impl Environment {
    /// Environment of this process with the command line `args`, which measures Java by `java`.
    pub fn now(args: impl IntoIterator<Item = OsString>, program: &Path, java: &OsStr) -> Environment {
        let folder = program.parent().unwrap_or(Path::new("."));
        let mut git = Command::new("git");
        git.arg("-C").arg(folder).args(["describe", "--always", "--dirty=+", "--exclude=*"]);
        let mut jdk = Command::new(java);
        jdk.arg("--version");
        Environment {
            command: command_line(args),
            date: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or_else(|_| UNKNOWN.into(), day),
            commit: first_line(&mut git),
            processor: fs::read_to_string("/proc/cpuinfo")
                .ok()
                .and_then(|text| model(&text))
                .unwrap_or_else(unknown),
            processors: processors(),
            kernel: format!("{} {}", of_kernel("ostype"), of_kernel("osrelease")),
            jdk: first_line(&mut jdk),
        }
    }
}

fn unknown() -> String {
    UNKNOWN.to_owned()
}

/// The command line as text. The program has no folder.
fn command_line(args: impl IntoIterator<Item = OsString>) -> String {
    let mut words: Vec<String> = args.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(program) = words.first_mut() {
        let name = Path::new(program.as_str()).file_name().map(|name| name.to_string_lossy().into_owned());
        *program = name.unwrap_or_default();
    }
    words.join(" ")
}

/// Date of a time since 1970.
fn day(since: Duration) -> String {
    let mut days = since.as_secs() / 86_400;
    let is_leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, days + 1)
}

/// First line of a command's output.
fn first_line(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let line = text.and_then(|text| String::from_utf8_lossy(&text).lines().next().map(str::to_owned));
    line.unwrap_or_else(unknown)
}

/// Model in the text of /proc/cpuinfo. Some architectures omit it.
fn model(cpuinfo: &str) -> Option<String> {
    let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(name, _)| name.trim() == "model name").map(|(_, model)| model.trim().to_owned())
}

fn of_kernel(name: &str) -> String {
    let text = fs::read_to_string(Path::new("/proc/sys/kernel").join(name));
    text.map_or_else(|_| unknown(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_calendar_are_counted_with_leap_years() {
        let days = [0, 58, 59, 11_016, 11_017, 20_780];
        let expected = ["1970-01-01", "1970-02-28", "1970-03-01", "2000-02-29", "2000-03-01", "2026-11-23"];
        assert_eq!(days.map(|days| day(Duration::from_secs(days * 86_400 + 86_399))), expected);
    }

    #[test]
    fn missing_system_values_are_unknown() {
        assert_eq!(
            model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n"),
            Some("Some CPU @ 2 GHz".into())
        );
        assert_eq!(model("processor : 0\n"), None);
        assert_eq!(first_line(&mut Command::new("/no/such/command")), UNKNOWN);
        assert_eq!(first_line(Command::new("sh").args(["-c", "echo one; echo two"])), "one");
        assert_eq!(first_line(Command::new("sh").args(["-c", "echo one; exit 1"])), UNKNOWN);
    }

    #[test]
    fn command_line_names_the_program_without_its_folder() {
        let words = ["/a/b/mpjdev-bench", "figures", "--time", "1"].map(OsString::from);
        assert_eq!(command_line(words), "mpjdev-bench figures --time 1");
    }
}
