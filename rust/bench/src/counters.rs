//! Counters of ranks over UDP during a measurement, as text and JSON.

use mpjdev_engine::stats::Datagrams;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::report::{Row, aligned, size, time};

/// Counters of all ranks of a contestant over its turns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// Number of measured units: one-way trips, messages or hops.
    pub messages: u64,
    /// Counters of all ranks.
    pub numbers: Datagrams,
}

impl Counted {
    /// Sum with the counters of another turn.
    #[must_use]
    pub fn plus(&self, other: &Counted) -> Counted {
        Counted { messages: self.messages + other.messages, numbers: self.numbers.plus(&other.numbers) }
    }

    /// Count for one message.
    #[must_use]
    pub fn per_message(&self, number: u64) -> f64 {
        number as f64 / self.messages.max(1) as f64
    }
}

/// A map from the name of each counter to its value.
impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Datagrams::NAMES.len() + 1))?;
        map.serialize_entry("messages", &self.messages)?;
        for (name, value) in Datagrams::NAMES.iter().zip(self.numbers.values()) {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

/// Table with a line for each contestant over UDP and each row; empty if there is none.
pub fn table(rows: &[Row]) -> String {
    let head = ["datagrams", "size", "of", "messages", "packets", "pure acks", "retransmitted", "spurious"];
    let more = ["timeouts", "dropped", "calls to send", "to receive", "copies", "round trip"];
    let mut lines = vec![head.into_iter().chain(more).map(str::to_owned).collect::<Vec<_>>()];
    for row in rows {
        for cell in &row.contestants {
            let Some(counted) = cell.summary.counted else { continue };
            let numbers = counted.numbers;
            let per = |number| format!("{:.3}", counted.per_message(number));
            let copies = |copies: Option<f64>| copies.map_or("-".to_owned(), |copies| format!("{copies:.2}"));
            lines.push(vec![
                row.case.title().to_owned(),
                size(row.octets),
                cell.name.clone(),
                counted.messages.to_string(),
                per(numbers.packets_sent),
                numbers.pure_acks.to_string(),
                numbers.retransmitted.to_string(),
                numbers.spurious.to_string(),
                numbers.timeouts.to_string(),
                numbers.dropped().to_string(),
                per(numbers.send_calls),
                per(numbers.receive_calls),
                format!("{} + {}", copies(numbers.copies_sent()), copies(numbers.copies_received())),
                time(numbers.round_trip_ns as f64),
            ]);
        }
    }
    if lines.len() == 1 {
        return String::new();
    }
    let what = "Packets and calls are per message, all other columns totals. Copies of user data are those to \
                send, with the kernel's copy, and those to receive, after the kernel's copy.";
    format!("\n{}{what}\n", aligned(&lines))
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{Mode, Summary};
    use super::super::protocol::Case;
    use super::super::report::Cell;
    use super::*;

    #[test]
    fn counters_are_printed_per_message_and_in_total() {
        let numbers = Datagrams { packets_sent: 30, pure_acks: 4, send_calls: 15, ..Datagrams::default() };
        let counted = Counted { messages: 10, numbers }.plus(&Counted { messages: 10, ..Counted::default() });
        let row = |counted| Row {
            case: Case::Arrays,
            octets: 8,
            ranks: 2,
            mode: Mode::Fast,
            line: None,
            others: None,
            contestants: vec![Cell {
                name: "Rust udp".into(),
                summary: Summary { median: 1.0, best: 1.0, extra: 0.0, turns: 7, counted },
            }],
        };
        assert_eq!(table(&[row(None)]), "");
        let text = table(&[row(None), row(Some(counted))]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            lines[2][..11],
            ["array", "to", "array", "8", "B", "Rust", "udp", "20", "1.500", "4", "0"]
        );
        let json = serde_json::to_value(counted).expect("JSON");
        assert_eq!((json["messages"].as_u64(), json["pure_acks"].as_u64()), (Some(20), Some(4)));
    }
}
