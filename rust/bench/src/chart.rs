//! A picture of what was measured: time and bandwidth over the size, one line for each contestant and case.

use std::fmt::Write;

use super::order::Case;
use super::outcome::median;
use super::report::{Row, size, time};

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 48.0;
/// A line of the legend, which stands below both drawings.
const LEGEND: f64 = 20.0;
const LEGEND_COLUMNS: usize = 3;
/// Well apart, also for those who see colours otherwise; ours first.
const COLOURS: [&str; 8] =
    ["#0b5fa5", "#d1701c", "#3a8f3a", "#a03070", "#555555", "#b8860b", "#2aa5a0", "#8a4fff"];
/// How lines of one contestant differ.
const DASHES: [&str; 3] = ["", "7 4", "2 3"];

/// One line: who and what, and for each size the nanoseconds.
struct Line<'a> {
    name: &'a str,
    case: Case,
    colour: &'static str,
    dash: &'static str,
    points: Vec<(u64, f64)>,
}

/// Draws rows as SVG, the time on the left and octets by time on the right. None when there is nothing to draw.
pub fn draw(title: &str, rows: &[Row]) -> Option<String> {
    let lines = lines(rows);
    if lines.is_empty() {
        return None;
    }
    let several = lines.iter().any(|line| line.case != lines[0].case);
    let legend_rows = lines.len().div_ceil(LEGEND_COLUMNS);
    let height = HEIGHT + LEGEND * legend_rows as f64 + 16.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{height}\" viewBox=\"0 0 {0} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        2.0 * WIDTH
    );
    svg += &text(LEFT, 22.0, "start", 15, "bold", title);
    let bare = median(rows.iter().filter_map(|row| row.line).collect());
    let all: Vec<&Line<'_>> = lines.iter().collect();
    Plot::new(0.0, "time", &all, |_, nanos| nanos, bare).draw(&mut svg, &all, decade_of_time);
    // What goes by reference has no bandwidth.
    let copied: Vec<&Line<'_>> = lines.iter().filter(|line| !line.is_by_reference()).collect();
    if !copied.is_empty() {
        let bandwidth = |octets: u64, nanos: f64| octets as f64 / nanos;
        let plot = Plot::new(WIDTH, "octets by time, GB/s", &copied, bandwidth, None);
        plot.draw(&mut svg, &copied, decade);
    }
    for (at, line) in lines.iter().enumerate() {
        legend(&mut svg, line, at, several);
    }
    svg += "</svg>\n";
    Some(svg)
}

/// The lines in the rows. What is an array in any case is drawn once.
fn lines(rows: &[Row]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let (mut names, mut cases): (Vec<&str>, Vec<Case>) = (Vec::new(), Vec::new());
    for row in rows {
        for cell in &row.contestants {
            let name = cell.name.as_str();
            if has_only_arrays(name) && is_of_buffers(row.case) {
                continue;
            }
            let who = place(&mut names, name);
            let what = place(&mut cases, row.case);
            let point = (row.octets, cell.summary.median);
            match lines.iter_mut().find(|line| line.name == name && line.case == row.case) {
                Some(line) => line.points.push(point),
                None => lines.push(Line {
                    name,
                    case: row.case,
                    colour: COLOURS[who % COLOURS.len()],
                    dash: DASHES[what % DASHES.len()],
                    points: vec![point],
                }),
            }
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by_key(|point| point.0));
    lines
}

/// A message that is written already.
fn is_of_buffers(case: Case) -> bool {
    matches!(case, Case::Buffers | Case::RateBuffers)
}

/// What C and plain sockets send is the same for buffers.
fn has_only_arrays(name: &str) -> bool {
    name.starts_with("C ") || name.starts_with("plain ")
}

/// 100 ns, 1 us, 10 us.
fn decade_of_time(nanos: f64) -> String {
    // A thousandth more, so that a decade that is not quite one has its own unit.
    time(nanos * 1.001).replace(".00 ", " ").replace(".0 ", " ")
}

/// 0.01, 1, 100.
fn decade(value: f64) -> String {
    let digits = (-value.log10().round()).max(0.0) as usize;
    format!("{value:.digits$}")
}

/// Where something stands in a list, which it is put into if it is new.
fn place<T: PartialEq>(list: &mut Vec<T>, what: T) -> usize {
    list.iter().position(|known| *known == what).unwrap_or_else(|| {
        list.push(what);
        list.len() - 1
    })
}

/// One of the two drawings.
struct Plot<F> {
    shift: f64,
    title: &'static str,
    value: F,
    x: (f64, f64),
    y: (f64, f64),
    bare: Option<f64>,
}

impl<F: Fn(u64, f64) -> f64> Plot<F> {
    fn new(shift: f64, title: &'static str, lines: &[&Line<'_>], value: F, bare: Option<f64>) -> Self {
        let points = || lines.iter().flat_map(|line| &line.points);
        let x = range(points().map(|point| point.0 as f64));
        let values = points().map(|point| value(point.0, point.1)).chain(bare);
        let (least, most) = range(values);
        // Whole decades, and one at least.
        let y = (10f64.powf(least.log10().floor()), 10f64.powf(most.log10().floor() + 1.0));
        Plot { shift, title, value, x: (x.0, x.1.max(2.0 * x.0)), y, bare }
    }

    fn draw(&self, svg: &mut String, lines: &[&Line<'_>], label: impl Fn(f64) -> String) {
        let (left, right) = (self.shift + LEFT, self.shift + WIDTH - RIGHT);
        *svg += &text(left, TOP - 12.0, "start", 12, "bold", self.title);
        let decades = (self.y.1 / self.y.0).log10().round() as i32;
        for decade in (0..=decades).map(|power| self.y.0 * 10f64.powi(power)) {
            let at = self.up(decade);
            *svg += &format!("<path d=\"M{left} {at:.1}H{right}\" stroke=\"#dddddd\"/>\n");
            *svg += &text(left - 6.0, at + 4.0, "end", 11, "normal", &label(decade));
        }
        // Every third power of two, as far as they go.
        for octets in (0..30).step_by(3).map(|power| 8u64 << power) {
            let at = self.along(octets as f64);
            if (self.x.0..=self.x.1).contains(&(octets as f64)) {
                let (top, bottom) = (TOP, HEIGHT - BOTTOM);
                *svg += &format!("<path d=\"M{at:.1} {top}V{bottom}\" stroke=\"#eeeeee\"/>\n");
                *svg += &text(at, bottom + 16.0, "middle", 11, "normal", &size(octets));
            }
        }
        *svg += &text(right, HEIGHT - BOTTOM + 34.0, "end", 11, "normal", "octets of a message");
        if let Some(bare) = self.bare {
            let at = self.up(bare);
            *svg += &format!(
                "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#888888\" stroke-dasharray=\"1 3\"/>\n"
            );
            *svg += &text(right, at - 4.0, "end", 11, "normal", "bare cache line");
        }
        // The first line of a contestant lies above the others.
        for line in lines.iter().rev() {
            self.line(svg, line);
        }
    }

    fn line(&self, svg: &mut String, line: &Line<'_>) {
        let place =
            |point: &(u64, f64)| (self.along(point.0 as f64), self.up((self.value)(point.0, point.1)));
        let mut path = String::new();
        for (x, y) in line.points.iter().map(place) {
            // A text takes any of this.
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
        }
        *svg += &format!("<path d=\"{path}\" fill=\"none\" {}/>\n", line.stroke());
        for (x, y) in line.points.iter().map(place) {
            *svg += &format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{}\"/>\n", line.colour);
        }
    }

    fn along(&self, octets: f64) -> f64 {
        let part = (octets / self.x.0).ln() / (self.x.1 / self.x.0).ln();
        self.shift + LEFT + part * (WIDTH - LEFT - RIGHT)
    }

    fn up(&self, value: f64) -> f64 {
        let part = (value / self.y.0).ln() / (self.y.1 / self.y.0).ln();
        HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    }
}

