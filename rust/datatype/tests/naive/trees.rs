//! Seeded random trees of constructors, each built as a datatype and as a model.

use mpjdev_buffer::Type;
use mpjdev_datatype::{Base, Datatype, Unit};
use oorandom::Rand64;

use crate::model::{Entry, Model};

/// Entries of the largest model.
const ENTRIES_MAX: usize = 3000;

pub(crate) const INT: Base = Base::Element(Type::Int);

pub(crate) struct Trees {
    pub(crate) random: Rand64,
}

pub(crate) type Pair = (Datatype, Model);

impl Trees {
    pub(crate) fn new(seed: u64) -> Trees {
        Trees { random: Rand64::new(u128::from(seed)) }
    }

    /// A number from `low` to `high`.
    pub(crate) fn number(&mut self, low: i64, high: i64) -> i64 {
        low + self.random.rand_range(0..(high - low + 1) as u64) as i64
    }

    fn leaf(&mut self) -> Pair {
        let one = |entry| Model { map: vec![(entry, 0)] };
        match self.number(0, 11) {
            0 => (Datatype::lower_mark(), one(Entry::Lb)),
            1 => (Datatype::upper_mark(), one(Entry::Ub)),
            _ => (Datatype::basic(INT), one(Entry::Element)),
        }
    }

    /// A tree of at most this depth.
    pub(crate) fn tree(&mut self, depth: i64) -> Pair {
        if depth == 0 {
            return self.leaf();
        }
        let old = self.tree(depth - 1);
        match self.number(0, 4) {
            0 => self.contiguous(old),
            1 => self.vector(old),
            2 => self.indexed(old),
            3 => self.structure(old, depth),
            _ => old,
        }
    }

    fn contiguous(&mut self, (old, model): Pair) -> Pair {
        let count = self.number(0, 4);
        let new = Model::blocks([(count, 0, &model)]);
        (old.contiguous(count as i32).expect("small"), new)
    }

    fn vector(&mut self, (old, model): Pair) -> Pair {
        let (count, block, stride) = (self.number(0, 4), self.number(0, 3), self.number(-6, 9));
        if model.map.len() * (count * block) as usize > ENTRIES_MAX {
            return (old, model);
        }
        let (unit, len) = self.unit(&model);
        let new = Model::blocks((0..count).map(|i| (block, i * stride * len, &model)));
        (old.vector(count as i32, block as i32, stride as i32, unit).expect("small"), new)
    }

    fn indexed(&mut self, (old, model): Pair) -> Pair {
        let blocks: Vec<i64> = (0..self.number(0, 4)).map(|_| self.number(0, 3)).collect();
        if model.map.len() * blocks.iter().sum::<i64>() as usize > ENTRIES_MAX {
            return (old, model);
        }
        // Equal steps, as of a vector, are one case in three.
        let (first, step, is_regular) = (self.number(-9, 9), self.number(-4, 7), self.number(0, 2) == 0);
        let at = |k: usize, trees: &mut Trees| {
            if is_regular { first + step * k as i64 } else { trees.number(-9, 20) }
        };
        let displacements: Vec<i64> = (0..blocks.len()).map(|k| at(k, self)).collect();
        let (unit, len) = self.unit(&model);
        let pairs = blocks.iter().zip(&displacements);
        let new = Model::blocks(pairs.map(|(&n, &at)| (n, at * len, &model)));
        (old.indexed(&narrow(&blocks), &narrow(&displacements), unit).expect("small"), new)
    }

    fn structure(&mut self, old: Pair, depth: i64) -> Pair {
        let mut members = vec![old];
        for _ in 0..self.number(0, 3) {
            let depth = self.number(0, depth - 1);
            members.push(if self.number(0, 2) == 0 { members[0].clone() } else { self.tree(depth) });
        }
        let blocks: Vec<i64> = members.iter().map(|_| self.number(0, 3)).collect();
        let sizes = members.iter().zip(&blocks).map(|((_, model), &n)| model.map.len() * n as usize);
        if sizes.sum::<usize>() > ENTRIES_MAX {
            return members.swap_remove(0);
        }
        let displacements: Vec<i64> = members.iter().map(|_| self.number(-9, 20)).collect();
        let new = blocks.iter().zip(&displacements).zip(&members);
        let new = Model::blocks(new.map(|((&n, &at), (_, model))| (n, at, model)));
        let types: Vec<Datatype> = members.into_iter().map(|(datatype, _)| datatype).collect();
        (Datatype::structure(&narrow(&blocks), &narrow(&displacements), &types).expect("small"), new)
    }

    fn unit(&mut self, model: &Model) -> (Unit, i64) {
        match self.number(0, 1) {
            0 => (Unit::Element, 1),
            _ => (Unit::Extent, model.ub() - model.lb()),
        }
    }
}

fn narrow(values: &[i64]) -> Vec<i32> {
    values.iter().map(|&value| i32::try_from(value).expect("small")).collect()
}
