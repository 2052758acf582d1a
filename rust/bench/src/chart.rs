//! Charts of rows: time and bandwidth over the size, with a line for each contestant and case.

use std::io;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;

use super::outcome::median;
use super::protocol::Case;
use super::report::{Row, size, time};

pub(super) const WIDTH: u32 = 1040;
const HEIGHT: u32 = 440;
/// Height of a line of the legend, which is below both plots.
pub(super) const LEGEND: u32 = 20;
pub(super) const LEGEND_COLUMNS: usize = 3;
pub(super) const FONT: &str = "sans-serif";
/// Colours that colour-blind readers can distinguish. The first contestant has the first one.
pub(super) const COLOURS: [RGBColor; 8] = [
    RGBColor(0x0b, 0x5f, 0xa5),
    RGBColor(0xd1, 0x70, 0x1c),
    RGBColor(0x3a, 0x8f, 0x3a),
    RGBColor(0xa0, 0x30, 0x70),
    RGBColor(0x55, 0x55, 0x55),
    RGBColor(0xb8, 0x86, 0x0b),
    RGBColor(0x2a, 0xa5, 0xa0),
    RGBColor(0x8a, 0x4f, 0xff),
];
/// Radius of a point, in lines with few and with many points.
const POINTS: [i32; 2] = [3, 2];
/// Least number of many points.
const MANY: usize = 16;
/// Lengths of the dashes that distinguish lines of one contestant; 0 is a solid line.
pub(super) const DASHES: [i32; 3] = [0, 7, 2];
const GAP: i32 = 4;

/// Horizontal axis of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Octets of a message.
    Octets,
    /// Octets of a rank.
    OctetsOfRank,
    /// Number of ranks.
    Ranks,
}

impl Axis {
    fn title(self) -> &'static str {
        match self {
            Axis::Octets => "octets of a message",
            Axis::OctetsOfRank => "octets of a rank",
            Axis::Ranks => "ranks",
        }
    }

    /// Base of the logarithms, whose powers have labels.
    fn base(self) -> f64 {
        if self == Axis::Ranks { 2.0 } else { 8.0 }
    }

    fn label(self, value: f64) -> String {
        if self == Axis::Ranks { format!("{value:.0}") } else { size(value as u64) }
    }
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type DrawResult = Result<(), DrawingAreaErrorKind<io::Error>>;

/// A line of the chart: the nanoseconds of a contestant and case over the size.
#[derive(Clone)]
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) case: Case,
    pub(super) colour: RGBColor,
    pub(super) dash: i32,
    pub(super) points: Vec<(u64, f64)>,
}

/// Draws rows as SVG, with the time on the left and the bandwidth on the right. `None` without rows.
///
/// # Errors
/// The chart does not fit into the picture.
pub fn draw(title: &str, rows: &[Row]) -> io::Result<Option<String>> {
    let lines = lines(rows);
    if lines.is_empty() {
        return Ok(None);
    }
    let bare = median(rows.iter().filter_map(|row| row.line).collect());
    let height = HEIGHT + LEGEND * (lines.len().div_ceil(LEGEND_COLUMNS) as u32 + 1);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        picture(&area, title, &lines, bare).map_err(|error| io::Error::other(error.to_string()))?;
    }
    Ok(Some(svg))
}

fn picture(area: &Area<'_>, title: &str, lines: &[Line<'_>], bare: Option<f64>) -> DrawResult {
    area.fill(&WHITE)?;
    let area = area.titled(title, (FONT, 16))?;
    let (plots, key) = area.split_vertically(HEIGHT - 24);
    let halves = plots.split_evenly((1, 2));
    let all: Vec<&Line<'_>> = lines.iter().collect();
    plot(&halves[0], ("time", Axis::Octets), &all, |_, nanos| nanos, bare, decade_of_time)?;
    // Messages by reference have no bandwidth.
    let copied: Vec<&Line<'_>> = lines.iter().filter(|line| !line.is_by_reference()).collect();
    if !copied.is_empty() {
        let bandwidth = |octets: u64, nanos: f64| octets as f64 / nanos;
        plot(&halves[1], ("octets by time, GB/s", Axis::Octets), &copied, bandwidth, None, decade)?;
    }
    legend(&key, lines)?;
    area.present()
}

