//! Filter of events: the value of `MPJDEV_LOG`.

use std::fmt;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

/// The targets of all events.
pub const TARGETS: [&str; 11] = [
    "mpjdev::collective",
    "mpjdev::failure",
    "mpjdev::job",
    "mpjdev::mesh",
    "mpjdev::mpi",
    "mpjdev::rank",
    "mpjdev::rendezvous",
    "mpjdev::server",
    "mpjdev::shm",
    "mpjdev::tcp",
    "mpjdev::udp",
];
/// The prefix of all targets, which is a target that means all of them.
const ALL: &str = "mpjdev";
/// The levels. No event has the level `trace`.
const LEVELS: [(&str, LevelFilter); 5] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
];

/// An invalid part of the variable's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// The part has no such level.
    Level(String),
    /// The part has no such target.
    Target(String),
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Level(found) => {
                write!(f, "{found:?} is not a level; levels are error, warn, info, debug, off")
            }
            FilterError::Target(found) => {
                write!(f, "{found:?} is not a target; targets are {}", TARGETS.join(", "))
            }
        }
    }
}

/// Parses a level for all targets, or a list of `target=level` and such levels with commas between them.
///
/// The parser of `Targets` would accept a misspelt level as a target.
pub(crate) fn parse(value: &str) -> Result<Targets, FilterError> {
    let mut targets = Targets::new();
    for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (target, level) = part.split_once('=').unwrap_or((ALL, part));
        let (target, level) = (target.trim(), level.trim());
        if target != ALL && !TARGETS.contains(&target) {
            return Err(FilterError::Target(target.to_owned()));
        }
        let found = LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(level));
        let (_, level) = found.ok_or_else(|| FilterError::Level(level.to_owned()))?;
        targets = targets.with_target(target, *level);
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn level_alone_enables_every_target_and_nothing_else() {
        let targets = parse("Info").expect("a level");
        for target in TARGETS {
            assert!(targets.would_enable(target, &Level::INFO), "{target}");
            assert!(!targets.would_enable(target, &Level::DEBUG), "{target}");
        }
        assert!(!targets.would_enable("polling", &Level::ERROR), "an event of a library");
    }

    #[test]
    fn target_with_a_level_wins_over_the_level_alone() {
        for value in ["warn,mpjdev::tcp=debug", " mpjdev::tcp=debug , warn,"] {
            let targets = parse(value).expect("a list");
            assert!(targets.would_enable("mpjdev::tcp", &Level::DEBUG), "{value}");
            assert!(!targets.would_enable("mpjdev::udp", &Level::INFO), "{value}");
            assert!(targets.would_enable("mpjdev::udp", &Level::WARN), "{value}");
        }
        let targets = parse("debug,mpjdev::udp=off").expect("a list");
        assert!(!targets.would_enable("mpjdev::udp", &Level::ERROR));
    }

    #[test]
    fn misspelt_part_is_refused_by_its_name() {
        for (value, error) in [
            ("debgu", FilterError::Level("debgu".to_owned())),
            ("trace", FilterError::Level("trace".to_owned())),
            ("info,mpjdev::tcp=3", FilterError::Level("3".to_owned())),
            ("mpjdev::tpc=info", FilterError::Target("mpjdev::tpc".to_owned())),
            ("=info", FilterError::Target(String::new())),
        ] {
            assert_eq!(parse(value).map(|targets| targets.to_string()), Err(error), "{value}");
        }
    }
}
