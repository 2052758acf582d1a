//! Line of one event: time of day, level, rank, target, message, fields.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::Targets;

/// The field that becomes the column of the rank.
const RANK: &str = "rank";
/// The field of the text.
const MESSAGE: &str = "message";
/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// Subscriber that writes each event as one line. This project has no spans.
pub(crate) struct Lines {
    targets: Targets,
    process: &'static str,
}

impl Lines {
    pub(crate) fn new(targets: Targets, process: &'static str) -> Lines {
        Lines { targets, process }
    }

    fn format(&self, event: &Event<'_>, time: SystemTime) -> String {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let rank = fields.rank.map_or_else(|| self.process.to_owned(), |rank| format!("rank {rank}"));
        let time = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = time.as_secs() % DAY;
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let metadata = event.metadata();
        format!(
            "{hour:02}:{minute:02}:{second:02}.{:06} {:<5} {rank} {}: {}{}\n",
            time.subsec_micros(),
            metadata.level().as_str(),
            metadata.target(),
            fields.message,
            fields.others
        )
    }
}

impl Subscriber for Lines {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // The filter does not change, so each call site is checked once.
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && self.targets.would_enable(metadata.target(), metadata.level())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.targets.iter().map(|(_, level)| level).max()
    }

    fn event(&self, event: &Event<'_>) {
        // One write, so that lines of threads and processes are not mixed. An error cannot be reported.
        let _ = std::io::stderr().write_all(self.format(event, SystemTime::now()).as_bytes());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The fields of one event.
#[derive(Default)]
struct Fields {
    rank: Option<u64>,
    message: String,
    others: String,
}

impl Fields {
    /// Adds a field. A text may come from a peer, so control characters are escaped.
    fn add(&mut self, field: &Field, value: &str) {
        let escaped = value.chars().flat_map(|c| {
            let is_control = c.is_control();
            let escape = c.escape_default().take(if is_control { usize::MAX } else { 0 });
            escape.chain((!is_control).then_some(c))
        });
        if field.name() == MESSAGE {
            return self.message.extend(escaped);
        }
        let quote = if value.contains(' ') || value.is_empty() { "\"" } else { "" };
        // Writing to a string does not fail.
        let _ = write!(self.others, " {field}={quote}");
        self.others.extend(escaped);
        self.others.push_str(quote);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            RANK => self.rank = Some(value),
            _ => self.add(field, &value.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// Keeps the lines instead of writing them.
    struct Kept(Lines, Arc<Mutex<Vec<String>>>);

    impl Subscriber for Kept {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            self.0.enabled(metadata)
        }

        fn event(&self, event: &Event<'_>) {
            let time = UNIX_EPOCH + Duration::from_micros(((25 * 60 + 2) * 60 + 3) * 1_000_000 + 45);
            self.1.lock().expect("no panic").push(self.0.format(event, time));
        }

        fn new_span(&self, attributes: &Attributes<'_>) -> Id {
            self.0.new_span(attributes)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    /// The lines of the events of `emit` with this filter.
    fn lines(filter: &str, emit: impl FnOnce()) -> Vec<String> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let targets = crate::filter::parse(filter).expect("a filter");
        let subscriber = Kept(Lines::new(targets, "mpjrun"), kept.clone());
        tracing::subscriber::with_default(subscriber, emit);
        kept.lock().expect("no panic").clone()
    }

    #[test]
    fn event_is_one_line_with_its_rank_in_a_column() {
        let lines = lines("debug", || {
            tracing::info!(target: "mpjdev::tcp", rank = 3u32, peer = 4u32, "channel is open");
            tracing::debug!(target: "mpjdev::job", status = %"exited", text = %"two words", "job ends");
        });
        assert_eq!(
            lines,
            [
                "01:02:03.000045 INFO  rank 3 mpjdev::tcp: channel is open peer=4\n",
                "01:02:03.000045 DEBUG mpjrun mpjdev::job: job ends status=exited text=\"two words\"\n",
            ]
        );
    }

    #[test]
    fn control_characters_of_a_peer_are_escaped() {
        let lines = lines("warn", || {
            let why = "gone\nrank 0 \u{1b}[2J";
            tracing::warn!(target: "mpjdev::failure", rank = 0u32, why, "peer has failed");
        });
        let line = "01:02:03.000045 WARN  rank 0 mpjdev::failure: peer has failed why=\"gone\\nrank 0 \
                    \\u{1b}[2J\"\n";
        assert_eq!(lines, [line]);
    }

    #[test]
    fn events_below_the_level_and_of_other_targets_are_dropped() {
        let lines = lines("warn,mpjdev::udp=debug", || {
            tracing::debug!(target: "mpjdev::tcp", "no");
            tracing::error!(target: "other", "no");
            tracing::debug!(target: "mpjdev::udp", "yes");
        });
        assert_eq!(lines, ["01:02:03.000045 DEBUG mpjrun mpjdev::udp: yes\n"]);
    }
}
