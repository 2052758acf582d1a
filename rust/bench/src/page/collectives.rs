//! Section of collective calls: a table of all rows.

use super::{row, rule};
use crate::collectives::{Measured, cells};

pub(super) fn section(measured: &Measured) -> String {
    let mut text = format!(
        "Microseconds, medians of {} jobs of each contestant; in the row of garbage octets.\n\n",
        measured.jobs
    );
    for (at, cells) in cells(measured).iter().enumerate() {
        text += &row(cells);
        if at == 0 {
            text += &rule(cells.len());
        }
    }
    text
}
