//! The page of a job's profile: one HTML file with its style and its pictures, which needs no network.

use std::fmt::Write;

use mpjdev_profile::RankProfile;

use super::job_profile::{JobProfile, Matrix, calls, sent};
use super::units::{octets, percent, time};

/// Rows and columns of the heat map.
const SIDE_MAX: usize = 64;
/// Bars of ranks. With more ranks a bar is of a group.
const BARS_MAX: usize = 128;
/// Width and height of the heat map in units of its drawing.
const MAP: usize = 640;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c2733;--soft:#5c6b7a;--line:#d5dce3;--back:#fff;--busy:#2f7ebc;\
--wait:#e08a2e}\
@media (prefers-color-scheme:dark){:root{--ink:#e4e9ee;--soft:#9aa7b4;--line:#39434d;--back:#161b20;\
--busy:#5aa5dc;--wait:#e8a254}}\
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--back);margin:2rem auto;\
max-width:60rem;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}p{color:var(--soft)}\
table{border-collapse:collapse;width:100%}th,td{padding:.2rem .6rem;text-align:right;\
border-bottom:1px solid var(--line)}th:first-child,td:first-child{text-align:left}\
.bar{display:flex;height:1rem;background:var(--line)}.busy{background:var(--busy)}.wait{background:var(--wait)}\
.rows{display:grid;grid-template-columns:max-content 1fr max-content;gap:.15rem .7rem;align-items:center;\
font-size:13px}.rows span{white-space:nowrap}\
.key{display:inline-block;width:.8rem;height:.8rem;margin:0 .3rem 0 1rem}\
svg{width:100%;max-width:44rem;height:auto}svg text{font-size:13px;fill:var(--ink)}\
.empty{fill:var(--line);opacity:.35}.cell{fill:var(--busy)}";

/// The page.
#[must_use]
pub fn page(job: &JobProfile) -> String {
    let mut text = String::new();
    // Writing to a string never fails.
    let _ = write_page(&mut text, job);
    text
}

fn write_page(text: &mut String, job: &JobProfile) -> std::fmt::Result {
    write!(
        text,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>Profile of {size} ranks</title><style>{STYLE}</style></head><body>\n\
         <h1>Profile of {size} ranks, {elapsed}</h1>\n",
        size = job.size,
        elapsed = time(job.elapsed_ns)
    )?;
    if !job.missing.is_empty() {
        let missing: Vec<String> = job.missing.iter().map(u32::to_string).collect();
        writeln!(text, "<p>No profile of rank {}.</p>", missing.join(", "))?;
    }
    write_bars(text, job)?;
    write_map(text, job)?;
    write_sizes(text, job)?;
    write_calls(text, job)?;
    write_longest(text, job)?;
    write_ranks(text, job)?;
    writeln!(text, "</body></html>")
}

/// A text without the characters that HTML gives a meaning.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

/// The name of a rank, or of a group of them.
fn ranks(group: usize, len: usize, size: usize) -> String {
    let (first, end) = (group * len, ((group + 1) * len).min(size));
    if end - first == 1 { format!("rank {first}") } else { format!("ranks {first} to {}", end - 1) }
}

fn write_bars(text: &mut String, job: &JobProfile) -> std::fmt::Result {
    let size = job.size as usize;
    let len = size.div_ceil(BARS_MAX).max(1);
    writeln!(
        text,
        "<h2>Compute and wait</h2>\n<p><span class=\"key busy\"></span>outside of calls\
         <span class=\"key wait\"></span>in calls, where a rank copies or waits</p>\n<div class=\"rows\">"
    )?;
    for group in 0..size.div_ceil(len) {
        let of_group = |profile: &&RankProfile| profile.rank as usize / len == group;
        let (mut inside, mut whole) = (0u64, 0u64);
        for profile in job.ranks.iter().filter(of_group) {
            inside = inside.saturating_add(profile.calls_ns);
            whole = whole.saturating_add(profile.thread_ns);
        }
        let name = ranks(group, len, size);
        let wait = percent(inside.min(whole), whole);
        let busy = if whole == 0 { 0.0 } else { 100.0 - wait };
        let shown = if whole == 0 { "no profile".to_owned() } else { format!("{wait:.1} % in calls") };
        writeln!(
            text,
            "<span>{name}</span><div class=\"bar\" title=\"{name}: {inside} of {whole}\">\
             <div class=\"busy\" style=\"width:{busy:.2}%\"></div>\
             <div class=\"wait\" style=\"width:{wait:.2}%\"></div></div><span>{shown}</span>",
            inside = time(inside),
            whole = time(whole)
        )?;
    }
    writeln!(text, "</div>")
}

