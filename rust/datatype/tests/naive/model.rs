//! The type map of a datatype, entry by entry, as MPI-1.1 defines it.

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Entry {
    Element,
    Lb,
    Ub,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) map: Vec<(Entry, i64)>,
}

impl Model {
    pub(crate) fn lb(&self) -> i64 {
        let of = |only: Option<Entry>| self.map.iter().filter(move |e| only.is_none_or(|only| e.0 == only));
        of(Some(Entry::Lb)).map(|e| e.1).min().or(of(None).map(|e| e.1).min()).unwrap_or(0)
    }

    pub(crate) fn ub(&self) -> i64 {
        let of = |only: Option<Entry>| self.map.iter().filter(move |e| only.is_none_or(|only| e.0 == only));
        let ends = of(None).map(|e| e.1 + i64::from(e.0 == Entry::Element)).max();
        of(Some(Entry::Ub)).map(|e| e.1).max().or(ends).unwrap_or(0)
    }

    pub(crate) fn blocks<'a>(blocks: impl IntoIterator<Item = (i64, i64, &'a Model)>) -> Model {
        let items = blocks.into_iter().flat_map(|(n, at, old)| (0..n).map(move |j| (at, j, old)));
        let entries = items.flat_map(|(at, j, old)| {
            let extent = old.ub() - old.lb();
            old.map.iter().map(move |&(entry, disp)| (entry, at + j * extent + disp))
        });
        Model { map: entries.collect() }
    }

    pub(crate) fn elements(&self, offset: i64, count: i64) -> Vec<i64> {
        let items = Model::blocks([(count, offset, self)]);
        items.map.into_iter().filter(|e| e.0 == Entry::Element).map(|e| e.1).collect()
    }
}
