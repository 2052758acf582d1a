//! Copies of arrays into and out of message memory by one thread in Rust, beside memcpy.

use std::hint::black_box;
use std::time::Instant;

use mpjdev_buffer::layout::SECTION_HEADER_LEN;
use mpjdev_buffer::{BufferError, Encoding, ReadBuffer, WriteBuffer};
use mpjdev_engine::pool::HeapPool;

use super::BenchError;
use super::outcome::Sample;

/// Doubles of an array: 1 MiB.
const COUNT: usize = 1 << 17;
/// Turns of each kind of copy, and copies of a turn. The first copy of a turn is not measured: its caches are
/// cold.
const TURNS: usize = 100;
const TIMES: u32 = 16;

/// Limit of the memory of all messages, in octets.
const LIMIT: u64 = 1 << 24;

/// Turns of a write, of a read, and of a memcpy of 1 MiB, in this order.
///
/// # Errors
/// There is no memory.
pub fn measure() -> Result<[Vec<Sample>; 3], BenchError> {
    let error = |error: BufferError| BenchError::Missing(format!("memory of a message: {error}"));
    turns(TURNS).map_err(error)
}

fn turns(count: usize) -> Result<[Vec<Sample>; 3], BufferError> {
    let pool = HeapPool::new(LIMIT);
    let capacity = (SECTION_HEADER_LEN + size_of::<f64>() * COUNT) as i64;
    let mut out = WriteBuffer::new(pool.clone(), capacity, Encoding::NATIVE)?;
    let mut input = ReadBuffer::new(pool.clone(), capacity)?;
    let (from, mut to) = (vec![1.0_f64; COUNT], vec![0.0_f64; COUNT]);
    let mut received = WriteBuffer::new(pool, capacity, Encoding::NATIVE)?;
    received.write(&from)?;
    input.adopt(received.finish()?.clone());
    let mut samples = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..count {
        samples[0].push(turn(|| {
            out.clear();
            out.write(black_box(&from))
        })?);
        samples[1].push(turn(|| {
            input.reset();
            input.read(black_box(&mut to))
        })?);
        samples[2].push(turn(|| {
            black_box(&mut to).copy_from_slice(black_box(&from));
            Ok(())
        })?);
    }
    Ok(samples)
}

/// Nanoseconds of one copy.
fn turn(mut copy: impl FnMut() -> Result<(), BufferError>) -> Result<Sample, BufferError> {
    copy()?;
    let begun = Instant::now();
    for _ in 0..TIMES {
        copy()?;
    }
    let nanos = begun.elapsed().as_nanos() as f64 / f64::from(TIMES);
    Ok(Sample { nanos, ..Sample::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_read_and_memcpy_have_as_many_turns() {
        let samples = turns(2).expect("memory");
        assert_eq!(samples.each_ref().map(Vec::len), [2; 3]);
        assert!(samples.iter().flatten().all(|sample| sample.nanos > 0.0));
    }
}