fn write_map(text: &mut String, job: &JobProfile) -> std::fmt::Result {
    let matrix = Matrix::of(job, SIDE_MAX);
    let most = matrix.octets.iter().copied().max().unwrap_or(0);
    let size = job.size as usize;
    writeln!(
        text,
        "<h2>Octets from rank to rank</h2>\n<p>A row sends to the columns. The darkest cell has {}; \
         the shade is logarithmic. Messages of collective calls are included.</p>",
        octets(most)
    )?;
    let margin = 72;
    let cell = MAP as f64 / matrix.side.max(1) as f64;
    let (width, height) = (MAP + margin + 8, MAP + margin + 8);
    writeln!(
        text,
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"Octets from rank to rank\">"
    )?;
    let step = matrix.side.div_ceil(16).max(1);
    for at in (0..matrix.side).step_by(step) {
        let place = margin as f64 + (at as f64 + 0.5) * cell;
        let label = at * matrix.group;
        writeln!(text, "<text x=\"{place:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>", margin - 8)?;
        writeln!(
            text,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            margin - 8,
            place + 4.0
        )?;
    }
    writeln!(text, "<text x=\"{}\" y=\"16\" text-anchor=\"middle\">to rank</text>", margin + MAP / 2)?;
    let middle = margin + MAP / 2;
    writeln!(
        text,
        "<text x=\"16\" y=\"{middle}\" text-anchor=\"middle\" \
         transform=\"rotate(-90 16 {middle})\">from rank</text>"
    )?;
    for (at, sent) in matrix.octets.iter().enumerate() {
        let (row, column) = (at / matrix.side, at % matrix.side);
        let (x, y) = (margin as f64 + column as f64 * cell, margin as f64 + row as f64 * cell);
        let gap = (cell * 0.06).min(2.0);
        let (from, to) = (ranks(row, matrix.group, size), ranks(column, matrix.group, size));
        let look = match sent {
            0 => "class=\"empty\"".to_owned(),
            _ => format!("class=\"cell\" fill-opacity=\"{:.3}\"", shade(*sent, most)),
        };
        writeln!(
            text,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{side:.2}\" height=\"{side:.2}\" {look}>\
             <title>{from} to {to}: {}</title></rect>",
            octets(*sent),
            side = cell - gap
        )?;
    }
    writeln!(text, "</svg>")
}

/// Opacity of a cell.
fn shade(sent: u64, most: u64) -> f64 {
    let full = (most as f64 + 1.0).ln();
    0.12 + 0.88 * (sent as f64 + 1.0).ln() / full
}

fn write_sizes(text: &mut String, job: &JobProfile) -> std::fmt::Result {
    let all = job.sizes.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
    let most = job.sizes.iter().copied().max().unwrap_or(0);
    writeln!(
        text,
        "<h2>Sizes of messages</h2>\n<p>{all} messages, by octets with the headers of their sections.</p>\n\
         <div class=\"rows\">"
    )?;
    let first = job.sizes.iter().position(|count| *count > 0).unwrap_or(0);
    for (class, count) in job.sizes.iter().enumerate().skip(first) {
        let name = class_name(class);
        writeln!(
            text,
            "<span>{name}</span><div class=\"bar\" title=\"{name}: {count}\">\
             <div class=\"busy\" style=\"width:{:.2}%\"></div></div><span>{count}</span>",
            percent(*count, most)
        )?;
    }
    writeln!(text, "</div>")
}

/// The sizes of a class: n has those of less than 2^n octets, from half of it on.
fn class_name(class: usize) -> String {
    match class {
        0 => "empty".to_owned(),
        1 => "1 B".to_owned(),
        2..=10 => format!("{} to {} B", 1u64 << (class - 1), (1u64 << class) - 1),
        11..=63 => format!("{} to {}", octets(1 << (class - 1)), octets(1 << class)),
        _ => "more".to_owned(),
    }
}

