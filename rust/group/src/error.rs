//! Errors of groups and topologies.

use thiserror::Error;

/// A refused operation on groups.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GroupError {
    /// A rank that the group does not have.
    #[error("rank {rank} at position {position} is not in a group of {size}")]
    Rank {
        /// The rank.
        rank: i64,
        /// Its position among the ranks of the call, from 0.
        position: usize,
        /// Members of the group.
        size: usize,
    },
    /// A rank that is chosen twice.
    #[error("rank {rank} at position {position} was named before")]
    Duplicate {
        /// The rank.
        rank: i64,
        /// Its position among the ranks of the call, from 0.
        position: usize,
    },
    /// A range that does not advance.
    #[error("range {position} has stride 0")]
    Stride {
        /// Number of the range, from 0.
        position: usize,
    },
}

/// A refused topology, or a position that it does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// An extent that is no extent.
    #[error("dimension {dimension} has extent {extent}")]
    Extent {
        /// Number of the dimension, from 0.
        dimension: usize,
        /// Its extent.
        extent: i32,
    },
    /// A topology of more nodes than the communicator has ranks.
    #[error("the topology has {nodes} nodes, the communicator {size} ranks")]
    TooLarge {
        /// Nodes of the topology.
        nodes: i128,
        /// Ranks of the communicator.
        size: i32,
    },
    /// A number of nodes that the fixed extents do not divide.
    #[error("{nodes} nodes cannot be divided by the fixed extents, whose product is {product}")]
    Indivisible {
        /// Nodes to divide.
        nodes: i32,
        /// Product of the extents that are given.
        product: i128,
    },
    /// An array with another number of entries than the topology has dimensions.
    #[error("{what}: {found} entries for {dimensions} dimensions")]
    Dimensions {
        /// Name of the array.
        what: &'static str,
        /// Its entries.
        found: usize,
        /// Dimensions of the topology.
        dimensions: usize,
    },
    /// A coordinate outside a dimension that is not periodic.
    #[error("coordinate {coordinate} is outside dimension {dimension}, which has extent {extent}")]
    Coordinate {
        /// Number of the dimension, from 0.
        dimension: usize,
        /// The coordinate.
        coordinate: i32,
        /// Extent of the dimension.
        extent: i32,
    },
    /// A rank that the topology does not have.
    #[error("rank {rank} is not in a topology of {nodes} nodes")]
    Rank {
        /// The rank.
        rank: i32,
        /// Nodes of the topology.
        nodes: i32,
    },
    /// A dimension that the topology does not have.
    #[error("direction {direction} is not one of {dimensions} dimensions")]
    Direction {
        /// The dimension, from 0.
        direction: i32,
        /// Dimensions of the topology.
        dimensions: usize,
    },
    /// An index array that decreases.
    #[error("entry {position} of the index array is {value}, less than the entry before it")]
    Index {
        /// Position in the array, from 0.
        position: usize,
        /// The entry.
        value: i32,
    },
    /// An index array that does not end with the number of edges.
    #[error("the index array ends with {last}, the graph has {edges} edges")]
    Edges {
        /// The last entry.
        last: i32,
        /// Entries of the edge array.
        edges: usize,
    },
    /// An edge to no node.
    #[error("edge {position} leads to node {node} of a graph of {nodes} nodes")]
    Node {
        /// Position in the edge array, from 0.
        position: usize,
        /// The node.
        node: i32,
        /// Nodes of the graph.
        nodes: usize,
    },
}
