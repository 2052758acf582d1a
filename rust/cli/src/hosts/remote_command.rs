//! The command line that starts an agent on a host.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The program that starts agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteShell {
    /// OpenSSH, with further words.
    Ssh(Vec<OsString>),
    /// A job step of Slurm.
    Srun,
    /// A program with the arguments HOST COMMAND, as rsh(1) has them, behind words of its own.
    Program(Vec<OsString>),
}

impl RemoteShell {
    /// The shell of this name; other names are commands with their options.
    #[must_use]
    pub fn parse(text: &str) -> Option<RemoteShell> {
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        match words.split_first() {
            None => None,
            Some((first, rest)) if first == "ssh" => Some(RemoteShell::Ssh(rest.to_vec())),
            Some((first, [])) if first == "srun" => Some(RemoteShell::Srun),
            Some(_) => Some(RemoteShell::Program(words)),
        }
    }

    /// The name of its program.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            RemoteShell::Ssh(_) => "ssh".to_owned(),
            RemoteShell::Srun => "srun".to_owned(),
            RemoteShell::Program(words) => words[0].to_string_lossy().into_owned(),
        }
    }

    /// The words that run `script` with `sh` on this host.
    fn words(&self, host: &str, script: &str) -> Vec<OsString> {
        let own: Vec<OsString> = match self {
            // No password can be typed: standard input carries frames. No terminal, no forwarded agent.
            RemoteShell::Ssh(more) => {
                let own = ["ssh", "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "EscapeChar=none"]
                    .map(OsString::from);
                own.into_iter().chain(more.iter().cloned()).chain([host.into()]).collect()
            }
            // The step shares the allocation's processors with those of other jobs of this launcher.
            RemoteShell::Srun => {
                let list = format!("--nodelist={host}");
                let words = ["srun", "--nodes=1", "--ntasks=1", "--overlap", "--unbuffered", &list];
                return words.into_iter().chain(["sh", "-c", script]).map(OsString::from).collect();
            }
            RemoteShell::Program(words) => words.iter().cloned().chain([host.into()]).collect(),
        };
        own.into_iter().chain([OsString::from(format!("exec sh -c {}", quoted(script)))]).collect()
    }
}

/// The command of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentCommand {
    /// The same program at the same place as here.
    Installed,
    /// A copy of this many octets, which follows over standard input.
    Staged {
        /// The octets of the program.
        len: u64,
    },
}

/// First argument of an agent.
pub const AGENT: &str = "__agent";
/// Argument of an agent before the folder that its program was copied to.
pub const STAGED: &str = "--staged";

/// The words that start the agent of a host. `program` is the `mpjdev` of the launcher.
#[must_use]
pub fn command(shell: &RemoteShell, host: &str, program: &Path, agent: &AgentCommand) -> Vec<OsString> {
    shell.words(host, &script(program.as_os_str(), agent))
}

/// The words that start an agent on this machine.
#[must_use]
pub fn local_command() -> Vec<OsString> {
    ["/proc/self/exe", AGENT].map(OsString::from).to_vec()
}

fn script(program: &OsStr, agent: &AgentCommand) -> String {
    match agent {
        AgentCommand::Installed => {
            let path = quoted(&program.to_string_lossy());
            format!(
                "p={path}; if [ -x \"$p\" ]; then exec \"$p\" {AGENT}; fi; echo \"mpjdev-agent: missing $p\""
            )
        }
        // The shell stays, so that the folder is removed when the agent is killed. `head` reads not more than
        // it is asked for.
        AgentCommand::Staged { len } => format!(
            "umask 077; d=$(mktemp -d \"${{TMPDIR:-/tmp}}/mpjdev-stage-XXXXXX\") || exit 1; \
             trap 'rm -rf \"$d\"' EXIT; trap '' HUP INT TERM; mkdir \"$d/bin\" && \
             echo \"mpjdev-agent: stage $(uname -m)\" && head -c {len} >\"$d/bin/mpjdev\" && \
             chmod 700 \"$d/bin/mpjdev\" && \"$d/bin/mpjdev\" {AGENT} {STAGED} \"$d\""
        ),
    }
}

