//! Measuring loops of a Rust rank, one for each case.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mpjdev_buffer::layout::SECTION_HEADER_LEN;
use mpjdev_buffer::{Encoding, Message, ReadBuffer, SlabSource, WriteBuffer};
use mpjdev_engine::{Comm, Mode, RecvFrom, Uninterruptible};

use super::collective_calls::CollectiveCalls;
use super::outcome::median;
use super::protocol::{Case, RunCommand, window};
use super::rank::RankError;
use super::sleeps;

type Done = Result<(), RankError>;

const TAG: i32 = 1;
/// Computing time of the receiver of a window. A window is sent in a small part of it.
const BUSY: Duration = Duration::from_micros(200);
/// Limit of the trips of a median.
const TIMED_MAX: u64 = 1 << 16;

/// Results of a case beside its time.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaseResult {
    /// Nanoseconds of the measured part, if that is not the whole run.
    pub nanos: Option<f64>,
    /// As [`Answer::extra`](super::protocol::Answer).
    pub extra: f64,
}

/// Numbers of the messages of two ranks, from which their contents are derived.
#[derive(Clone, Copy, Debug, Default)]
struct Contents {
    /// Number of messages written and read.
    written: u64,
    read: u64,
}

/// Element `at` of message `number` of `rank`: a whole number, which doubles represent exactly.
fn element(rank: u32, number: u64, at: usize) -> f64 {
    (number * 1_000_003 % (1 << 40) + 7 * at as u64 + u64::from(rank)) as f64
}

impl Contents {
    /// Fills the array with the next message of `me`.
    fn fill(&mut self, me: u32, array: &mut [f64]) {
        let number = self.written;
        array.iter_mut().enumerate().for_each(|(at, place)| *place = element(me, number, at));
        self.written += 1;
    }

    /// Checks that the array is the next message of `peer`.
    fn check(&mut self, peer: u32, array: &[f64]) -> Done {
        let number = self.read;
        self.read += 1;
        let wrong = array.iter().enumerate().find(|(at, found)| **found != element(peer, number, *at));
        match wrong {
            None => Ok(()),
            Some((at, found)) => Err(RankError::Content(format!(
                "message {number} of rank {peer} has wrong contents: element {at} of {} is {found}, not {}",
                array.len(),
                element(peer, number, at)
            ))),
        }
    }
}

/// A rank with its array and buffers, which it keeps between commands.
pub struct MeasuredRank {
    world: Comm,
    source: Arc<dyn SlabSource>,
    array: Vec<f64>,
    buffers: Option<(WriteBuffer, ReadBuffer)>,
    /// The collective call of the last command that had one.
    collective: Option<CollectiveCalls>,
    /// Contents, if each message has its own.
    contents: Option<Contents>,
}

impl MeasuredRank {
    /// A rank without buffers. With `checks` every message has different contents, which are checked.
    pub fn new(world: Comm, source: Arc<dyn SlabSource>, checks: bool) -> MeasuredRank {
        let contents = checks.then(Contents::default);
        MeasuredRank { world, source, array: Vec::new(), buffers: None, collective: None, contents }
    }

    /// The communicator of all ranks.
    pub fn world(&self) -> &Comm {
        &self.world
    }

    /// Allocates the buffers of a command and writes a message, or allocates the arrays of a collective call.
    ///
    /// # Errors
    /// There is no memory, or this contestant does not have the call.
    pub fn prepare(&mut self, command: RunCommand) -> Done {
        if let Case::Collective(call) = command.case {
            if !self.collective.as_ref().is_some_and(|calls| calls.are(call, command.octets)) {
                self.collective = Some(CollectiveCalls::new(call, command.octets, &self.world)?);
            }
            return Ok(());
        }
        let count = usize::try_from(command.octets / 8).unwrap_or(usize::MAX);
        if self.array.len() == count && self.buffers.is_some() {
            return Ok(());
        }
        self.array = vec![1.0; count];
        let capacity = (SECTION_HEADER_LEN + 8 * count) as i64;
        self.buffers = None;
        let mut out = WriteBuffer::new(self.source.clone(), capacity, Encoding::NATIVE)?;
        out.write(&self.array)?;
        self.buffers = Some((out, ReadBuffer::new(self.source.clone(), capacity)?));
        Ok(())
    }

