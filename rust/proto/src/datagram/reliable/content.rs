//! The content of a packet with a sequence number, without the acknowledgment that it carries: the same in
//! every transmission.

use super::super::extension::{Fragment, Grant, Request};
use super::super::header::{Header, Mode};
use super::super::layout::{CONTEXT_LEN, FRAGMENT_LEN, GRANT_LEN, REQUEST_LEN};
use super::super::packet::Packet;

/// The octets of a message in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// Of the send.
    pub token: u64,
    /// Their offset in the message.
    pub offset: u64,
    /// Their number; 0 in an empty message.
    pub len: u32,
}

/// Header fields and blocks of one sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) mode: Mode,
    pub(super) is_fin: bool,
    pub(super) is_sync: bool,
    /// Whether these are the last octets of the message that are sent without a grant.
    pub(super) is_last: bool,
    pub(super) context_id: u16,
    pub(super) lrank: u16,
    pub(super) tag: i32,
    pub(super) len: u32,
    /// The context that the context id stands for from this packet on.
    pub(super) context: Option<u64>,
    pub(super) block: Block,
    /// Of the send; 0 in packets without a message and in received ones.
    pub(super) token: u64,
}

/// The block that names the message, if one is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    None,
    Request(Request),
    Grant(Grant),
    Fragment(Fragment),
}

impl Block {
    const fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Request(_) => REQUEST_LEN,
            Self::Grant(_) => GRANT_LEN,
            Self::Fragment(_) => FRAGMENT_LEN,
        }
    }
}

impl Content {
    /// An empty packet of this mode.
    pub(super) const fn new(mode: Mode) -> Self {
        Self {
            mode,
            is_fin: false,
            is_sync: false,
            is_last: false,
            context_id: 0,
            lrank: 0,
            tag: 0,
            len: 0,
            context: None,
            block: Block::None,
            token: 0,
        }
    }

    /// A FIN.
    pub(super) const fn fin() -> Self {
        Self { is_fin: true, ..Self::new(Mode::Short) }
    }

    /// The content of a received packet. `None` if it has several blocks, or a mode that this protocol does
    /// not use.
    pub(super) fn of(packet: &Packet) -> Option<Self> {
        let Packet { header, extension } = packet;
        let block = match (extension.request, extension.grant, extension.fragment) {
            (None, None, None) => Block::None,
            (Some(request), None, None) => Block::Request(request),
            (None, Some(grant), None) => Block::Grant(grant),
            (None, None, Some(fragment)) => Block::Fragment(fragment),
            _ => return None,
        };
        let is_sound = match (header.mode, &block) {
            (Mode::Short, Block::None | Block::Request(_))
            | (Mode::Long, Block::Fragment(_))
            | (Mode::RequestSend, Block::Request(_)) => true,
            (Mode::AntiSend, Block::Request(_)) | (Mode::OkToSend | Mode::AntiSendOk, Block::Grant(_)) => {
                header.len == 0
            }
            _ => false,
        };
        is_sound.then_some(Self {
            mode: header.mode,
            is_fin: extension.fin,
            is_sync: extension.sync,
            is_last: false,
            context_id: header.context_id,
            lrank: header.lrank,
            tag: header.tag,
            len: header.len,
            context: extension.context,
            block,
            token: 0,
        })
    }

    /// Writes the content into a packet.
    #[inline]
    pub(super) fn fill(&self, packet: &mut Packet) {
        packet.header = Header {
            numbers: packet.header.numbers,
            mode: self.mode,
            context_id: self.context_id,
            lrank: self.lrank,
            tag: self.tag,
            len: self.len,
        };
        let extension = &mut packet.extension;
        extension.fin = self.is_fin;
        extension.sync = self.is_sync;
        extension.context = self.context;
        match self.block {
            Block::None => {}
            Block::Request(request) => extension.request = Some(request),
            Block::Grant(grant) => extension.grant = Some(grant),
            Block::Fragment(fragment) => extension.fragment = Some(fragment),
        }
    }

    /// The user data of the packet.
    #[inline]
    pub(super) const fn body(&self) -> Option<Body> {
        if self.token == 0 {
            return None;
        }
        let offset = match &self.block {
            Block::Fragment(fragment) => fragment.offset,
            _ => 0,
        };
        Some(Body { token: self.token, offset, len: self.len })
    }

    /// Octets of blocks and user data.
    #[inline]
    pub(super) const fn octets_len(&self) -> usize {
        let context = if self.context.is_some() { CONTEXT_LEN } else { 0 };
        context + self.block.len() + self.len as usize
    }

    /// The fragment, if it is of a message with a grant: its octets can be placed before earlier packets
    /// arrive.
    #[inline]
    pub(super) const fn destination(&self) -> Option<Fragment> {
        match &self.block {
            Block::Fragment(fragment) if fragment.destination_id != 0 => Some(*fragment),
            _ => None,
        }
    }
}
