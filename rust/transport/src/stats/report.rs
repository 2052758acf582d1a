//! Report of a rank's statistics, written at its end.

use std::fmt::Write as _;
use std::io::Write as _;

use serde::Serialize;
use thiserror::Error;

use super::{Datagrams, Stats, UdpStats, VARIABLE};

/// Form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lines for users.
    Text,
    /// A line of JSON.
    Json,
}

/// Error: the environment requests an unknown form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{VARIABLE} is {value:?}; use 1 for text or json for JSON")]
pub struct UnknownForm {
    /// Value of the variable.
    pub value: String,
}

/// The form that the environment requests; `None` without a request.
///
/// # Errors
/// The environment requests an unknown form.
pub fn asked() -> Result<Option<Form>, UnknownForm> {
    match std::env::var_os(VARIABLE) {
        Some(value) => form(&value.to_string_lossy()),
        None => Ok(None),
    }
}

fn form(value: &str) -> Result<Option<Form>, UnknownForm> {
    match value {
        "" | "0" => Ok(None),
        "1" => Ok(Some(Form::Text)),
        "json" => Ok(Some(Form::Json)),
        _ => Err(UnknownForm { value: value.to_owned() }),
    }
}

/// Writes the statistics of a rank to standard error, in one piece.
pub fn print(stats: &Stats, form: Form) {
    let report = match form {
        Form::Text => text(stats),
        Form::Json => json(stats) + "\n",
    };
    // No failure can be reported any more.
    let _ = std::io::stderr().write_all(report.as_bytes());
}

/// Lines for users. Each line names its rank: lines of several ranks may interleave.
#[must_use]
pub fn text(stats: &Stats) -> String {
    let Stats { rank, transport, completions, datagrams } = stats;
    let mut lines =
        vec![format!("transport {transport}, {completions} completed requests and unexpected messages")];
    match datagrams {
        Some(stats) => udp_lines(stats, &mut lines),
        None => lines.push(format!("{transport} has no further counters")),
    }
    let mut text = String::new();
    for line in lines {
        // A `String` accepts all text.
        let _ = writeln!(text, "mpjdev: rank {rank}: {line}");
    }
    text
}

fn udp_lines(stats: &UdpStats, lines: &mut Vec<String>) {
    let sum = stats.sum();
    let Datagrams { messages_sent, messages_received, packets_sent, packets_received, .. } = sum;
    let Datagrams { octets_sent, octets_received, datagram_len, acks, pure_acks, kept, .. } = sum;
    let Datagrams { acks_drained, acks_late, window_probes, .. } = sum;
    let Datagrams { retransmitted, spurious, probes, timeouts, cuts, undone_cuts, .. } = sum;
    let Datagrams { malformed, bad_checksums, unknown, duplicates, beyond_window, .. } = sum;
    let Datagrams { violations, socket_drops, send_calls, receive_calls, .. } = sum;
    let micros = |nanos: u64| nanos as f64 / 1000.0;
    let (trip, variation) = (micros(sum.round_trip_ns), micros(sum.round_trip_variation_ns));
    let copies = |copies: Option<f64>| copies.map_or("-".to_owned(), |copies| format!("{copies:.2}"));
    let (out, into) = (copies(sum.copies_sent()), copies(sum.copies_received()));
    lines.extend([
        format!("messages     {messages_sent} sent, {messages_received} received"),
        format!("packets      {packets_sent} sent, {packets_received} received ({kept} out of order)"),
        format!(
            "octets       {octets_sent} sent, {octets_received} received, datagrams of at most \
             {datagram_len}"
        ),
        format!(
            "acks         {acks} piggybacked, {pure_acks} pure ({acks_drained} with a drained socket, \
             {acks_late} delayed, {window_probes} window probes)"
        ),
        format!("retransmitted {retransmitted} ({spurious} spurious, {probes} probes), timeouts {timeouts}"),
        format!("congestion   {cuts} window reductions, {undone_cuts} undone"),
        format!(
            "dropped      {malformed} malformed, {bad_checksums} with a wrong checksum, {unknown} of an \
             unknown connection, {duplicates} duplicates, {beyond_window} outside the window, {socket_drops} \
             by the system; {violations} violations"
        ),
        format!("round trip   {trip:.1} us, variation {variation:.1} us (maximum of all peers)"),
        format!("system calls {send_calls} to send, {receive_calls} to receive"),
        format!(
            "copies       {out} of user data to send, with the copy of the system; {into} to receive, \
             without it"
        ),
    ]);
    let peers = stats.peers.iter().map(|(peer, stats)| format!("with rank {peer}: {}", stats.words()));
    // With one peer the sum has the same values.
    lines.extend(peers.filter(|_| stats.peers.len() > 1));
}

