//! The table of a job's profile.

use std::fmt::Write;
use std::path::Path;

use mpjdev_profile::RankProfile;

use super::job_profile::{JobProfile, calls, sent};
use super::units::{octets, percent, time};

/// Ranks that the table shows.
const RANKS_MAX: usize = 32;
/// Calls that it shows.
const CALLS_MAX: usize = 8;
/// Long calls that it shows.
const LONGEST_MAX: usize = 5;
/// Missing ranks that it names.
const NAMED: usize = 16;

/// The table, with the files in this folder.
#[must_use]
pub fn table(job: &JobProfile, folder: &Path) -> String {
    let mut text = String::new();
    // Writing to a string never fails.
    let _ = write_ranks(&mut text, job)
        .and_then(|()| write_calls(&mut text, job))
        .and_then(|()| write_longest(&mut text, job));
    let folder = folder.display();
    let _ = writeln!(text, "page: {folder}/{}, numbers: {folder}/{}", super::PAGE, super::JSON);
    text
}

fn write_ranks(text: &mut String, job: &JobProfile) -> std::fmt::Result {
    writeln!(text, "profile of {} of {} ranks, {}", job.ranks.len(), job.size, time(job.elapsed_ns))?;
    if !job.missing.is_empty() {
        let named: Vec<String> = job.missing.iter().take(NAMED).map(u32::to_string).collect();
        let more = job.missing.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        writeln!(text, "no profile of rank {}{more}: killed, or ended before Comm.init", named.join(", "))?;
    }
    writeln!(
        text,
        "{:>6}  {:<16} {:>12} {:>12} {:>6} {:>12}",
        "rank", "host", "calls", "in calls", "%", "sent"
    )?;
    let mut shown: Vec<&RankProfile> = job.ranks.iter().collect();
    if shown.len() > RANKS_MAX {
        shown.sort_by(|a, b| share(b).total_cmp(&share(a)));
        let middle = RANKS_MAX / 2..shown.len() - RANKS_MAX / 2;
        let left = middle.len();
        shown.drain(middle);
        writeln!(text, "  (the {} with the most and the least time in calls; {left} others)", RANKS_MAX)?;
    }
    for profile in shown {
        writeln!(
            text,
            "{:>6}  {:<16} {:>12} {:>12} {:>6.1} {:>12}",
            profile.rank,
            profile.host,
            calls(profile),
            time(profile.calls_ns),
            share(profile),
            octets(sent(profile))
        )?;
    }
    Ok(())
}

/// The part of a rank's time that its threads were in calls, in percent.
fn share(profile: &RankProfile) -> f64 {
    percent(profile.calls_ns, profile.thread_ns)
}

fn write_calls(text: &mut String, job: &JobProfile) -> std::fmt::Result {
    let all = job.calls.iter().fold(0u64, |sum, call| sum.saturating_add(call.ns));
    writeln!(text, "{:<16} {:>12} {:>12} {:>6} {:>12} {:>12}", "call", "calls", "time", "%", "mean", "sent")?;
    for call in job.calls.iter().take(CALLS_MAX) {
        writeln!(
            text,
            "{:<16} {:>12} {:>12} {:>6.1} {:>12} {:>12}",
            call.call,
            call.count,
            time(call.ns),
            percent(call.ns, all),
            time(call.ns / call.count.max(1)),
            octets(call.sent)
        )?;
    }
    Ok(())
}

fn write_longest(text: &mut String, job: &JobProfile) -> std::fmt::Result {
    writeln!(text, "slowest waits")?;
    for call in job.longest.iter().take(LONGEST_MAX) {
        let peer = call.peer.map(|peer| format!(" with rank {peer}")).unwrap_or_default();
        let (rank, name) = (call.rank, &call.call);
        writeln!(
            text,
            "  {:>10}  rank {rank}: {name}{peer}, {} after init",
            time(call.ns),
            time(call.at_ns)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::job_profile::tests::{job, rank};
    use super::*;

    #[test]
    fn table_has_every_rank_call_and_slow_wait() {
        let text = table(&job(3), Path::new("/p"));
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0].join(" "), "profile of 3 of 3 ranks, 1000.0 ms");
        assert_eq!(rows[4].join(" "), "2 one 2 2000.0 us 0.2 2.0 KiB");
        assert_eq!(rows[6].join(" "), "Send 6 3000.0 us 100.0 500.0 us 3.0 KiB");
        assert_eq!(rows[8].join(" "), "2000.0 us rank 2: Send with rank 0, 5 ns after init");
        assert!(text.ends_with("page: /p/profile.html, numbers: /p/profile.json\n"));
    }

    #[test]
    fn table_of_many_ranks_has_the_extremes() {
        let text = table(&job(100), Path::new("/p"));
        assert!(text.contains("68 others"), "{text}");
        assert!(
            text.contains("\n    99  one")
                && text.contains("\n     0  one")
                && !text.contains("\n    50  one")
        );
    }

    #[test]
    fn missing_ranks_are_named() {
        let mut job = JobProfile::default();
        job.add(rank(0, 40, 0, 0)).expect("a rank");
        job.finish();
        let text = table(&job, Path::new("/p"));
        assert!(text.contains("no profile of rank 1, 2, 3") && text.contains("16 and 23 more"), "{text}");
    }
}
