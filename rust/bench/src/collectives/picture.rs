//! Picture of collective calls: a panel for each call, with a line for each contestant and number of ranks.

use std::io;

use plotters::prelude::*;

use crate::calls::Call;
use crate::chart::{
    Area, Axis, COLOURS, DASHES, DrawResult, FONT, LEGEND, LEGEND_COLUMNS, Line, WIDTH, decade_of_time,
    index_of, legend, plot,
};
use crate::contestant::MPJ_EXPRESS;
use crate::protocol::Case;
use crate::report::Row;

const TITLE: &str = "Collective calls of package mpi beside C";
/// Height of the title.
const TITLE_HEIGHT: u32 = 24;
/// Height of a panel, and the panels beside each other.
const PANEL: u32 = 280;
const COLUMNS: usize = 3;

/// Times of a call over its octets, or over the number of ranks.
struct Panel<'a> {
    call: Call,
    axis: Axis,
    lines: Vec<PanelLine<'a>>,
}

struct PanelLine<'a> {
    /// Name of the contestant, which has one colour in all panels.
    name: &'a str,
    /// Number of ranks, which has one dash in all panels; none if it is the axis.
    ranks: Option<u32>,
    /// Both.
    label: String,
    points: Vec<(u64, f64)>,
}

/// Draws rows as SVG. `None` without a row that has a C program.
///
/// # Errors
/// The panels do not fit into the picture.
pub fn draw(rows: &[Row]) -> io::Result<Option<String>> {
    let panels = panels(rows);
    if panels.is_empty() {
        return Ok(None);
    }
    let drawn = styled(&panels);
    let mut key: Vec<Line<'_>> = Vec::new();
    for line in drawn.iter().flatten() {
        if key.iter().all(|known| known.name != line.name) {
            key.push(line.clone());
        }
    }
    let plots = PANEL * panels.len().div_ceil(COLUMNS) as u32;
    let height = TITLE_HEIGHT + plots + LEGEND * (key.len().div_ceil(LEGEND_COLUMNS) as u32 + 1);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        picture(&area, plots, &panels, &drawn, &key).map_err(|error| io::Error::other(error.to_string()))?;
    }
    Ok(Some(svg))
}

fn picture(
    area: &Area<'_>,
    height: u32,
    panels: &[Panel<'_>],
    drawn: &[Vec<Line<'_>>],
    key: &[Line<'_>],
) -> DrawResult {
    area.fill(&WHITE)?;
    let area = area.titled(TITLE, (FONT, 16))?;
    let (plots, below) = area.split_vertically(height);
    let areas = plots.split_evenly((panels.len().div_ceil(COLUMNS), COLUMNS));
    for ((panel, lines), area) in panels.iter().zip(drawn).zip(&areas) {
        let lines: Vec<&Line<'_>> = lines.iter().collect();
        plot(area, (panel.call.title(), panel.axis), &lines, |_, nanos| nanos, None, decade_of_time)?;
    }
    legend(&below, key)?;
    area.present()
}

/// The lines of the panels in their styles.
fn styled<'a>(panels: &'a [Panel<'_>]) -> Vec<Vec<Line<'a>>> {
    let (mut names, mut numbers): (Vec<&str>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut style = |line: &'a PanelLine<'_>| {
        let colour = COLOURS[index_of(&mut names, line.name) % COLOURS.len()];
        let number = line.ranks.map_or(0, |ranks| index_of(&mut numbers, ranks));
        let dash = DASHES[number % DASHES.len()];
        let mut points = line.points.clone();
        points.sort_by_key(|point| point.0);
        Line { name: &line.label, case: Case::Collective(Call::Barrier), colour, dash, points }
    };
    panels.iter().map(|panel| panel.lines.iter().map(&mut style).collect()).collect()
}

/// Whether the row belongs into the picture. Rows over a C MPI have one size of a call, and those beside MPJ
/// Express repeat calls in Java.
fn is_drawn(row: &Row) -> bool {
    let is_other = |name: &str| name.ends_with(" mpi") || name == MPJ_EXPRESS;
    !row.contestants.is_empty() && !row.contestants.iter().any(|cell| is_other(&cell.name))
}

/// The panels of rows. Calls without data are drawn over the number of ranks.
fn panels(rows: &[Row]) -> Vec<Panel<'_>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for row in rows {
        let Case::Collective(call) = row.case else { continue };
        if !call.is_of_c() || !is_drawn(row) {
            continue;
        }
        let axis = if call == Call::Barrier { Axis::Ranks } else { Axis::OctetsOfRank };
        let at = panels.iter().position(|panel| panel.call == call).unwrap_or_else(|| {
            panels.push(Panel { call, axis, lines: Vec::new() });
            panels.len() - 1
        });
        panels[at].add(row);
    }
    panels
}

impl<'a> Panel<'a> {
    fn add(&mut self, row: &'a Row) {
        let (ranks, x) = match self.axis {
            Axis::Ranks => (None, u64::from(row.ranks)),
            Axis::Octets | Axis::OctetsOfRank => (Some(row.ranks), row.octets),
        };
        for cell in &row.contestants {
            let (name, point) = (cell.name.as_str(), (x, cell.summary.median));
            match self.lines.iter_mut().find(|line| line.name == name && line.ranks == ranks) {
                Some(line) => line.points.push(point),
                None => {
                    let label = ranks.map_or(name.to_owned(), |ranks| format!("{name}, {ranks} ranks"));
                    self.lines.push(PanelLine { name, ranks, label, points: vec![point] });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Mode, Summary};
    use crate::report::Cell;

    fn row(call: Call, octets: u64, ranks: u32) -> Row {
        let summary = Summary { median: 100.0, best: 90.0, extra: 0.0, turns: 7, counted: None };
        let cells = ["Java shm", "C MPICH 4"].map(|name| Cell { name: name.to_owned(), summary });
        let (case, contestants) = (Case::Collective(call), Vec::from(cells));
        Row { case, octets, ranks, mode: Mode::Fast, line: None, others: None, contestants }
    }

    #[test]
    fn picture_has_a_panel_for_each_call_and_one_legend() {
        let rows = [
            row(Call::Barrier, 0, 2),
            row(Call::Barrier, 0, 8),
            row(Call::Bcast, 8, 2),
            row(Call::Bcast, 1024, 2),
            row(Call::Bcast, 8, 8),
            row(Call::AllreduceGarbage, 8, 2),
        ];
        let svg = draw(&rows).expect("it fits").expect("a picture");
        assert_eq!(svg.matches("<circle").count(), 2 * (2 + 3), "none for the row without C");
        assert_eq!(svg.matches("\nBarrier\n<").count(), 1);
        for name in ["Java shm", "Java shm, 2 ranks", "C MPICH 4, 8 ranks"] {
            assert_eq!(svg.matches(&format!("\n{name}\n<")).count(), 1, "{name}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn picture_needs_a_row_with_c() {
        assert_eq!(draw(&[row(Call::AllreduceUser, 8, 2)]).expect("nothing fits"), None);
    }
}
