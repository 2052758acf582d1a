//! Cartesian topologies: ranks in row-major order, shifts, and partitions.

use crate::PROC_NULL;
use crate::error::TopologyError;

/// A checked topology.
#[derive(Clone, Copy, Debug)]
pub struct Cart<'a> {
    dims: &'a [i32],
    periods: &'a [bool],
    nodes: i32,
}

impl<'a> Cart<'a> {
    /// Checks a topology on a communicator of `size` ranks. Without dimensions it has one node.
    ///
    /// # Errors
    /// An extent below 1, arrays of different lengths, more nodes than ranks.
    pub fn new(size: i32, dims: &'a [i32], periods: &'a [bool]) -> Result<Cart<'a>, TopologyError> {
        check_entries("periods", periods.len(), dims.len())?;
        if let Some(dimension) = dims.iter().position(|&extent| extent < 1) {
            return Err(TopologyError::Extent { dimension, extent: dims[dimension] });
        }
        let nodes = dims.iter().fold(1i128, |nodes, &extent| nodes.saturating_mul(i128::from(extent)));
        if nodes > i128::from(size) {
            return Err(TopologyError::TooLarge { nodes, size });
        }
        Ok(Cart { dims, periods, nodes: nodes as i32 })
    }

    /// Number of nodes.
    pub fn nodes(&self) -> i32 {
        self.nodes
    }

    /// The rank with these coordinates. In periodic dimensions they wrap.
    ///
    /// # Errors
    /// Another number of coordinates than of dimensions; a coordinate outside.
    pub fn rank(&self, coordinates: &[i32]) -> Result<i32, TopologyError> {
        check_entries("coordinates", coordinates.len(), self.dims.len())?;
        let mut rank = 0;
        for (dimension, &coordinate) in coordinates.iter().enumerate() {
            let extent = self.dims[dimension];
            let inside = self.wrap(dimension, i64::from(coordinate));
            let outside = TopologyError::Coordinate { dimension, coordinate, extent };
            rank = rank * extent + inside.ok_or(outside)?;
        }
        Ok(rank)
    }

    /// A coordinate of this dimension; `None` if it is outside.
    fn wrap(&self, dimension: usize, coordinate: i64) -> Option<i32> {
        let extent = i64::from(self.dims[dimension]);
        let wrapped = coordinate.rem_euclid(extent);
        (self.periods[dimension] || wrapped == coordinate).then_some(wrapped as i32)
    }

    /// The coordinates of a rank.
    ///
    /// # Errors
    /// A rank outside.
    pub fn coordinates(&self, rank: i32) -> Result<Vec<i32>, TopologyError> {
        if !(0..self.nodes).contains(&rank) {
            return Err(TopologyError::Rank { rank, nodes: self.nodes });
        }
        let mut rest = rank;
        let mut coordinates = vec![0; self.dims.len()];
        for (coordinate, &extent) in coordinates.iter_mut().zip(self.dims).rev() {
            (rest, *coordinate) = (rest / extent, rest % extent);
        }
        Ok(coordinates)
    }

    /// The ranks `displacement` steps before and behind a rank: the source and the destination of a shift.
    /// [`PROC_NULL`] stands for one beyond an edge.
    ///
    /// # Errors
    /// A rank or a direction outside.
    pub fn shift(&self, rank: i32, direction: i32, displacement: i32) -> Result<(i32, i32), TopologyError> {
        let dimensions = self.dims.len();
        let dimension = usize::try_from(direction).ok().filter(|&dimension| dimension < dimensions);
        let dimension = dimension.ok_or(TopologyError::Direction { direction, dimensions })?;
        let own = self.coordinates(rank)?;
        let step: i32 = self.dims[dimension + 1..].iter().product();
        let moved = |by: i64| match self.wrap(dimension, i64::from(own[dimension]) + by) {
            Some(coordinate) => rank + (coordinate - own[dimension]) * step,
            None => PROC_NULL,
        };
        Ok((moved(-i64::from(displacement)), moved(i64::from(displacement))))
    }

    /// The part of a rank when only some dimensions remain, and its rank there: color and key of a split.
    ///
    /// # Errors
    /// Another number of entries than of dimensions; a rank outside.
    pub fn part(&self, rank: i32, remains: &[bool]) -> Result<(i32, i32), TopologyError> {
        check_entries("remaining dimensions", remains.len(), self.dims.len())?;
        let (mut color, mut key) = (0, 0);
        for (dimension, coordinate) in self.coordinates(rank)?.into_iter().enumerate() {
            let number = if remains[dimension] { &mut key } else { &mut color };
            *number = *number * self.dims[dimension] + coordinate;
        }
        Ok((color, key))
    }
}

fn check_entries(what: &'static str, found: usize, dimensions: usize) -> Result<(), TopologyError> {
    if found == dimensions { Ok(()) } else { Err(TopologyError::Dimensions { what, found, dimensions }) }
}
