//! The program's side of a collective operation.

use mpjdev_buffer::{Message, Octets, Packer, Type};

use crate::comm::{Comm, Status};
use crate::error::DeviceError;

/// Consecutive elements of one block of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPart {
    /// The block, in the order of the schedule's input or output.
    pub block: usize,
    /// Elements of the block before the part.
    pub skip: usize,
    /// Elements of the part.
    pub len: usize,
}

/// A message that was sent before its elements are packed.
#[derive(Debug)]
pub struct AheadOf<'a> {
    /// The message, in which the headers are written.
    pub message: &'a Message,
    /// Counts the packed octets.
    pub packer: Packer,
    /// Whether this process does not read the message again.
    pub by_reference: bool,
}

/// The blocks, the operation and the waits of a program in a collective operation.
///
/// A method that returns false has failed. The caller knows the reason, and the others get an error.
pub trait Caller {
    /// The type of all elements.
    fn element(&self) -> Type;

    /// Whether parts of this block of the input can be packed.
    fn input_is_divisible(&self, block: usize) -> bool;

    /// Whether parts of this block of the output can be stored.
    fn output_is_divisible(&self, block: usize) -> bool;

    /// Whether the blocks of the input follow each other in one array. A part may then cover several blocks.
    fn input_is_run(&self) -> bool {
        false
    }

    /// Whether the blocks of the output follow each other in one array.
    fn output_is_run(&self) -> bool {
        false
    }

    /// Whether input and output may be the same elements. There are both.
    fn is_in_place(&mut self) -> bool;

    /// Copies elements of the input, in this machine's byte order.
    fn pack(&mut self, part: BlockPart, place: Octets<'_>) -> bool;

    /// Packs a message that was sent before. `send_packed` is called while no array is held.
    fn pack_ahead(&mut self, part: BlockPart, ahead: AheadOf<'_>, send_packed: &dyn Fn()) -> bool;

    /// Stores elements in the output. `is_foreign`: they have the other byte order.
    fn store(&mut self, part: BlockPart, octets: Octets<'_>, is_foreign: bool) -> bool;

    /// Stores the elements of a message that its sender may still pack.
    fn store_begun(&mut self, part: BlockPart, comm: &Comm, message: &mut Message, status: &Status) -> bool;

    /// Combines two vectors of octets: the second becomes the first combined with it if the flag is set, else
    /// it combined with the first.
    fn combine(&mut self, from: &[u8], into: &mut [u8], is_lower: bool) -> bool;

    /// Whether parts of the vectors may be combined one after the other.
    fn combines_parts(&self) -> bool;

    /// Whether to keep waiting.
    fn keep_waiting(&mut self) -> bool;

    /// The error of a method that has returned false; `None` if there is none beyond that.
    fn take_error(&mut self) -> Option<DeviceError> {
        None
    }
}