    /// Runs a case `times` times.
    ///
    /// # Errors
    /// Communication fails, or this contestant does not have the case.
    pub fn run(&mut self, case: Case, times: u64) -> Result<CaseResult, RankError> {
        if self.contents.is_some()
            && !matches!(case, Case::Arrays | Case::Direct | Case::RateArrays | Case::RateDirect)
        {
            return Err(RankError::Command(format!("{case} is not checked")));
        }
        match case {
            // Rust has no call that sends an array without a buffer.
            Case::Arrays | Case::Direct | Case::Mpi => self.arrays(times)?,
            Case::Timed => return self.timed(times),
            Case::Buffers => self.buffers(times)?,
            Case::RateArrays | Case::RateDirect => self.rate(times, true)?,
            Case::RateBuffers => self.rate(times, false)?,
            Case::RateRequests | Case::RateMpi => self.rate_requests(times)?,
            Case::Ring => self.ring(times)?,
            Case::Alltoall => self.alltoall(times)?,
            Case::Busy => return self.busy(times),
            Case::Strided
            | Case::StridedDirect
            | Case::Random
            | Case::RandomDirect
            | Case::Sum
            | Case::SumDirect
            | Case::Column
            | Case::Indexed
            | Case::Objects
            | Case::ObjectsMpi
            | Case::Serial
            | Case::Garbage
            | Case::GarbageDirect
            | Case::GarbageMpi
            | Case::SendCompute
            | Case::RecvCompute => {
                return Err(RankError::Command(format!("{case} is measured in Java")));
            }
            Case::Collective(_) => {
                let calls = self.collective.as_mut();
                let calls = calls.ok_or_else(|| RankError::Command(format!("{case} is not prepared")))?;
                return calls.run(&self.world, times);
            }
        }
        Ok(CaseResult::default())
    }

    /// Messages of a window.
    fn window(&self) -> u64 {
        window(8 * self.array.len() as u64)
    }

    fn me(&self) -> i32 {
        self.world.rank() as i32
    }

    fn size(&self) -> i32 {
        self.world.size() as i32
    }

    /// The peer in cases of two ranks; `None` for the idle ranks from 2 on.
    fn other(&self) -> Option<i32> {
        (self.size() > 1 && self.me() < 2).then(|| 1 - self.me())
    }

    fn pair(&mut self) -> Result<(&mut WriteBuffer, &mut ReadBuffer), RankError> {
        let pair = self.buffers.as_mut().ok_or_else(|| RankError::Command("nothing is prepared".into()))?;
        Ok((&mut pair.0, &mut pair.1))
    }

    fn send(&mut self, to: i32) -> Done {
        let message = self.pair()?.0.finish()?.clone();
        self.send_message(&message, to)
    }

    fn send_message(&self, message: &Message, to: i32) -> Done {
        Ok(self.world.send(message, to, TAG, Mode::Standard, &mut Uninterruptible)?)
    }

    fn recv(&mut self, from: i32) -> Done {
        let input = self.pair()?.1;
        let (capacity, spare) = (input.capacity(), input.take_spare());
        let from = RecvFrom { source: Some(from), tag: Some(TAG) };
        let (_, message) = self.world.recv(from, capacity, spare, &mut Uninterruptible)?;
        self.pair()?.1.adopt(message);
        Ok(())
    }

    fn write(&mut self) -> Done {
        let (me, other) = (self.world.rank(), self.other());
        if let Some(contents) = self.contents.as_mut().filter(|_| other.is_some()) {
            contents.fill(me, &mut self.array);
        }
        let Some((out, _)) = &mut self.buffers else { return Ok(()) };
        out.clear();
        Ok(out.write(&self.array)?)
    }

    fn read(&mut self) -> Done {
        let Some((_, input)) = &mut self.buffers else { return Ok(()) };
        input.read(&mut self.array)?;
        match (&mut self.contents, self.world.rank()) {
            (Some(contents), me @ 0..2) => contents.check(1 - me, &self.array),
            _ => Ok(()),
        }
    }

    fn arrays(&mut self, times: u64) -> Done {
        let Some(other) = self.other() else { return Ok(()) };
        for _ in 0..times {
            if self.me() == 0 {
                self.write()?;
                self.send(other)?;
            }
            self.recv(other)?;
            self.read()?;
            if self.me() == 1 {
                self.write()?;
                self.send(other)?;
            }
        }
        Ok(())
    }

    /// Round trips, each timed by rank 0.
    fn timed(&mut self, times: u64) -> Result<CaseResult, RankError> {
        if self.me() != 0 || self.other().is_none() {
            return self.arrays(times).map(|()| CaseResult::default());
        }
        let step = times.div_ceil(TIMED_MAX);
        let mut trips = Vec::with_capacity(TIMED_MAX as usize);
        let mut begin = Instant::now();
        for i in 0..times {
            self.arrays(1)?;
            let end = Instant::now();
            if i % step == 0 {
                trips.push((end - begin).as_nanos() as f64);
            }
            begin = end;
        }
        Ok(CaseResult { nanos: None, extra: median(trips).unwrap_or_default() * times as f64 })
    }

