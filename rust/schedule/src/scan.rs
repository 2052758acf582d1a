//! Reduction of the vectors of all ranks up to each one.

use crate::group::Group;
use crate::schedule::Schedule;
use crate::step::Run;

/// Combines the vectors of `count` elements of ranks 0 to this one, in rank order and as whole vectors.
///
/// After the step with distance `d` a rank has combined the `2 d` ranks that end with it (Hillis and Steele).
pub fn scan(group: Group, count: usize) -> Schedule {
    let Group { rank, size } = group;
    assert!(rank < size, "{group:?}");
    let vector = Run { start: 0, len: count };
    let mut schedule = Schedule::new(count, vec![vector], vec![vector]);
    for distance in group.distances() {
        if rank + distance < size {
            schedule.send(rank + distance, vector);
        }
        if rank >= distance {
            schedule.receive_combine(rank - distance, vector, true);
        }
    }
    schedule
}