/// Draws one plot. `label` is the text of a value on the vertical axis.
pub(super) fn plot(
    area: &Area<'_>,
    (title, axis): (&str, Axis),
    lines: &[&Line<'_>],
    value: impl Fn(u64, f64) -> f64,
    bare: Option<f64>,
    label: fn(f64) -> String,
) -> DrawResult {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = range(points().map(|point| point.0 as f64));
    let x = x.start..x.end.max(2.0 * x.start);
    let y = range(points().map(|point| value(point.0, point.1)).chain(bare));
    // Whole decades, at least one.
    let y = 10f64.powf(y.start.log10().floor())..10f64.powf(y.end.log10().floor() + 1.0);
    let mut chart = ChartBuilder::on(area);
    chart.caption(title, (FONT, 13)).margin(10).x_label_area_size(40).y_label_area_size(56);
    let mut chart = chart.build_cartesian_2d(x.clone().log_scale().base(axis.base()), y.log_scale())?;
    let mut mesh = chart.configure_mesh();
    let x_label = |value: &f64| axis.label(*value);
    mesh.x_desc(axis.title()).x_label_formatter(&x_label);
    mesh.y_label_formatter(&|value| label(*value)).light_line_style(TRANSPARENT).draw()?;
    if let Some(bare) = bare {
        let style = RGBColor(0x88, 0x88, 0x88).stroke_width(1);
        let ends = [(x.start, bare), (x.end, bare)];
        chart.draw_series(DashedLineSeries::new(ends, 1, 3, style))?;
        let text = Text::new("bare cache line", (x.start, bare), (FONT, 11));
        chart.draw_series([text])?;
    }
    // The first line of a contestant lies above the others.
    for line in lines.iter().rev() {
        let points = line.points.iter().map(|point| (point.0 as f64, value(point.0, point.1)));
        let points: Vec<(f64, f64)> = points.collect();
        let style = line.colour.stroke_width(2);
        match line.dash {
            0 => chart.draw_series(LineSeries::new(points.clone(), style))?,
            dash => {
                chart.draw_series(DashedLineSeries::new(points.clone(), dash as u32, GAP as u32, style))?
            }
        };
        let radius = POINTS[usize::from(points.len() > MANY)];
        chart
            .draw_series(points.into_iter().map(|point| Circle::new(point, radius, line.colour.filled())))?;
    }
    Ok(())
}

pub(super) fn legend(area: &Area<'_>, lines: &[Line<'_>]) -> DrawResult {
    let several = lines.iter().any(|line| line.case != lines[0].case);
    for (at, line) in lines.iter().enumerate() {
        let x = 60 + (at % LEGEND_COLUMNS) as i32 * (WIDTH as i32 - 60) / LEGEND_COLUMNS as i32;
        let y = 10 + (at / LEGEND_COLUMNS) as i32 * LEGEND as i32;
        let step = if line.dash == 0 { 28 } else { line.dash + GAP };
        let len = if line.dash == 0 { 28 } else { line.dash };
        for from in (0..28).step_by(step as usize) {
            let ends = [(x + from, y), (x + (from + len).min(28), y)];
            area.draw(&PathElement::new(ends, line.colour.stroke_width(2)))?;
        }
        let name = if several && !has_only_arrays(line.name) {
            format!("{}, {}", line.name, line.case.title())
        } else {
            line.name.to_owned()
        };
        area.draw(&Text::new(name, (x + 34, y - 6), (FONT, 13)))?;
    }
    Ok(())
}

impl Line<'_> {
    /// Whether messages of this line are sent by reference: written messages between ranks that share memory.
    fn is_by_reference(&self) -> bool {
        is_of_buffers(self.case) && [" local", " shm"].iter().any(|over| self.name.ends_with(over))
    }
}

fn range(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (least, most) = values
        .fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), value| (least.min(value), most.max(value)));
    least..most
}