    fn buffers(&mut self, times: u64) -> Done {
        let Some(other) = self.other() else { return Ok(()) };
        let message = self.pair()?.0.finish()?.clone();
        for _ in 0..times {
            if self.me() == 0 {
                self.send_message(&message, other)?;
            }
            self.recv(other)?;
            if self.me() == 1 {
                self.send_message(&message, other)?;
            }
        }
        Ok(())
    }

    /// Windows of messages. The answer is a message of the same length.
    fn rate(&mut self, times: u64, arrays: bool) -> Done {
        let Some(other) = self.other() else { return Ok(()) };
        for _ in 0..times {
            for _ in 0..self.window() {
                match (self.me(), arrays) {
                    (0, true) => {
                        self.write()?;
                        self.send(other)?;
                    }
                    (0, false) => self.send(other)?,
                    _ => {
                        self.recv(other)?;
                        if arrays {
                            self.read()?;
                        }
                    }
                }
            }
            self.answer(other)?;
        }
        Ok(())
    }

    /// Windows of messages that are started first and waited for together.
    fn rate_requests(&mut self, times: u64) -> Done {
        let Some(other) = self.other() else { return Ok(()) };
        let (capacity, from) = (self.pair()?.1.capacity(), RecvFrom { source: Some(other), tag: Some(TAG) });
        let message = self.pair()?.0.finish()?.clone();
        for _ in 0..times {
            let mut started = Vec::with_capacity(self.window() as usize);
            for _ in 0..self.window() {
                if self.me() == 0 {
                    started.extend(self.world.isend(&message, other, TAG, Mode::Standard)?);
                } else {
                    started.push(self.world.irecv(from, capacity, None)?);
                }
            }
            for id in started {
                self.world.wait(id, None, &mut Uninterruptible)?;
            }
            self.answer(other)?;
        }
        Ok(())
    }

    /// Sends or receives the answer to a window.
    fn answer(&mut self, other: i32) -> Done {
        let checks = self.contents.is_some();
        if self.me() != 0 {
            if checks {
                self.write()?;
            }
            return self.send(other);
        }
        self.recv(other)?;
        if checks { self.read() } else { Ok(()) }
    }

    /// Windows of messages to a rank that computes while they are sent. Only the time of sending is measured.
    /// The second result is the number of sleeps of the receiver's other threads meanwhile.
    fn busy(&mut self, times: u64) -> Result<CaseResult, RankError> {
        let Some(other) = self.other() else { return Ok(CaseResult::default()) };
        let (mut sending, mut slept) = (Duration::ZERO, 0);
        for _ in 0..times {
            if self.me() == 0 {
                self.recv(other)?;
                let begin = Instant::now();
                for _ in 0..self.window() {
                    self.send(other)?;
                }
                sending += begin.elapsed();
            } else {
                self.send(other)?;
                let (begin, before) = (Instant::now(), sleeps::of_others()?);
                while begin.elapsed() < BUSY {
                    std::hint::spin_loop();
                }
                slept += sleeps::of_others()?.saturating_sub(before);
                for _ in 0..self.window() {
                    self.recv(other)?;
                }
            }
        }
        let nanos = sending.as_nanos() as f64;
        Ok(CaseResult { nanos: (self.me() == 0).then_some(nanos), extra: slept as f64 })
    }

    fn ring(&mut self, times: u64) -> Done {
        let (me, size) = (self.me(), self.size());
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        for _ in 0..times {
            if me == 0 {
                self.write()?;
                self.send(next)?;
            }
            self.recv(before)?;
            self.read()?;
            if me != 0 {
                self.write()?;
                self.send(next)?;
            }
        }
        Ok(())
    }

    /// Messages between all pairs. Every rank begins with the next rank, so that the load is even.
    fn alltoall(&mut self, times: u64) -> Done {
        let (me, size) = (self.me(), self.size());
        for _ in 0..times {
            let mut pending = Vec::new();
            for step in 1..size {
                self.write()?;
                let message = self.pair()?.0.finish()?.clone();
                pending.extend(self.world.isend(&message, (me + step) % size, TAG, Mode::Standard)?);
            }
            for step in 1..size {
                self.recv((me + size - step) % size)?;
                self.read()?;
            }
            for id in pending {
                self.world.wait(id, None, &mut Uninterruptible)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_contents_are_reported_with_message_and_element() {
        let (mut sent, mut got) = (Contents::default(), Contents::default());
        let mut array = [0.0; 3];
        for _ in 0..3 {
            sent.fill(1, &mut array);
            got.check(1, &array).expect("the same");
        }
        sent.fill(1, &mut array);
        array[2] += 1.0;
        let error = got.check(1, &array).expect_err("another one");
        assert!(
            error.to_string().contains("message 3 of rank 1") && error.to_string().contains("element 2 of 3")
        );
        got.check(1, &array).expect_err("an old one");
        sent.fill(1, &mut array);
        got.check(0, &array).expect_err("of another rank");
    }
}
