//! Barrier whose messages, or entries in slots, arrive while the rank polls: it needs no requests.

use mpjdev_buffer::{Message, SectionHeader, Type};
use mpjdev_proto::collective::{Action, Barrier, Collective};
use mpjdev_transport::wait::WaitControl;

use super::machine_run::{MachineRun, send_unless_finished};
use super::slot_barrier::{Entry, SlotBarrier};
use super::traffic::{capacity_of_ranks, pack, unpack};
use super::{Operation, OperationStage, Way};
use crate::comm::Comm;
use crate::error::DeviceError;
use crate::operation::{Accept, FastRecv};
use crate::packet::PacketEngine;

/// The source and the tag of a message that has not arrived in time.
type Awaited = (u32, i32);

impl Comm {
    /// Runs a barrier in slots. What is left of it becomes an operation when a rank has not entered in time.
    pub(super) fn barrier_in_slots(&self, wait_control: &mut dyn WaitControl) -> Result<(), DeviceError> {
        self.check_next_collective(true)?;
        let polled = Entry::publish(self).and_then(|entry| Ok((entry, entry.poll(self)?)));
        match polled {
            Ok((_, None)) => Ok(()),
            Ok((entry, Some(awaited))) => {
                let way = Way::InSlots(Box::new(SlotBarrier::awaiting(self, entry, awaited)));
                let operation = Operation { comm: self.clone(), way, stage: OperationStage::Started };
                operation.finish(wait_control).map(drop)
            }
            Err(error) => {
                self.abandon(Some(&error));
                Err(error)
            }
        }
    }

    /// Runs a barrier of ranks of this project. What is left of it becomes an operation when a message is not
    /// there in time.
    pub(super) fn barrier_spinning(
        &self,
        engine: &std::sync::Arc<PacketEngine>,
        wait_control: &mut dyn WaitControl,
    ) -> Result<(), DeviceError> {
        self.check_next_collective(true)?;
        let mut machine = Barrier::new(self.place(), self.all_members().len() as u32);
        let mut place = self.state().take_short_memory(&**self.source());
        let rounds = self.barrier_rounds(engine, &mut machine, &mut place);
        drop(place);
        match rounds {
            Ok(None) if machine.ended().is_none() => Ok(()),
            Ok(awaited) => {
                let running = MachineRun::barrier_awaiting(self, machine, awaited)
                    .inspect_err(|error| self.abandon(Some(error)))?;
                let way = Way::Machine(Box::new(running));
                let operation = Operation { comm: self.clone(), way, stage: OperationStage::Started };
                operation.finish(wait_control).map(drop)
            }
            Err(error) => {
                self.abandon(Some(&error));
                Err(error)
            }
        }
    }

    /// Runs rounds until the machine is complete, or has to wait for a message.
    fn barrier_rounds(
        &self,
        engine: &std::sync::Arc<PacketEngine>,
        machine: &mut Barrier,
        place: &mut Option<Message>,
    ) -> Result<Option<Awaited>, DeviceError> {
        while let Some(action) = machine.poll_action() {
            match (action, &mut *place) {
                (Action::Send { dest, tag, octets }, Some(message)) if octets.is_empty() => {
                    message.write_headers_of(SectionHeader { element: Type::Byte, count: 0 });
                    send_unless_finished(self, dest, tag, message, false)?;
                }
                (Action::Send { dest, tag, octets }, _) => {
                    send_unless_finished(self, dest, tag, &pack(self.source(), &octets)?, false)?;
                }
                (Action::Receive { source, tag }, place) => {
                    let capacity = capacity_of_ranks(self.all_members().len());
                    let selector = self.collective_selection(source, tag).selector;
                    let spins = self.config().spins;
                    match PacketEngine::try_recv_yielding(
                        engine,
                        selector,
                        capacity,
                        Accept::Packed,
                        place,
                        spins,
                    ) {
                        FastRecv::Done(_) => {}
                        FastRecv::Failed(error) => return Err(*error),
                        _ => return Ok(Some((source, tag))),
                    }
                    let octets = match place {
                        Some(message) if message.sole_section(Type::Byte, 0).is_err() => {
                            unpack(self.source(), message.clone(), capacity)?
                        }
                        _ => Vec::new(),
                    };
                    machine.handle_received(source, tag, &octets)?;
                    // A message may lie in memory of its sender, which this rank must not write to.
                    *place = None;
                    *place = self.state().take_short_memory(&**self.source());
                }
                _ => return Err(DeviceError::NoSuchRequest),
            }
        }
        Ok(None)
    }
}
