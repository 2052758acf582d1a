//! The COLL algorithm (IMPI 5.4): concatenate the data of all clients under the same label.

use std::collections::VecDeque;

use bytes::Bytes;

use super::fault::Fault;
use crate::impi::startup::layout::{COLL_TOTAL_MAX, Cmd, Command, Label};

/// Most labels of a client. A choice of ours; the specification has 14.
const LABELS_MAX: u32 = 1024;

/// The labels that are not complete.
///
/// Each client has its pending items: labels with data, then DONE, which is larger than every label. When
/// every client has one, the smallest is complete.
#[derive(Debug)]
pub(super) struct Exchange {
    clients: Vec<ClientData>,
    /// Octets of data admitted so far, of all clients.
    total_len: usize,
}

#[derive(Debug, Default)]
struct ClientData {
    items: VecDeque<(Label, Bytes)>,
    last_label: Label,
    labels: u32,
    is_done: bool,
}

/// A message to all clients.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Emission {
    /// A whole COLL message.
    Coll(Bytes),
    /// All clients are done; the last message.
    Done,
}

impl Exchange {
    pub(super) fn new(clients: u32) -> Exchange {
        Exchange { clients: (0..clients).map(|_| ClientData::default()).collect(), total_len: 0 }
    }

    /// Admits the data that a client announces, before they are received.
    pub(super) fn admit(&mut self, rank: u32, data_len: usize) -> Result<(), Fault> {
        let client = &mut self.clients[rank as usize];
        let total_len = self.total_len.saturating_add(data_len);
        if total_len > COLL_TOTAL_MAX {
            return Err(Fault::TooMuch { total_len });
        }
        if client.labels == LABELS_MAX {
            return Err(Fault::TooManyLabels { max: LABELS_MAX });
        }
        client.labels += 1;
        self.total_len = total_len;
        Ok(())
    }

    /// Adds a label of a client; labels ascend.
    pub(super) fn push(&mut self, rank: u32, label: Label, data: Bytes) -> Result<(), Fault> {
        let client = &mut self.clients[rank as usize];
        if label <= client.last_label {
            return Err(Fault::Label { label, before: client.last_label });
        }
        client.last_label = label;
        client.items.push_back((label, data));
        Ok(())
    }

    pub(super) fn done(&mut self, rank: u32) {
        self.clients[rank as usize].is_done = true;
    }

    pub(super) fn is_done(&self, rank: u32) -> bool {
        self.clients[rank as usize].is_done
    }

    /// The clients for which the others wait.
    pub(super) fn waiting_for(&self) -> Vec<u32> {
        let silent =
            (0..).zip(&self.clients).filter(|(_, client)| client.items.is_empty() && !client.is_done);
        silent.map(|(rank, _)| rank).collect()
    }

    /// The next complete label.
    pub(super) fn pop(&mut self) -> Option<Emission> {
        if !self.clients.iter().all(|client| client.is_done || !client.items.is_empty()) {
            return None;
        }
        let least =
            self.clients.iter().filter_map(|client| client.items.front()).map(|(label, _)| *label).min();
        let Some(label) = least else { return Some(Emission::Done) };
        let mut mask = 0u32;
        let mut parts = Vec::new();
        for (rank, client) in self.clients.iter_mut().enumerate() {
            if client.items.front().is_some_and(|(own, _)| *own == label)
                && let Some((_, data)) = client.items.pop_front()
            {
                mask |= 1 << rank;
                parts.push(data);
            }
        }
        let (label, mask) = (label.0.to_be_bytes(), mask.to_be_bytes());
        let payload: Vec<&[u8]> =
            [&label[..], &mask].into_iter().chain(parts.iter().map(|part| &part[..])).collect();
        Some(Emission::Coll(Cmd::emit(Command::Coll, &payload)))
    }
}
