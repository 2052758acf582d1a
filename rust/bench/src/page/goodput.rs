//! Section of goodput: streams, messages and targets.

use super::{figures, row, rule};
use crate::goodput::Measured;

pub(super) fn section(measured: &Measured) -> String {
    let mut text = format!("Through {}, the same impairment each way.\n", measured.emulator());
    for lines in [measured.stream_lines(), measured.message_lines()] {
        text.push('\n');
        for (at, cells) in lines.iter().enumerate() {
            text += &row(cells);
            if at == 0 {
                text += &rule(cells.len());
            }
        }
    }
    text.push('\n');
    text + &figures(measured.figures())
}
