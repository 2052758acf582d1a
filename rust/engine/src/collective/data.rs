//! The driver of a schedule: a collective operation with data, on memory of this rank.

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_buffer::{BufferError, Encoding, Message, Octets, SectionHeader, Type, sole_section};
use mpjdev_proto::collective::data_tag;
use mpjdev_proto::context::collective;
use mpjdev_schedule::{Run, Schedule, Step};
use mpjdev_sys::scratch::Scratch;
use mpjdev_transport::config::INLINE_MAX;
use mpjdev_transport::wait::WaitControl;

use crate::comm::Comm;
use crate::engine::Engine;
use crate::error::DeviceError;
use crate::operation::{Accept, FastRecv, Mode, SendArgs};
use crate::packet::PacketEngine;
use crate::request::RequestId;

#[cfg(all(test, not(loom)))]
mod tests;

/// Octets that are combined at a time: they stay in the first cache between the copy and its use.
const CHUNK: usize = 4096;

/// Marks the message of a rank that has no vector because the operation has failed: two numbers, this one and
/// the world rank where it failed. Their type is one that the operation does not send.
const FAILED: i64 = 0x6d70_6a66;

/// Combines two vectors of octets: the second becomes the first combined with it if the flag is set, else it
/// combined with the first. Returns false if that has failed.
pub type Combine<'a> = dyn FnMut(&[u8], &mut [u8], bool) -> bool + 'a;

/// The operation of a reduction.
pub struct Reduction<'a> {
    /// Its function.
    pub combine: &'a mut Combine<'a>,
    /// Whether parts of the vectors may be combined one after the other.
    pub is_divisible: bool,
}

impl Reduction<'_> {
    /// Octets that are combined at a time.
    fn chunk(&self, len: usize) -> usize {
        if self.is_divisible { CHUNK } else { len.max(1) }
    }
}

/// The elements that a schedule moves.
#[derive(Debug)]
pub struct Area<'a> {
    /// The memory, at least as long as the schedule's area.
    pub memory: &'a mut Scratch,
    /// The type of the elements.
    pub element: Type,
}

impl Area<'_> {
    fn octets_of(&self, run: Run) -> std::ops::Range<usize> {
        let size = self.element.size();
        run.start * size..(run.start + run.len) * size
    }

    fn octets(&mut self, run: Run) -> &mut [u8] {
        let range = self.octets_of(run);
        &mut self.memory.octets()[range]
    }
}

/// Reverses the octets of each element.
fn swap(octets: &mut [u8], size: usize) {
    if size > 1 {
        octets.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
}

impl Comm {
    /// Runs the steps of an operation on the elements of `area`. All members call it in the same order.
    /// Blocks.
    ///
    /// A message that does not fit, or of another type, and a reduction that fails, are errors of this rank
    /// at the end, and of the ranks that need its vector. The others complete.
    ///
    /// # Errors
    /// A member has failed or finished; an operation on this communicator was abandoned; interrupted, which
    /// abandons the operation; a member is foreign, and nothing was sent; a message did not fit or a
    /// combination failed, here or at a member whose vector this rank needs.
    pub fn run_schedule(
        &self,
        operation: &'static str,
        schedule: &Schedule,
        area: &mut Area<'_>,
        reduction: &mut Reduction<'_>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        if let Some(rank) = self.first_foreign() {
            return Err(DeviceError::Foreign { operation, rank });
        }
        self.check_collectives(false)?;
        let tag = data_tag(self.next_data_operation());
        let mut run = DataRun {
            comm: self,
            tag,
            sends: Vec::new(),
            place: None,
            misfit: None,
            failed_at: None,
            is_over: false,
        };
        let ended = run.steps(schedule, area, reduction, wait_control);
        run.is_over = true;
        if let Err(error) = &ended {
            self.abandon(Some(error));
        }
        let failed = run.failed_at.map(|rank| DeviceError::OperationFailed { rank });
        let misfit = run.misfit.take().or(failed);
        ended.and(misfit.map_or(Ok(()), Err))
    }
}

/// An operation in progress.
struct DataRun<'a> {
    comm: &'a Comm,
    tag: i32,
    /// Sends that are not complete.
    sends: Vec<RequestId>,
    /// Memory of the last message that was received.
    place: Option<Message>,
    /// The first message that this rank could not store.
    misfit: Option<DeviceError>,
    /// The world rank at which a combination, or the receipt of a vector, has failed. This rank sends no
    /// vectors then.
    failed_at: Option<u32>,
    is_over: bool,
}