/// The lines of rows. A contestant that has only arrays is drawn once.
fn lines(rows: &[Row]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let (mut names, mut cases): (Vec<&str>, Vec<Case>) = (Vec::new(), Vec::new());
    for row in rows {
        for cell in &row.contestants {
            let name = cell.name.as_str();
            if has_only_arrays(name) && is_of_buffers(row.case) {
                continue;
            }
            let name_index = index_of(&mut names, name);
            let case_index = index_of(&mut cases, row.case);
            let point = (row.octets, cell.summary.median);
            match lines.iter_mut().find(|line| line.name == name && line.case == row.case) {
                Some(line) => line.points.push(point),
                None => lines.push(Line {
                    name,
                    case: row.case,
                    colour: COLOURS[name_index % COLOURS.len()],
                    dash: DASHES[case_index % DASHES.len()],
                    points: vec![point],
                }),
            }
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by_key(|point| point.0));
    if names.len() == 1 {
        // The colours distinguish the cases of a single contestant.
        for (line, colour) in lines.iter_mut().zip(COLOURS) {
            (line.colour, line.dash) = (colour, DASHES[0]);
        }
    }
    lines
}

/// Whether the messages are written before the measurement.
fn is_of_buffers(case: Case) -> bool {
    matches!(case, Case::Buffers | Case::RateBuffers)
}

/// Whether the contestant sends the same for arrays and buffers, as C and plain sockets do.
fn has_only_arrays(name: &str) -> bool {
    name.starts_with("C ") || name.starts_with("plain ")
}

/// 100 ns, 1 us, 10 us.
pub(super) fn decade_of_time(nanos: f64) -> String {
    // A thousandth more, so that a rounded decade has its own unit.
    time(nanos * 1.001).replace(".00 ", " ").replace(".0 ", " ")
}

/// 0.01, 1, 100.
fn decade(value: f64) -> String {
    let digits = (-value.log10().round()).max(0.0) as usize;
    format!("{value:.digits$}")
}

/// Index of a value in a list; a new value is appended.
pub(super) fn index_of<T: PartialEq>(list: &mut Vec<T>, what: T) -> usize {
    list.iter().position(|known| *known == what).unwrap_or_else(|| {
        list.push(what);
        list.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Mode, Summary};
    use crate::report::Cell;

    fn row(case: Case, octets: u64, names: &[&str]) -> Row {
        let summary =
            Summary { median: 100.0 + octets as f64, best: 90.0, extra: 0.0, turns: 7, counted: None };
        let cells = names.iter().map(|name| Cell { name: (*name).to_owned(), summary });
        Row {
            case,
            octets,
            ranks: 2,
            mode: Mode::Fast,
            line: Some(30.0),
            others: None,
            contestants: cells.collect(),
        }
    }

    #[test]
    fn chart_has_a_line_per_contestant_and_case() {
        let names = ["Rust shm", "C Open MPI 4 & <more>"];
        let rows: Vec<Row> = [Case::Arrays, Case::Buffers]
            .iter()
            .flat_map(|case| [8, 1024, 1 << 20].map(|octets| row(*case, octets, &names)))
            .collect();
        let svg = draw("a title", &rows).expect("it fits").expect("a picture");
        assert_eq!(svg.matches("<circle").count(), (3 + 2) * 3, "C once, bandwidth of copied messages only");
        assert_eq!(svg.matches("Rust shm, array to array").count(), 1);
        assert_eq!(svg.matches("\nC Open MPI 4 &amp; &lt;more&gt;\n<").count(), 1);
        assert!(svg.contains("bare cache line") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn chart_draws_bandwidth_over_tcp_and_plain_sockets_once() {
        let names = ["Rust tcp", "plain TCP sockets"];
        let rows: Vec<Row> = [Case::Arrays, Case::Buffers].iter().map(|case| row(*case, 8, &names)).collect();
        let svg = draw("a title", &rows).expect("it fits").expect("a picture");
        assert_eq!(svg.matches("<circle").count(), 3 + 3);
        assert_eq!(svg.matches("\nplain TCP sockets\n<").count(), 1);
    }

    #[test]
    fn decade_labels_are_powers_of_ten() {
        assert_eq!([0.001, 0.1, 1.0, 1000.0].map(decade), ["0.001", "0.1", "1", "1000"]);
        assert_eq!(
            [10.0, 100.0, 1000.0, 1e4, 1e6].map(decade_of_time),
            ["10 ns", "100 ns", "1 us", "10 us", "1 ms"]
        );
    }

    #[test]
    fn chart_needs_one_point() {
        let svg = draw("a title", &[row(Case::Ring, 8, &["Rust shm"])]).expect("it fits").expect("a picture");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(draw("a title", &[]).expect("nothing fits"), None);
    }
}
