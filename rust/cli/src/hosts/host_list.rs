//! Lists of hosts: the value of `--hosts`, and a hostfile in the forms of Open MPI and MPICH.
//!
//! ```text
//!   --hosts a:4,user@b,[2001:db8::1]:2
//!
//!   # a hostfile
//!   a slots=4 max_slots=8
//!   b:2
//!   c
//! ```

use thiserror::Error;

/// Maximum hosts of a job.
pub const HOSTS_MAX: usize = 4096;

/// A machine that ranks can run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name or address, as the remote shell gets it; also `user@name`.
    pub name: String,
    /// Its slots. Without a number `-n` decides.
    pub slots: Option<u32>,
}

/// The reason why a list of hosts is not valid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum HostListError {
    /// The list has no host.
    #[error("the list of hosts is empty")]
    Empty,
    /// A name is missing, or has characters that no host name has.
    #[error("{text:?} is no host: a name or an address is needed, such as a, a:4 or [2001:db8::1]:4")]
    Name {
        /// The word.
        text: String,
    },
    /// The slots are no number.
    #[error("{host}: {text:?} is no number of slots, which is 1 to 4096")]
    Slots {
        /// The host.
        host: String,
        /// The text in place of the number.
        text: String,
    },
    /// A word of a hostfile has another meaning, or none.
    #[error("{host}: {word:?} is not known in a hostfile: write slots=N")]
    Word {
        /// The host.
        host: String,
        /// The word.
        word: String,
    },
    /// The list is longer than a job can be.
    #[error("{count} hosts are listed; a job has at most {HOSTS_MAX}")]
    Many {
        /// Number of hosts.
        count: usize,
    },
    /// The error of one line of a hostfile.
    #[error("line {line}: {error}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The error.
        error: Box<HostListError>,
    },
}

/// Parses the value of `--hosts`.
///
/// # Errors
/// The text is no list of hosts.
pub fn parse_hosts(text: &str) -> Result<Vec<Host>, HostListError> {
    merge(text.split(',').map(host).collect::<Result<_, _>>()?)
}

/// Parses a hostfile. A `#` begins a comment.
///
/// # Errors
/// A line is no host, with the number of the line.
pub fn parse_hostfile(text: &str) -> Result<Vec<Host>, HostListError> {
    let mut hosts = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            let failed = |error| HostListError::Line { line: at + 1, error: Box::new(error) };
            hosts.push(host_line(line).map_err(failed)?);
        }
    }
    merge(hosts)
}

/// One line: a host, and its slots behind a colon or as `slots=N`.
fn host_line(line: &str) -> Result<Host, HostListError> {
    let mut words = line.split_whitespace();
    let mut found = host(words.next().unwrap_or_default())?;
    for word in words {
        match word.split_once('=') {
            Some(("slots", number)) => found.slots = Some(slots(&found.name, number)?),
            // The limit of Open MPI on the ranks of a host. Ours is the number of slots.
            Some(("max_slots" | "max-slots", number)) => {
                slots(&found.name, number)?;
            }
            _ => return Err(HostListError::Word { host: found.name, word: word.to_owned() }),
        }
    }
    Ok(found)
}

/// A host, and its slots behind a colon. An address of IPv6 with slots needs brackets.
fn host(text: &str) -> Result<Host, HostListError> {
    let text = text.trim();
    let invalid = || HostListError::Name { text: text.to_owned() };
    let (name, number) = match text.split_once('[') {
        Some((user, rest)) => {
            let (address, rest) = rest.split_once(']').ok_or_else(invalid)?;
            let number =
                if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(invalid)?) };
            (format!("{user}{address}"), number)
        }
        None if text.matches(':').count() == 1 => {
            let (name, number) = text.split_once(':').ok_or_else(invalid)?;
            (name.to_owned(), Some(number))
        }
        None => (text.to_owned(), None),
    };
    let is_known = |c: char| c.is_alphanumeric() || "-_.@:%".contains(c);
    let bare = name.rsplit('@').next().unwrap_or_default();
    // A dash would begin an option of the remote shell.
    if bare.is_empty() || name.starts_with(['-', '@']) || bare.starts_with('-') || !name.chars().all(is_known)
    {
        return Err(invalid());
    }
    let slots = number.map(|number| slots(&name, number)).transpose()?;
    Ok(Host { name, slots })
}

