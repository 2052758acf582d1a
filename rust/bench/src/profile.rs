//! Cost of counting calls: turns of one job with a profile and without it.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Serialize;

use super::BenchError;
use super::outcome::median;

/// Class of the Java program.
const PROGRAM: &str = "mpjdev.tools.ProfileCost";
/// Limit of nanoseconds that a call of 8 octets over shared memory may cost more.
pub const LIMIT: f64 = 15.0;
/// Name of the row with the limit.
const LIMITED: &str = "trip";

/// Nanoseconds of a call, medians over the turns of a job, and then over jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Name of the row.
    pub row: String,
    /// A call without a profile.
    pub off: f64,
    /// A call with one.
    pub on: f64,
    /// Difference between neighbouring turns.
    pub cost: f64,
    /// Limit of the difference, if the row has one.
    pub limit: Option<f64>,
}

/// Runs one job of some pairs of turns. `folder` gets its profile.
///
/// # Errors
/// It fails, or prints something else.
pub fn run(launcher: &Path, class_path: &OsStr, folder: &Path, turns: u32) -> Result<Vec<Cost>, BenchError> {
    let mut command = Command::new(launcher);
    command.args(["run", "-n", "2", "--timeout", "600", "--profile"]).arg(folder);
    command.args([OsStr::new("-cp"), class_path, PROGRAM.as_ref(), &OsString::from(turns.to_string())]);
    let output = command.stdin(Stdio::null()).output().map_err(BenchError::system("the launcher"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let costs: Option<Vec<Cost>> = text.lines().map(parse).collect();
    match costs.filter(|costs| output.status.success() && !costs.is_empty()) {
        Some(costs) => Ok(costs),
        None => {
            let why = format!("{}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr));
            Err(BenchError::Contestant { name: PROGRAM.to_owned(), why })
        }
    }
}

/// A line of the program: name, and three numbers.
fn parse(line: &str) -> Option<Cost> {
    let mut words = line.split_whitespace();
    let row = words.next()?.to_owned();
    let numbers: Vec<f64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    let [off, on, cost] = numbers[..] else { return None };
    let limit = (row == LIMITED).then_some(LIMIT);
    Some(Cost { row, off, on, cost, limit })
}

/// The medians over jobs, with the rows of the first one.
#[must_use]
pub fn medians(jobs: &[Vec<Cost>]) -> Vec<Cost> {
    let Some(first) = jobs.first() else { return Vec::new() };
    let of = |row: &str, value: fn(&Cost) -> f64| {
        let values = jobs.iter().flatten().filter(|cost| cost.row == row).map(value).collect();
        median(values).unwrap_or(f64::NAN)
    };
    first
        .iter()
        .map(|cost| Cost {
            off: of(&cost.row, |cost| cost.off),
            on: of(&cost.row, |cost| cost.on),
            cost: of(&cost.row, |cost| cost.cost),
            ..cost.clone()
        })
        .collect()
}

/// A table of the costs.
#[must_use]
pub fn table(costs: &[Cost]) -> String {
    let mut text =
        "| row | off, ns | on, ns | more a call, ns | allowed |\n|---|---|---|---|---|\n".to_owned();
    for Cost { row, off, on, cost, limit } in costs {
        let name = match row.as_str() {
            LIMITED => "a call of a round trip, 8 octets over shared memory",
            "own" => "a call of a send to the own rank and its receive",
            other => other,
        };
        let limit = limit.map_or("-".to_owned(), |limit| format!("at most {limit}"));
        text += &format!("| {name} | {off:.1} | {on:.1} | {cost:.1} | {limit} |\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_program_become_medians_of_jobs() {
        assert_eq!(parse("trip 1 2"), None);
        assert_eq!(parse("trip 1 2 x"), None);
        let job = |cost| vec![parse(&format!("trip 100.0 110.0 {cost}")).expect("a row")];
        let costs = medians(&[job(9.0), job(30.0), job(12.0)]);
        let expected = Cost { row: "trip".into(), off: 100.0, on: 110.0, cost: 12.0, limit: Some(LIMIT) };
        assert_eq!(costs, [expected]);
        assert!(table(&costs).ends_with("| 100.0 | 110.0 | 12.0 | at most 15 |\n"));
        assert!(medians(&[]).is_empty());
    }
}
