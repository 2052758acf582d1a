//! Rewriting of command lines: spellings of other launchers become ours, and the command line of a job of
//! sites becomes that of one site.

use std::ffi::OsString;

/// Options of `run` with one value, in all spellings.
pub(super) const WITH_VALUE: &[&str] = &[
    "-n",
    "--ranks",
    "-x",
    "--bind",
    "--timeout",
    "--grace",
    "--init-timeout",
    "--init-wait",
    "--args",
    "--transport",
    "--address",
    "--ports",
    "--connect-timeout",
    "--peer-timeout",
    "--silence",
    "--link-rate",
    "--datagram-len",
    "--sites",
    "--dialect",
    "--first-rank",
    "--of-host",
    "--world-size",
    "--hosts",
    "--host",
    "--hostfile",
    "--map-by",
    "--launcher",
    "--interface",
    "--at-once",
    "--profile",
    "--report-pipe",
    "-np",
];
/// The option with two values, in both spellings.
const CLIENT: [&str; 2] = ["-client", "--client"];

/// The number of words of an option of `run`, with its values.
fn len(word: &OsString) -> usize {
    let is_one_of = |options: &[&str]| options.iter().any(|option| *word == **option);
    1 + usize::from(is_one_of(WITH_VALUE)) + 2 * usize::from(is_one_of(&CLIENT))
}

/// The indexes of the options of `run`. The words of the program are not among them.
fn options(words: &[OsString]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    let is_option = |word: &&OsString| word.as_encoded_bytes().starts_with(b"-") && **word != *"--";
    while let Some(word) = words.get(at).filter(is_option) {
        found.push(at);
        at += len(word);
    }
    found
}

/// A command line with our spelling of the options: `-np` becomes `-n`, and `-client`, `-server` and `-port`
/// (IMPI 12) get two dashes, because clap reads one dash as the beginning of single letters. The words of the
/// program stay as they are.
pub fn known(mut args: Vec<OsString>) -> Vec<OsString> {
    let known: &[(&str, &str)] = match args.get(1) {
        Some(word) if *word == *"run" => &[("-np", "-n"), ("-client", "--client")],
        Some(word) if *word == *"impi-server" => &[("-server", "--server"), ("-port", "--port")],
        _ => return args,
    };
    let is_run = args[1] == *"run";
    let places = if is_run { options(&args[2..]) } else { (0..args.len() - 2).collect() };
    for at in places {
        let word = &mut args[2 + at];
        if let Some((_, ours)) = known.iter().find(|(theirs, _)| *word == **theirs) {
            *word = (*ours).into();
        }
    }
    args
}

/// The part of the command line that all sites share: the words of `run` without the command's name and
/// without the options of the launcher that starts all sites.
pub(super) fn of_site(args: &[OsString]) -> Vec<OsString> {
    const OWN: [&str; 4] = ["--sites", "--timeout", "--profile", "--trace"];
    let words = args.get(1..).unwrap_or_default();
    let is_own = |word: &OsString| {
        let name = word.to_str().map(|word| word.split_once('=').map_or(word, |(name, _)| name));
        name.is_some_and(|name| OWN.contains(&name))
    };
    let mut left = Vec::new();
    let mut end = 0;
    for at in options(words) {
        end = (at + len(&words[at])).min(words.len());
        if !is_own(&words[at]) {
            left.extend_from_slice(&words[at..end]);
        }
    }
    left.extend_from_slice(&words[end..]);
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn np_is_rewritten_before_the_program_only() {
        let line = known(words("mpjdev run --tag-output -np 3 -x A=-np -cp x Main -np 4"));
        assert_eq!(line, words("mpjdev run --tag-output -n 3 -x A=-np -cp x Main -np 4"));
        assert_eq!(known(words("mpjdev inspect -np")), words("mpjdev inspect -np"));
    }

    #[test]
    fn long_options_with_one_dash_are_rewritten() {
        let line = known(words("mpjdev impi-server -server 2 -port 5000 --host ::1"));
        assert_eq!(line, words("mpjdev impi-server --server 2 --port 5000 --host ::1"));
        let line = known(words("mpjdev run -client 0 host:5000 -n 2 x -client 1 -server"));
        assert_eq!(line, words("mpjdev run --client 0 host:5000 -n 2 x -client 1 -server"));
        assert_eq!(known(words("mpjdev run -n 1 x -server")), words("mpjdev run -n 1 x -server"));
        assert_eq!(known(words("mpjdev")), words("mpjdev"));
    }

    #[test]
    fn command_line_of_a_site_omits_options_of_the_launcher() {
        let of = |line| of_site(&words(line));
        let line = of("run --sites 2 -n 3 --timeout 9 --tag-output -x A=1 java --sites 4 --timeout 3");
        assert_eq!(line, words("-n 3 --tag-output -x A=1 java --sites 4 --timeout 3"));
        let line = of("run --sites 2 -n 3 --connect-timeout 5 x");
        assert_eq!(line, words("-n 3 --connect-timeout 5 x"));
        assert_eq!(of("run -n2 --sites=2 --timeout=1 -cp x Main"), words("-n2 -cp x Main"));
        assert_eq!(of("run --sites 2 -n 2 -- --sites"), words("-n 2 -- --sites"));
        assert_eq!(of("run --trace --sites 2 --profile d -n 2 Main --trace"), words("-n 2 Main --trace"));
    }
}
