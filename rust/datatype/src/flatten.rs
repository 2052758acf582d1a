//! Flat forms of a type map: nests of strides and lists of runs, in the order of the map.

use std::sync::Arc;

use crate::error::DatatypeError;

/// Dimensions of a nest.
pub(crate) const NEST_MAX: usize = 4;
/// Runs of a list. Each takes eight octets.
pub(crate) const RUNS_MAX: usize = 1 << 22;

/// Elements of one item in the order of the type map, by their distance from the item.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// No element.
    Empty,
    /// A regular nest; consecutive elements have one dimension of stride 1, or none.
    Nest(Nest),
    /// At least two runs.
    Runs(Arc<[RunAt]>),
}

/// Consecutive elements of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunAt {
    /// Distance of the first one from the item.
    pub(crate) at: i32,
    /// Number of elements, at least 1.
    pub(crate) len: u32,
}

/// Repetition of what is inside: the number and the distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dim {
    /// At least 2.
    pub(crate) extent: i64,
    pub(crate) stride: i64,
}

/// The elements `at + Σ i_d · stride_d`, the last dimension varying fastest. No dimension could be merged
/// with the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nest {
    pub(crate) at: i64,
    dims: [Dim; NEST_MAX],
    rank: usize,
}

impl Nest {
    /// One element.
    pub(crate) const ELEMENT: Nest = Nest { at: 0, dims: [Dim { extent: 0, stride: 0 }; NEST_MAX], rank: 0 };

    /// The dimensions, outermost first.
    pub(crate) fn dims(&self) -> &[Dim] {
        &self.dims[..self.rank]
    }

    /// The number of elements if they are consecutive.
    pub(crate) fn run(&self) -> Option<usize> {
        match self.dims() {
            [] => Some(1),
            [Dim { extent, stride: 1 }] => Some(*extent as usize),
            _ => None,
        }
    }

    fn shifted(self, by: i64) -> Nest {
        Nest { at: self.at + by, ..self }
    }

    /// `count` copies, `stride` apart; `None` if that takes too many dimensions.
    pub(crate) fn repeated(self, count: i64, stride: i64) -> Option<Nest> {
        let mut nest = self;
        if count == 1 {
            return Some(nest);
        }
        match nest.dims[..nest.rank].first_mut() {
            Some(outer) if outer.extent * outer.stride == stride => outer.extent *= count,
            _ if nest.rank == NEST_MAX => return None,
            _ => {
                nest.dims.rotate_right(1);
                nest.dims[0] = Dim { extent: count, stride };
                nest.rank += 1;
            }
        }
        Some(nest)
    }

    /// Calls `each` with position and length of each run in order.
    fn try_each_run<E>(&self, mut each: impl FnMut(i64, i64) -> Result<(), E>) -> Result<(), E> {
        let (outer, len) = match self.dims() {
            [outer @ .., Dim { extent, stride: 1 }] => (outer, *extent),
            all => (all, 1),
        };
        let (mut digits, mut at) = ([0; NEST_MAX], self.at);
        loop {
            each(at, len)?;
            let mut d = outer.len();
            loop {
                if d == 0 {
                    return Ok(());
                }
                d -= 1;
                digits[d] += 1;
                at += outer[d].stride;
                if digits[d] < outer[d].extent {
                    break;
                }
                at -= outer[d].stride * outer[d].extent;
                digits[d] = 0;
            }
        }
    }
}

impl Form {
    /// `count` copies, `stride` apart. All positions fit 32 bits.
    ///
    /// # Errors
    /// Too many runs.
    pub(crate) fn repeated(&self, count: i64, stride: i64) -> Result<Form, DatatypeError> {
        if count == 1 {
            return Ok(self.clone());
        }
        let nest = match self {
            Form::Nest(nest) => nest.repeated(count, stride),
            _ => None,
        };
        match (nest, self) {
            (_, Form::Empty) => Ok(Form::Empty),
            _ if count == 0 => Ok(Form::Empty),
            (Some(nest), _) => Ok(Form::Nest(nest)),
            (None, _) => {
                let mut builder = Builder::default();
                for k in 0..count {
                    builder.push_runs(self, k * stride)?;
                }
                builder.finish()
            }
        }
    }
}

/// A form under construction, block by block.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    /// Equal nests at equal distances, as long as no block differs: the first, the distance, the number.
    regular: Option<(Nest, i64, i64)>,
    runs: Vec<RunAt>,
}

impl Builder {
    /// Appends a form, moved by `by`. All positions fit 32 bits.
    ///
    /// # Errors
    /// Too many runs.
    pub(crate) fn push(&mut self, form: &Form, by: i64) -> Result<(), DatatypeError> {
        if let Form::Empty = form {
            return Ok(());
        }
        if let (Form::Nest(nest), true) = (form, self.runs.is_empty()) {
            let nest = nest.shifted(by);
            match &mut self.regular {
                None => {
                    self.regular = Some((nest, 0, 1));
                    return Ok(());
                }
                Some((first, step, count)) if first.dims() == nest.dims() => {
                    if *count == 1 {
                        *step = nest.at - first.at;
                    }
                    if nest.at == first.at + *step * *count {
                        *count += 1;
                        return Ok(());
                    }
                }
                Some(_) => {}
            }
        }
        self.push_runs(form, by)
    }

    /// Appends the runs of a form, after those of the regular blocks.
    fn push_runs(&mut self, form: &Form, by: i64) -> Result<(), DatatypeError> {
        if let Some((first, step, count)) = self.regular.take() {
            for k in 0..count {
                self.push_runs(&Form::Nest(first), k * step)?;
            }
        }
        match form {
            Form::Empty => Ok(()),
            Form::Nest(nest) => nest.shifted(by).try_each_run(|at, len| self.push_run(at, len)),
            Form::Runs(runs) => {
                runs.iter().try_for_each(|run| self.push_run(i64::from(run.at) + by, i64::from(run.len)))
            }
        }
    }

    fn push_run(&mut self, at: i64, len: i64) -> Result<(), DatatypeError> {
        if let Some(last) = self.runs.last_mut()
            && i64::from(last.at) + i64::from(last.len) == at
        {
            last.len += len as u32;
            return Ok(());
        }
        if self.runs.len() == RUNS_MAX {
            return Err(DatatypeError::TooComplex { max: RUNS_MAX });
        }
        self.runs.push(RunAt { at: at as i32, len: len as u32 });
        Ok(())
    }

    /// The form of all blocks.
    ///
    /// # Errors
    /// Too many runs.
    pub(crate) fn finish(mut self) -> Result<Form, DatatypeError> {
        if let Some((first, step, count)) = self.regular {
            if let Some(nest) = first.repeated(count, step) {
                return Ok(Form::Nest(nest));
            }
            self.push_runs(&Form::Empty, 0)?;
        }
        Ok(match *self.runs {
            [] => Form::Empty,
            [run] => {
                let nest = Nest::ELEMENT.shifted(i64::from(run.at)).repeated(i64::from(run.len), 1);
                Form::Nest(nest.unwrap_or(Nest::ELEMENT))
            }
            _ => Form::Runs(self.runs.into()),
        })
    }
}