impl Line<'_> {
    /// Octets of a written message stay where they are, unless they go over TCP.
    fn is_by_reference(&self) -> bool {
        is_of_buffers(self.case) && !self.name.ends_with(" tcp")
    }

    fn stroke(&self) -> String {
        let dash =
            if self.dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", self.dash) };
        format!("stroke=\"{}\" stroke-width=\"2\"{dash}", self.colour)
    }
}

fn legend(svg: &mut String, line: &Line<'_>, at: usize, several: bool) {
    let column = 2.0 * (WIDTH - LEFT) / LEGEND_COLUMNS as f64;
    let x = LEFT + (at % LEGEND_COLUMNS) as f64 * column;
    let y = HEIGHT + 8.0 + (at / LEGEND_COLUMNS) as f64 * LEGEND;
    *svg += &format!("<path d=\"M{x:.1} {:.1}h28\" {}/>\n", y - 4.0, line.stroke());
    let name = if several && !has_only_arrays(line.name) {
        format!("{}, {}", line.name, line.case.title())
    } else {
        line.name.to_owned()
    };
    *svg += &text(x + 34.0, y, "start", 12, "normal", &name);
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(least, most), value| (value.min(least), value.max(most)))
}

fn text(x: f64, y: f64, anchor: &str, size: u32, weight: &str, what: &str) -> String {
    let what = what.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" \
         font-weight=\"{weight}\">{what}</text>\n"
    )
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
    fn there_is_a_line_for_each_contestant_and_case_that_a_drawing_is_for() {
        let names = ["Rust shm", "C Open MPI 4 & <more>"];
        let rows: Vec<Row> = [Case::Arrays, Case::Buffers]
            .iter()
            .flat_map(|case| [8, 1024, 1 << 20].map(|octets| row(*case, octets, &names)))
            .collect();
        let svg = draw("a title", &rows).expect("a picture");
        assert_eq!(svg.matches("fill=\"none\"").count(), 3 + 2, "C once, bandwidth of what is copied");
        assert_eq!(svg.matches("<circle").count(), 5 * 3);
        assert_eq!(svg.matches("Rust shm, array to array").count(), 1);
        assert_eq!(svg.matches("C Open MPI 4 &amp; &lt;more&gt;<").count(), 1);
        assert!(svg.contains("bare cache line") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn written_messages_have_a_bandwidth_over_tcp_and_plain_sockets_are_drawn_once() {
        let names = ["Rust tcp", "plain TCP sockets"];
        let rows: Vec<Row> = [Case::Arrays, Case::Buffers].iter().map(|case| row(*case, 8, &names)).collect();
        let svg = draw("a title", &rows).expect("a picture");
        assert_eq!(svg.matches("fill=\"none\"").count(), 3 + 3);
        assert_eq!(svg.matches(">plain TCP sockets<").count(), 1);
    }

    #[test]
    fn decades_are_whole_numbers() {
        assert_eq!([0.001, 0.1, 1.0, 1000.0].map(decade), ["0.001", "0.1", "1", "1000"]);
        assert_eq!(
            [10.0, 100.0, 1000.0, 1e4, 1e6].map(decade_of_time),
            ["10 ns", "100 ns", "1 us", "10 us", "1 ms"]
        );
    }

    #[test]
    fn one_point_is_a_picture_and_none_is_not() {
        let svg = draw("a title", &[row(Case::Ring, 8, &["Rust shm"])]).expect("a picture");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(draw("a title", &[]), None);
    }
}
