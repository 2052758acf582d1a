//! Section of a budget: a table for each path of a message, and the costs.

use super::{row, rule};
use crate::budget::{Budget, COLUMNS};

pub(super) fn section(budget: &Budget) -> String {
    let mut text =
        "Numbers are counted in the code, costs measured. Instructions overlap, so a sum is an estimate.\n"
            .to_owned();
    for (title, steps) in budget.paths() {
        text.push('\n');
        let head: Vec<String> = [title].iter().chain(&COLUMNS).map(ToString::to_string).collect();
        text += &row(&head);
        text += &rule(head.len());
        text.extend(budget.rows(steps).iter().map(|cells| row(cells)));
    }
    text += "\n| cost | ns |\n";
    text += &rule(2);
    for (name, cost) in budget.costs.names() {
        let cost = cost.map_or("not measured".to_owned(), |nanos| format!("{nanos:.1}"));
        text += &row(&[name.to_owned(), cost]);
    }
    text
}
