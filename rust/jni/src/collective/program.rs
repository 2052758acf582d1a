//! The program's side of a collective operation: arrays, an operation that is perhaps a function in Java, and
//! waits that an interrupt ends.

use std::sync::Arc;

use mpjdev_buffer::{Message, Octets, Type};
use mpjdev_engine::collective::{AheadOf, BlockPart, Caller};
use mpjdev_engine::{Comm, DeviceError, Status};
use mpjdev_schedule::{Choices, Schedule, UniformCall};

use crate::array::pipeline::Ahead;
use crate::boundary::Env;
use crate::comm::Answer;
use crate::direct::part::ELEMENTS;
use crate::error::Failure;

use super::blocks::Blocks;

/// Combines two vectors of octets, as [`Caller::combine`].
pub(super) type Combine<'a> = dyn FnMut(&mut Env, &[u8], &mut [u8], bool) -> bool + 'a;

/// The operation of a reduction.
pub(super) struct Reduction<'a> {
    pub(super) combine: &'a mut Combine<'a>,
    /// Whether it may be applied to parts of the vectors.
    pub(super) is_divisible: bool,
}

struct Program<'a, 'r> {
    env: &'a mut Env,
    sent: &'a Blocks<'a>,
    received: &'a Blocks<'a>,
    element: Type,
    reduction: Option<Reduction<'r>>,
    /// Why a method has failed.
    failure: Option<Failure>,
}

/// The steps of a call.
pub(super) enum Plan<'a> {
    /// Those of a call whose blocks have one length.
    Uniform(UniformCall, Choices<'a>),
    /// Those of a call whose blocks have lengths of their own.
    Varying(Schedule),
}

/// Runs a call on these blocks.
pub(super) fn run(
    env: &mut Env,
    comm: &Arc<Comm>,
    (name, plan): (&'static str, Plan<'_>),
    (sent, received): (&Blocks<'_>, &Blocks<'_>),
    element: Type,
    reduction: Option<Reduction<'_>>,
) -> Answer<()> {
    let mut program = Program { env, sent, received, element, reduction, failure: None };
    let ended = match plan {
        Plan::Uniform(call, choices) => comm.run_call(name, call, &choices, &mut program),
        Plan::Varying(schedule) => comm.run_schedule(name, &schedule, &mut program),
    };
    match program.failure {
        Some(failure) => Err(failure),
        None => Ok(ended?),
    }
}

impl Program<'_, '_> {
    fn note<T>(&mut self, answer: Answer<T>) -> bool {
        let failure = answer.err();
        let is_done = failure.is_none();
        self.failure = self.failure.take().or(failure);
        is_done
    }
}

impl Caller for Program<'_, '_> {
    fn element(&self) -> Type {
        self.element
    }

    fn input_is_divisible(&self, block: usize) -> bool {
        self.sent.is_divisible(block)
    }

    fn output_is_divisible(&self, block: usize) -> bool {
        self.received.is_divisible(block)
    }

    fn input_is_run(&self) -> bool {
        self.sent.is_run
    }

    fn output_is_run(&self) -> bool {
        self.received.is_run
    }

    fn is_in_place(&mut self) -> bool {
        self.sent.array.is_same(self.env, self.received.array)
    }

    fn pack(&mut self, part: BlockPart, place: Octets<'_>) -> bool {
        let packed = self.sent.part(part).put(self.env, place);
        self.note(packed)
    }

    fn pack_ahead(&mut self, part: BlockPart, ahead: AheadOf<'_>, send_packed: &dyn Fn()) -> bool {
        let AheadOf { message, packer, by_reference } = ahead;
        let place = Octets::new(message.first_slab().words(), ELEMENTS, part.len * self.element.size());
        let ahead = Ahead::new(place, ELEMENTS, packer, by_reference, send_packed);
        let packed = self.sent.part(part).pack(self.env, ahead);
        self.note(packed)
    }

    fn store(&mut self, part: BlockPart, octets: Octets<'_>, is_foreign: bool) -> bool {
        let stored = self.received.part(part).store(self.env, part.len, octets, is_foreign);
        self.note(stored)
    }

    fn store_begun(&mut self, part: BlockPart, comm: &Comm, message: &mut Message, status: &Status) -> bool {
        let stored = self.received.part(part).take_begun(self.env, comm, message, status);
        self.note(stored)
    }

    fn combine(&mut self, from: &[u8], into: &mut [u8], is_lower: bool) -> bool {
        let Some(reduction) = &mut self.reduction else { return true };
        (reduction.combine)(self.env, from, into, is_lower)
    }

    fn combines_parts(&self) -> bool {
        self.reduction.as_ref().is_none_or(|reduction| reduction.is_divisible)
    }

    fn keep_waiting(&mut self) -> bool {
        self.env.may_wait()
    }

    fn take_error(&mut self) -> Option<DeviceError> {
        self.failure.as_ref().and_then(Failure::device_error)
    }
}
