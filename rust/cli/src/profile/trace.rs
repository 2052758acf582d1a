//! The timeline of a job in Chrome's trace event format, which Perfetto opens.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use mpjdev_profile::rank_profile::Event;
use mpjdev_profile::{Call, RankProfile};
use serde_json::json;

use super::folder::{FolderError, at};

/// A timeline that is being written. Ranks are its processes.
#[derive(Debug)]
pub struct Timeline {
    path: PathBuf,
    file: BufWriter<File>,
    /// The start of the first rank. A viewer would lose digits of the time since 1970.
    begun_ns: Option<u64>,
}

impl Timeline {
    /// Begins the file.
    ///
    /// # Errors
    /// The system refuses.
    pub fn create(path: &Path) -> Result<Timeline, FolderError> {
        let file = File::create(path).map_err(at(path))?;
        let mut file = BufWriter::new(file);
        file.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n").map_err(at(path))?;
        Ok(Timeline { path: path.to_owned(), file, begun_ns: None })
    }

    /// Adds the calls of a rank.
    ///
    /// # Errors
    /// The system refuses.
    pub fn add(&mut self, profile: &RankProfile) -> Result<(), FolderError> {
        let is_first = self.begun_ns.is_none();
        let origin = *self.begun_ns.get_or_insert(profile.begun_ns);
        write_rank(&mut self.file, profile, origin, is_first).map_err(at(&self.path))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The system refuses.
    pub fn finish(mut self) -> Result<(), FolderError> {
        self.file.write_all(b"\n]}\n").and_then(|()| self.file.flush()).map_err(at(&self.path))
    }
}

/// Microseconds with the nanoseconds behind the point.
fn micros(ns: i128) -> f64 {
    ns as f64 / 1e3
}

fn write_rank(to: &mut impl Write, profile: &RankProfile, origin: u64, is_first: bool) -> io::Result<()> {
    let RankProfile { rank, host, .. } = profile;
    let name = format!("rank {rank} on {host}");
    let separator = if is_first { "" } else { ",\n" };
    write!(
        to,
        "{separator}{}",
        json!({"ph": "M", "name": "process_name", "pid": rank, "args": {"name": name}})
    )?;
    let order = json!({"ph": "M", "name": "process_sort_index", "pid": rank, "args": {"sort_index": rank}});
    write!(to, ",\n{order}")?;
    let offset = i128::from(profile.begun_ns) - i128::from(origin);
    for Event(thread, call, begin, time, peer, sent, received) in &profile.events {
        let name = Call::ALL.get(usize::from(*call)).map_or("call", |call| call.name());
        let peer = Some(peer).filter(|peer| **peer >= 0);
        let event = json!({
            "ph": "X",
            "name": name,
            "pid": rank,
            "tid": thread,
            "ts": micros(offset + i128::from(*begin)),
            "dur": micros(i128::from(*time)),
            "args": {"peer": peer, "sent": sent, "received": received},
        });
        write!(to, ",\n{event}")?;
    }
    if profile.events_lost > 0 {
        let lost = format!("{} later calls are not shown", profile.events_lost);
        let at = profile.events.last().map_or(0, |event| event.2 + event.3);
        let ts = micros(offset + i128::from(at));
        write!(to, ",\n{}", json!({"ph": "i", "s": "p", "name": lost, "pid": rank, "tid": 0, "ts": ts}))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn timeline_is_json_with_a_process_for_each_rank() {
        let rank = |rank, begun_ns| RankProfile {
            rank,
            begun_ns,
            host: "a\"b".to_owned(),
            events: vec![Event(1, Call::Recv as u8, 1500, 2000, 0, 0, 8), Event(0, 0, 9000, 1, -1, 0, 0)],
            events_lost: 7,
            ..RankProfile::default()
        };
        let mut text = b"[".to_vec();
        write_rank(&mut text, &rank(0, 5000), 5000, true).expect("written");
        write_rank(&mut text, &rank(1, 4000), 5000, false).expect("written");
        text.push(b']');
        let events: Vec<Value> = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(events.len(), 10);
        assert_eq!(events[0]["args"]["name"], "rank 0 on a\"b");
        let calls: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!(
            calls.iter().map(|call| call["ts"].as_f64()).collect::<Vec<_>>(),
            [1.5, 9.0, 0.5, 8.0].map(Some)
        );
        assert_eq!((&calls[0]["name"], &calls[0]["args"]["peer"]), (&json!("Recv"), &json!(0)));
        assert_eq!((&calls[1]["args"]["peer"], calls[0]["dur"].as_f64()), (&Value::Null, Some(2.0)));
        assert!(events[9]["name"].as_str().is_some_and(|name| name.starts_with("7 later")));
    }
}
