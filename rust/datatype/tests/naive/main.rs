//! Datatypes compared with a model that lists each element.

mod model;
mod placements;
mod trees;
mod values;