/// One object without a line break.
///
/// # Panics
/// Never: every field has a form in JSON.
#[must_use]
pub fn json(stats: &Stats) -> String {
    let Stats { rank, transport, completions, datagrams } = stats;
    let peer = |(rank, counters): &(u32, Datagrams)| PeerReport { rank: *rank, counters: *counters };
    let report = Report {
        rank: *rank,
        transport,
        completions: *completions,
        sum: datagrams.as_ref().map(UdpStats::sum),
        peers: datagrams.as_ref().map(|stats| stats.peers.iter().map(peer).collect()),
    };
    serde_json::to_string(&report).expect("numbers and a name have a form in JSON")
}

/// The JSON report of a rank. Only UDP has the last two fields.
#[derive(Serialize)]
struct Report<'a> {
    rank: u32,
    transport: &'a str,
    completions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum: Option<Datagrams>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peers: Option<Vec<PeerReport>>,
}

/// The counters of one peer in the JSON report.
#[derive(Serialize)]
struct PeerReport {
    rank: u32,
    #[serde(flatten)]
    counters: Datagrams,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats() -> Stats {
        let peer =
            |rank, acks| (rank, Datagrams { acks, round_trip_ns: acks * 1000, ..Datagrams::default() });
        let socket = Datagrams { malformed: 7, ..Datagrams::default() };
        let datagrams = Some(UdpStats { socket, peers: vec![peer(0, 20), peer(2, 22)] });
        Stats { rank: 1, transport: "udp", completions: 5, datagrams }
    }

    #[test]
    fn text_has_the_sum_and_each_peer() {
        let text = text(&stats());
        assert!(text.lines().all(|line| line.starts_with("mpjdev: rank 1: ")), "{text}");
        for part in [
            "acks         42 piggybacked",
            "retransmitted 0 (0 spurious, 0 probes), timeouts 0",
            "7 malformed",
            "22.0 us",
            "with rank 0: acks=20 ",
            "with rank 2: acks=22 ",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn json_is_one_line() {
        let json = json(&stats());
        assert!(json.starts_with(
            "{\"rank\":1,\"transport\":\"udp\",\"completions\":5,\"sum\":{\"messages_sent\":0,"
        ));
        assert!(json.contains("},\"peers\":[{\"rank\":0,\"messages_sent\":0,"), "{json}");
        assert_eq!(json.matches("\"acks\":").count(), 3);
        assert!(json.ends_with("}]}") && !json.contains('\n'), "{json}");
        assert_eq!(json.matches('{').count(), json.matches('}').count());
    }

    #[test]
    fn transport_without_counters_states_so() {
        let stats = Stats { rank: 3, transport: "shm", completions: 9, datagrams: None };
        let text = text(&stats);
        assert!(
            text.contains("rank 3: transport shm, 9 completed requests")
                && text.contains("shm has no further counters"),
            "{text}"
        );
        assert_eq!(json(&stats), "{\"rank\":3,\"transport\":\"shm\",\"completions\":9}");
    }

    #[test]
    fn unknown_form_of_statistics_is_rejected() {
        assert_eq!([form("0"), form("")], [Ok(None), Ok(None)]);
        assert_eq!([form("1"), form("json")], [Ok(Some(Form::Text)), Ok(Some(Form::Json))]);
        let text = form("yes").map_err(|unknown| unknown.to_string());
        assert_eq!(text, Err("MPJDEV_STATS is \"yes\"; use 1 for text or json for JSON".to_owned()));
    }
}