/// The text as one word of any shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A command line as a person would type it, for `--dry-run`.
#[must_use]
pub fn shown(words: &[OsString]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let word = |word: &OsString| {
        let text = word.to_string_lossy();
        if !text.is_empty() && text.chars().all(is_plain) { text.into_owned() } else { quoted(&text) }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Advice about the last words of a remote shell.
#[must_use]
pub fn advice(host: &str, said: &str) -> Option<String> {
    let has = |text: &str| said.contains(text);
    Some(if has("Could not resolve") || has("Name or service not known") {
        format!("check the name: getent hosts {host}")
    } else if has("Host key verification failed") {
        format!("accept the key of the host once: ssh {host} true")
    } else if has("Permission denied") {
        format!("copy your key to the host: ssh-copy-id {host}; a key with a passphrase needs ssh-agent")
    } else if has("Connection refused") {
        format!("is sshd running on {host}? ssh {host} true must work without a question")
    } else if has("timed out") || has("No route to host") || has("unreachable") {
        format!("check network and firewall: ssh {host} true")
    } else if has("Exec format error") {
        "this mpjdev is for another architecture".to_owned()
    } else if has("noexec") || has("/mpjdev: Permission denied") {
        "set TMPDIR on the host to a folder that programs may run in".to_owned()
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_shell_gets_one_word_that_any_login_shell_reads() {
        let words = command(
            &RemoteShell::Ssh(Vec::new()),
            "u@b",
            Path::new("/opt/it's/mpjdev"),
            &AgentCommand::Installed,
        );
        let (last, before) = words.split_last().expect("words");
        assert_eq!(before.last(), Some(&OsString::from("u@b")));
        let last = last.to_str().expect("UTF-8");
        assert!(last.starts_with("exec sh -c 'p="), "{last}");
        let run = std::process::Command::new("sh").args(["-c", last]).output().expect("sh");
        assert_eq!(String::from_utf8_lossy(&run.stdout), "mpjdev-agent: missing /opt/it's/mpjdev\n");
    }

    #[test]
    fn staged_program_runs_and_its_folder_is_removed() {
        let program = b"#!/bin/sh\necho \"$0 $*\"; cat\n";
        let agent = AgentCommand::Staged { len: program.len() as u64 };
        let shell = RemoteShell::parse("sh -c eval\u{20}").expect("a program");
        assert_eq!(shell.name(), "sh");
        let script = script(OsStr::new("unused"), &agent);
        let mut child = std::process::Command::new("sh")
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("sh");
        let mut input = child.stdin.take().expect("piped");
        std::io::Write::write_all(&mut input, &[&program[..], b"the rest"].concat()).expect("it reads");
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let (first, second) = text.split_once('\n').expect("two lines");
        assert!(first.starts_with("mpjdev-agent: stage "), "{text}");
        let folder = second.split("/bin/mpjdev").next().expect("a folder");
        assert!(second.contains(&format!("{AGENT} {STAGED} {folder}\nthe rest")), "{text}");
        assert!(!Path::new(folder).exists(), "{folder}");
    }

    #[test]
    fn shells_are_known_by_name() {
        assert_eq!(RemoteShell::parse("ssh"), Some(RemoteShell::Ssh(Vec::new())));
        assert_eq!(RemoteShell::parse(" srun "), Some(RemoteShell::Srun));
        assert_eq!(RemoteShell::parse(""), None);
        let Some(RemoteShell::Program(words)) = RemoteShell::parse("rsh -4") else { panic!("a program") };
        assert_eq!(words, ["rsh", "-4"]);
        let ssh = RemoteShell::parse("ssh -p 2222").expect("ssh");
        let words = command(&ssh, "b", Path::new("/m"), &AgentCommand::Installed);
        assert_eq!(words[words.len() - 4..words.len() - 1], ["-p", "2222", "b"]);
        let words = command(&RemoteShell::Srun, "n1", Path::new("/m"), &AgentCommand::Installed);
        assert_eq!(words[..2], ["srun", "--nodes=1"]);
        assert_eq!(words[words.len() - 3..words.len() - 1], ["sh", "-c"]);
    }

    #[test]
    fn shown_words_are_quoted_if_they_need_it() {
        let words = ["ssh", "b", "exec sh -c 'x'", ""].map(OsString::from);
        assert_eq!(shown(&words), "ssh b 'exec sh -c '\\''x'\\''' ''");
    }

    #[test]
    fn advice_follows_the_words_of_ssh() {
        let of = |said| advice("b", said).unwrap_or_default();
        assert!(
            of("ssh: Could not resolve hostname b: Name or service not known").contains("getent hosts b")
        );
        assert!(of("u@b: Permission denied (publickey).").contains("ssh-copy-id b"));
        assert!(of("ssh: connect to host b port 22: Connection refused").contains("sshd"));
        assert!(of("ssh: connect to host b port 22: No route to host").contains("firewall"));
        assert!(of("Host key verification failed.").contains("accept the key"));
        assert_eq!(advice("b", "something else"), None);
    }
}