fn write_calls(text: &mut String, job: &JobProfile) -> std::fmt::Result {
    let all = job.calls.iter().fold(0u64, |sum, call| sum.saturating_add(call.ns));
    writeln!(
        text,
        "<h2>Calls</h2>\n<table><tr><th>call</th><th>calls</th><th>time</th><th>%</th><th>mean</th><th>sent</th>\
         <th>received</th></tr>"
    )?;
    for call in &job.calls {
        writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.1}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&call.call),
            call.count,
            time(call.ns),
            percent(call.ns, all),
            time(call.ns / call.count.max(1)),
            octets(call.sent),
            octets(call.received)
        )?;
    }
    writeln!(text, "</table>")
}

fn write_longest(text: &mut String, job: &JobProfile) -> std::fmt::Result {
    writeln!(
        text,
        "<h2>Slowest waits</h2>\n<table><tr><th>call</th><th>rank</th><th>peer</th><th>time</th>\
         <th>after init</th><th>octets</th></tr>"
    )?;
    for call in &job.longest {
        let peer = call.peer.map_or("-".to_owned(), |peer| peer.to_string());
        writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td>{peer}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&call.call),
            call.rank,
            time(call.ns),
            time(call.at_ns),
            octets(call.octets)
        )?;
    }
    writeln!(text, "</table>")
}

fn write_ranks(text: &mut String, job: &JobProfile) -> std::fmt::Result {
    writeln!(
        text,
        "<h2>Ranks</h2>\n<table><tr><th>rank</th><th>host</th><th>process</th><th>threads</th><th>calls</th>\
         <th>in calls</th><th>%</th><th>sent</th></tr>"
    )?;
    for profile in &job.ranks {
        writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.1}</td><td>{}</td></tr>",
            profile.rank,
            escaped(&profile.host),
            profile.process,
            profile.threads,
            calls(profile),
            time(profile.calls_ns),
            percent(profile.calls_ns, profile.thread_ns),
            octets(sent(profile))
        )?;
    }
    writeln!(text, "</table>")
}

#[cfg(test)]
mod tests {
    use super::super::job_profile::tests::{job, rank};
    use super::*;

    fn count(text: &str, part: &str) -> usize {
        text.matches(part).count()
    }

    #[test]
    fn page_has_every_rank_pair_size_and_call() {
        let text = page(&job(3));
        assert_eq!(count(&text, "<rect "), 9);
        assert!(text.contains("<title>rank 2 to rank 0: 2.0 KiB</title>"));
        assert!(text.contains("<title>rank 0 to rank 0: 0 B</title>"));
        assert_eq!(count(&text, "% in calls</span>"), 3);
        assert!(text.contains("1 B: 3") && text.contains("2 to 3 B: 3"));
        assert!(text.contains("<td>Send</td><td>6</td>"));
    }

    #[test]
    fn page_of_many_ranks_is_bounded() {
        let text = page(&job(1000));
        assert_eq!(count(&text, "<rect "), 63 * 63);
        assert_eq!(count(&text, "class=\"wait\" style"), 125);
        assert!(text.contains("ranks 992 to 999"));
    }

    #[test]
    fn page_needs_no_network_and_escapes_names() {
        let mut job = JobProfile::default();
        let host = "<script src='x'>&".to_owned();
        job.add(mpjdev_profile::RankProfile { host, ..rank(1, 2, 5, 5) }).expect("a rank");
        job.finish();
        let text = page(&job);
        assert!(text.contains("&lt;script src=&#39;x&#39;&gt;&amp;") && !text.contains("<script"));
        assert!(!text.contains("http") && !text.contains("url("));
        assert!(text.contains("No profile of rank 0") && text.contains("no profile</span>"));
    }

    #[test]
    fn shade_grows_with_the_octets() {
        let shades = [1, 10, 1000, 1_000_000].map(|sent| shade(sent, 1_000_000));
        assert!(shades.is_sorted() && shades[0] > 0.12 && (shades[3] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn classes_of_sizes_have_their_bounds() {
        let names = [0, 1, 2, 4, 11, 21, 64].map(class_name);
        assert_eq!(
            names,
            ["empty", "1 B", "2 to 3 B", "8 to 15 B", "1.0 KiB to 2.0 KiB", "1.0 MiB to 2.0 MiB", "more"]
        );
    }
}
