//! Report of collective calls as text.

use std::fmt::Write;

use crate::figures::{Figure, FigureStatus, Limit, short};
use crate::report::{Absent, Row, aligned, bare_line, processors, time};

/// Tables of rows and their figures, one for each group of contestants; then those that are absent, and the
/// numbers of reached and missed figures.
pub fn table(rows: &[Row], figures: &[Figure], absent: &[Absent]) -> String {
    let pairs: Vec<(&Row, &Figure)> = rows.iter().zip(figures).collect();
    let mut text = String::new();
    for group in pairs.chunk_by(|one, other| names(one.0) == names(other.0)) {
        text += &part(group);
        text.push('\n');
    }
    for one in absent {
        // Errors of contestants begin with the name. A text takes any of this.
        let why = one.why.strip_prefix(&format!("{}: ", one.name)).unwrap_or(&one.why);
        let _ = writeln!(text, "{} is absent: {why}", one.name);
    }
    let asked = || figures.iter().filter(|figure| figure.limit != Limit::None);
    let count = |status| asked().filter(|figure| figure.status == status).count();
    let (reached, missed) = (count(FigureStatus::Reached), count(FigureStatus::Missed));
    let unknown = count(FigureStatus::Unknown);
    text + &format!(
        "Of {} figures {reached} are reached, {missed} missed, {unknown} not measured.\n",
        asked().count()
    )
}

fn names(row: &Row) -> Vec<&str> {
    row.contestants.iter().map(|cell| cell.name.as_str()).collect()
}

fn part(group: &[(&Row, &Figure)]) -> String {
    let names = group.first().map_or_else(Vec::new, |(row, _)| names(row));
    let mut head = vec![String::new()];
    head.extend(names.iter().map(|name| (*name).to_owned()));
    head.extend(["measured", "asked", "reached", "bare line", "others"].map(str::to_owned));
    let mut lines = vec![head];
    for (row, figure) in group {
        let status = match figure.status {
            FigureStatus::Reached => "yes",
            FigureStatus::Missed => "NO",
            FigureStatus::Reported => "-",
            FigureStatus::Unknown => "not measured",
        };
        let mut line = vec![figure.title.clone()];
        line.extend(row.contestants.iter().map(|cell| time(cell.summary.median)));
        line.extend([
            figure.measured.map_or("-".to_owned(), short),
            figure.limit.to_string(),
            status.to_owned(),
        ]);
        line.extend(match names.is_empty() {
            true => [String::new(), String::new()],
            false => [bare_line(row.line, row.mode), processors(row.others)],
        });
        lines.push(line);
    }
    aligned(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Quantity, Target};
    use crate::outcome::{Compared, Mode, Summary};
    use crate::protocol::Case;

    fn row(names: &[&str]) -> Row {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let summary = Summary { median: 1500.0, best: 1.0, extra: 0.0, turns: 3, counted: None };
        let summaries = vec![Some(summary); names.len()];
        let compared = Compared { mode: Mode::Fast, line: Some(30.0), summaries };
        Row::new(Case::Arrays, 8, 2, &names, compared)
    }

    #[test]
    fn each_group_of_contestants_has_a_table() {
        let of = |title, measured| {
            Target { title, quantity: Quantity::Ratio(0, 1), limit: Limit::Most(1.1) }.figure(measured)
        };
        let rows =
            [row(&["Java shm", "C MPICH"]), row(&["Java shm", "C MPICH"]), row(&["Java shm"]), row(&[])];
        let figures = [of("one", Some(1.0)), of("two", Some(1.2)), of("three", None), of("four", None)];
        let absent = [Absent { name: "C".into(), why: "C: it ended".into() }];
        let text = table(&rows, &figures, &absent);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.iter().filter(|line| line.contains("asked")).count(), 3, "{text}");
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(words[..8], ["one", "1.50", "us", "1.50", "us", "1.00", "<=", "1.10"], "{text}");
        assert!(text.contains("\nC is absent: it ended\n"), "{text}");
        assert!(text.ends_with("Of 4 figures 1 are reached, 1 missed, 2 not measured.\n"), "{text}");
    }
}
