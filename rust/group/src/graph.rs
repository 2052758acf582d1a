//! Graph topologies: the check of their arrays.

use crate::error::TopologyError;

/// Checks a graph on a communicator of `size` ranks. The edges of node i are those from `index[i - 1]` up to
/// `index[i]`. Returns the number of nodes.
///
/// # Errors
/// An index array that decreases or does not end with the number of edges; an edge to no node; more nodes
/// than ranks.
pub fn check(size: i32, index: &[i32], edges: &[i32]) -> Result<i32, TopologyError> {
    let nodes = index.len();
    if nodes as i128 > i128::from(size) {
        return Err(TopologyError::TooLarge { nodes: nodes as i128, size });
    }
    let mut last = 0;
    for (position, &value) in index.iter().enumerate() {
        if value < last {
            return Err(TopologyError::Index { position, value });
        }
        last = value;
    }
    if last as usize != edges.len() {
        return Err(TopologyError::Edges { last, edges: edges.len() });
    }
    let is_node = |node: &i32| (0..nodes as i128).contains(&i128::from(*node));
    match edges.iter().position(|node| !is_node(node)) {
        Some(position) => Err(TopologyError::Node { position, node: edges[position], nodes }),
        None => Ok(nodes as i32),
    }
}