impl DataRun<'_> {
    fn steps(
        &mut self,
        schedule: &Schedule,
        area: &mut Area<'_>,
        reduction: &mut Reduction<'_>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        for step in &schedule.steps {
            match *step {
                Step::Send { dest, from } => self.send(dest, area, from)?,
                Step::Receive { source, into } => {
                    self.receive(source, area, into, wait_control, &mut |octets, is_foreign, area| {
                        let size = area.element.size();
                        let dest = &mut area.octets(into)[..octets.len()];
                        octets.get_octets(dest);
                        if is_foreign {
                            swap(dest, size);
                        }
                    })?;
                }
                Step::ReceiveCombine { source, into, is_lower } => {
                    let mut is_combined = true;
                    self.receive(source, area, into, wait_control, &mut |octets, is_foreign, area| {
                        is_combined = combine_message(octets, is_foreign, area, into, is_lower, reduction);
                    })?;
                    self.note_combined(is_combined);
                }
                Step::Copy { from, into } => {
                    let (from, at) = (area.octets_of(from), into * area.element.size());
                    area.memory.octets().copy_within(from, at);
                }
            }
        }
        self.wait_for_sends(wait_control)
    }

    /// Notes a message that cannot be stored. This rank has nothing to pass on then.
    fn note_misfit(&mut self, misfit: DeviceError) {
        self.misfit.get_or_insert(misfit);
        self.note_combined(false);
    }

    fn note_combined(&mut self, is_combined: bool) {
        if !is_combined {
            self.failed_at.get_or_insert(self.comm.world_rank());
        }
    }

    fn send(&mut self, dest: u32, area: &mut Area<'_>, from: Run) -> Result<(), DeviceError> {
        let section = match self.failed_at {
            None => SectionHeader { element: area.element, count: from.len },
            Some(_) => failure_section(area.element),
        };
        let len =
            sole_section::primary_len(section).map_err(|error| self.damaged(self.comm.rank(), error))?;
        let slab = self.comm.source().take((MESSAGE_OVERHEAD + len).max(INLINE_MAX))?;
        let mut message = Message::from_empty_slab(slab);
        message.write_sole_section(section, |place| {
            match self.failed_at {
                None => place.put_octets(area.octets(from)),
                Some(rank) => put_failure(place, section.element, rank),
            }
            Ok::<(), DeviceError>(())
        })?;
        let world = self.comm.all_members()[dest as usize];
        let context = collective(self.comm.context());
        let args =
            SendArgs { message: &message, member: dest, world, context, tag: self.tag, mode: Mode::Standard };
        let sent = self.comm.engine().send_collective(args, false)?;
        self.sends.extend(sent);
        Ok(())
    }

    /// Receives a message and passes its elements on, with whether they have the other byte order.
    fn receive(
        &mut self,
        source: u32,
        area: &mut Area<'_>,
        into: Run,
        wait_control: &mut dyn WaitControl,
        store: &mut dyn FnMut(Octets<'_>, bool, &mut Area<'_>),
    ) -> Result<(), DeviceError> {
        let section = SectionHeader { element: area.element, count: into.len };
        let capacity = sole_section::primary_len(section).map_err(|error| self.damaged(source, error))?;
        let capacity = capacity.max(FAILURE_MAX);
        let received = match self.receive_message(source, capacity, wait_control) {
            Ok(message) => message,
            Err(error @ (DeviceError::Truncated { .. } | DeviceError::Damaged { .. })) => {
                self.note_misfit(error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let is_foreign = received.encoding() != Encoding::NATIVE;
        match received.sole_section(area.element, into.len) {
            Ok((_, octets)) if self.failed_at.is_none() => store(octets, is_foreign, area),
            Ok(_) => {}
            Err(error) => {
                if let Some(rank) = failure(&received, area.element) {
                    self.failed_at.get_or_insert(rank);
                    return Ok(());
                }
                self.note_misfit(self.damaged(source, error));
            }
        }
        self.place = Some(received).filter(|message| message.first_slab().is_exclusive());
        Ok(())
    }

    /// The error of a message that is not one section that fits.
    fn damaged(&self, source: u32, error: BufferError) -> DeviceError {
        let source_rank = self.comm.all_members()[source as usize];
        match error {
            BufferError::TooLong { needed, capacity } => DeviceError::Truncated {
                needed: needed as usize,
                capacity: capacity as usize,
                source_rank,
                tag: self.tag,
            },
            error => DeviceError::Damaged { error, source_rank, tag: self.tag },
        }
    }

    fn receive_message(
        &mut self,
        source: u32,
        capacity: usize,
        wait_control: &mut dyn WaitControl,
    ) -> Result<Message, DeviceError> {
        let comm = self.comm;
        if let Some(packet) = comm.packet_engine() {
            let selector = comm.collective_selection(source, self.tag).selector;
            if self.place.is_none() {
                self.place = comm.source().take(INLINE_MAX).ok().map(Message::from_empty_slab);
            }
            match PacketEngine::try_recv_spinning(packet, selector, capacity, Accept::Packed, &mut self.place)
            {
                FastRecv::Done(_) => return self.place.take().ok_or(DeviceError::NoSuchRequest),
                FastRecv::Failed(error) => return Err(*error),
                _ => {}
            }
        }
        let id = comm.receive_collective(source, self.tag, capacity, false)?;
        let mut posted = Posted { comm, id, is_done: false };
        loop {
            let tested = comm.test(id);
            posted.is_done = !matches!(tested, Ok(None));
            if let Some(done) = tested? {
                return done.message.ok_or(DeviceError::NoSuchRequest);
            }
            if let Some(error) = comm.check_abandonment()? {
                return Err(error);
            }
            comm.wait_collective(&[id], wait_control)?;
        }
    }

    fn wait_for_sends(&mut self, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        while let Some(id) = self.sends.last().copied() {
            if self.comm.test(id)?.is_some() {
                self.sends.pop();
                continue;
            }
            if let Some(error) = self.comm.check_abandonment()? {
                return Err(error);
            }
            self.comm.wait_collective(&[id], wait_control)?;
        }
        Ok(())
    }
}

impl Drop for DataRun<'_> {
    fn drop(&mut self) {
        self.sends.iter().for_each(|id| self.comm.detach(*id));
        // A panic of the combination: the others must not wait for this rank.
        if !self.is_over {
            self.comm.abandon(None);
        }
    }
}

/// A posted receive. One of an operation that has failed must not stay posted: it would take later messages.
struct Posted<'a> {
    comm: &'a Comm,
    id: RequestId,
    is_done: bool,
}