fn slots(host: &str, text: &str) -> Result<u32, HostListError> {
    let number = text.parse().ok().filter(|number| (1..=4096).contains(number));
    number.ok_or_else(|| HostListError::Slots { host: host.to_owned(), text: text.to_owned() })
}

/// Adds the slots of a host that is listed several times, as Open MPI does. A mention without a number counts
/// as one slot then.
fn merge(hosts: Vec<Host>) -> Result<Vec<Host>, HostListError> {
    let mut merged: Vec<Host> = Vec::new();
    for host in hosts {
        match merged.iter_mut().find(|known| known.name == host.name) {
            Some(known) => {
                known.slots = Some(known.slots.unwrap_or(1).saturating_add(host.slots.unwrap_or(1)))
            }
            None => merged.push(host),
        }
    }
    match merged.len() {
        0 => Err(HostListError::Empty),
        count if count > HOSTS_MAX => Err(HostListError::Many { count }),
        _ => Ok(merged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(hosts: &[(&str, Option<u32>)]) -> Result<Vec<Host>, HostListError> {
        Ok(hosts.iter().map(|(name, slots)| Host { name: (*name).to_owned(), slots: *slots }).collect())
    }

    #[test]
    fn hosts_have_names_addresses_users_and_slots() {
        let all = "a:4,b, user@c:2,10.0.0.1:3,[2001:db8::1]:2,user@[2001:db8::2],2001:db8::3";
        let expected = [
            ("a", Some(4)),
            ("b", None),
            ("user@c", Some(2)),
            ("10.0.0.1", Some(3)),
            ("2001:db8::1", Some(2)),
            ("user@2001:db8::2", None),
            ("2001:db8::3", None),
        ];
        assert_eq!(parse_hosts(all), listed(&expected));
    }

    #[test]
    fn hostfile_has_slots_comments_and_empty_lines() {
        let file = "# nodes\n\na slots=4 max_slots=8\n  b:2 # fast\nc\n";
        assert_eq!(parse_hostfile(file), listed(&[("a", Some(4)), ("b", Some(2)), ("c", None)]));
    }

    #[test]
    fn slots_of_a_repeated_host_are_added() {
        assert_eq!(parse_hosts("a,b:2,a,b:3,a"), listed(&[("a", Some(3)), ("b", Some(5))]));
    }

    #[test]
    fn malformed_hosts_are_refused() {
        for text in
            ["", ",", "a,,b", ":4", "-oProxyCommand=x", "u@-x", "@a", "a b", "a;b", "a$(b)", "[::1", "[]:2"]
        {
            assert!(parse_hosts(text).is_err(), "{text:?}");
        }
        for text in ["a:0", "a:x", "a:4097", "a:-1", "a:"] {
            assert!(matches!(parse_hosts(text), Err(HostListError::Slots { .. })), "{text:?}");
        }
        assert_eq!(parse_hostfile("# none\n"), Err(HostListError::Empty));
        let error = parse_hostfile("a\nb cores=3\n").expect_err("no such word");
        assert_eq!(error.to_string(), "line 2: b: \"cores=3\" is not known in a hostfile: write slots=N");
        let many = vec!["a"; 1].into_iter().map(str::to_owned).chain((0..HOSTS_MAX).map(|n| format!("h{n}")));
        let many = many.collect::<Vec<_>>().join(",");
        assert_eq!(parse_hosts(&many), Err(HostListError::Many { count: HOSTS_MAX + 1 }));
    }
}