impl Drop for Posted<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = self.comm.cancel(self.id);
            self.comm.detach(self.id);
        }
    }
}

/// Combines the elements of a message with the first ones of a run.
fn combine_message(
    octets: Octets<'_>,
    is_foreign: bool,
    area: &mut Area<'_>,
    into: Run,
    is_lower: bool,
    reduction: &mut Reduction<'_>,
) -> bool {
    let (size, len) = (area.element.size(), reduction.chunk(octets.len()));
    let into = &mut area.octets(into)[..octets.len()];
    let (mut short, mut long);
    let chunk: &mut [u8] = if len <= CHUNK {
        short = [0; CHUNK];
        &mut short
    } else {
        long = vec![0; len];
        &mut long
    };
    (0..).step_by(len).zip(into.chunks_mut(len)).all(|(at, into)| {
        let from = &mut chunk[..into.len()];
        octets.range(at, from.len()).get_octets(from);
        if is_foreign {
            swap(from, size);
        }
        (reduction.combine)(from, into, is_lower)
    })
}

/// Octets of primary payload of the message of a failed reduction.
const FAILURE_MAX: usize = 24;

/// The section of the message of a failed reduction, which is no vector of these elements.
fn failure_section(element: Type) -> SectionHeader {
    let element = if element == Type::Long { Type::Int } else { Type::Long };
    SectionHeader { element, count: 2 }
}

fn put_failure(place: Octets<'_>, element: Type, rank: u32) {
    match element {
        Type::Int => place.put_slice(Encoding::NATIVE, &[FAILED as i32, rank.cast_signed()]),
        _ => place.put_slice(Encoding::NATIVE, &[FAILED, i64::from(rank)]),
    }
}

/// The world rank at which the reduction of this message has failed; `None` if it is another message.
fn failure(message: &Message, element: Type) -> Option<u32> {
    let section = failure_section(element);
    let (count, octets) = message.sole_section(section.element, section.count).ok()?;
    let mut numbers = [0_i64; 2];
    match section.element {
        Type::Int => {
            let mut ints = [0_i32; 2];
            octets.get_slice(message.encoding(), &mut ints);
            numbers = ints.map(i64::from);
        }
        _ => octets.get_slice(message.encoding(), &mut numbers),
    }
    (count == 2 && numbers[0] == FAILED).then(|| u32::try_from(numbers[1]).ok())?
}
