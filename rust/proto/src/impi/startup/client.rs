//! The state machine of a client (IMPI 5.6).

use std::collections::VecDeque;

use byteorder::{BigEndian, ByteOrder};
use bytes::Bytes;
use thiserror::Error;

use super::layout::{
    AUTH_KEY, AUTH_NONE, CHDR_LEN, CLIENTS_MAX, CMD_LEN, COLL_TOTAL_MAX, Cmd, CmdError, Command, IMPI_LEN,
    Label, SERVER_AUTH_LEN, int4s,
};
use super::reader::Reader;
use super::settings::{Settings, SettingsError};
use super::tables::{Gathering, Reply, TableError, Tables};
use crate::impi::Dialect;

/// A client's end of the connection to the startup server.
///
/// The calling order: [`poll_output`](Self::poll_output) and [`poll_event`](Self::poll_event) until both
/// return `None`, sending the octets in order; then wait for octets or the end of the stream, pass them to
/// [`handle_octets`](Self::handle_octets) or [`handle_eof`](Self::handle_eof), and begin again. After
/// [`Event::Done`] the server sends nothing. The connection stays open until the job has ended at this
/// client, which calls [`finish`](Self::finish). The driver has the deadlines.
///
/// An error is final: the driver closes the connection, and the job has failed for this client. Every later
/// input returns the same error.
///
/// ```text
///   Auth ----> Join ----> Labels ----> Done ----> Running ----> Finished
///     which      size       14 replies   DONE       finish()
///   (in the draft the machine begins with Join)
/// ```
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    stage: Stage,
    reader: Reader,
    /// The command whose payload is awaited.
    begun: Option<Cmd>,
    /// Labels of [`Label::ALL`] that are answered.
    answered: usize,
    /// The label of the last reply.
    last_label: Label,
    /// Octets of data in the replies so far.
    total_len: usize,
    gathering: Option<Gathering>,
    outputs: VecDeque<Bytes>,
    events: VecDeque<Event>,
    failure: Option<ClientError>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// All clients have joined.
    Joined {
        /// Clients of the job.
        size: u32,
    },
    /// Start-up is complete; the mesh can be built (IMPI 5.8).
    Done(Box<Tables>),
}

/// The stage of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// AUTH is sent.
    Auth,
    /// Its rank is sent; the other clients join.
    Join,
    /// Labels are sent and answered.
    Labels,
    /// DONE is sent.
    Done,
    /// The job runs.
    Running,
    /// FINI is sent.
    Finished,
}

impl Stage {
    /// The likely reason why a server closes the connection at this stage.
    fn hint(self) -> &'static str {
        match self {
            Stage::Auth => "during authentication; it may have no method in common with this client",
            Stage::Join => {
                "while this client joined: a wrong key, a rank that is taken or too large, or the job was \
                 aborted"
            }
            Stage::Labels | Stage::Done => "before start-up was done: the job was aborted",
            Stage::Running | Stage::Finished => "while the job runs",
        }
    }
}

/// Why a client has failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClientError {
    /// The server has closed the connection too early.
    #[error("the startup server has closed the connection {}", .stage.hint())]
    Closed {
        /// The stage of this client.
        stage: Stage,
    },
    /// The server sent an invalid command.
    #[error("the startup server's command cannot be read: {0}")]
    Cmd(#[from] CmdError),
    /// A method was chosen that this client does not offer.
    #[error(
        "the startup server asks for authentication method {which}; this client offers mask {offered_mask:#x}"
    )]
    Method {
        /// The method.
        which: i32,
        /// The methods offered.
        offered_mask: u32,
    },
    /// A command that is not permitted at this stage.
    #[error("the startup server sends {command} out of turn ({stage:?})")]
    Unexpected {
        /// The command.
        command: Command,
        /// The stage of this client.
        stage: Stage,
    },
    /// A command with a wrong length.
    #[error("the startup server sends {command} with {len} octets")]
    Len {
        /// The command.
        command: Command,
        /// Its length.
        len: u32,
    },
    /// More data than any job needs.
    #[error("the startup server sends {total_len} octets of data, at most {COLL_TOTAL_MAX} are taken")]
    TooMuch {
        /// The octets announced.
        total_len: usize,
    },
    /// The size of the job does not include this client's rank, or is too large.
    #[error("this client has rank {rank}, the job has {size} clients")]
    Size {
        /// This client's rank.
        rank: u32,
        /// The size.
        size: i32,
    },
    /// A reply to another label than the expected one.
    #[error("the startup server answers {label}, the turn is {expected}'s")]
    Label {
        /// The label of the reply.
        label: Label,
        /// The next label.
        expected: Label,
    },
    /// Replies whose labels do not ascend.
    #[error("the startup server answers {label} after {before}")]
    Order {
        /// The label of the reply.
        label: Label,
        /// The one before.
        before: Label,
    },
    /// A reply that leaves out this client.
    #[error("{label}: client_mask {mask:#x} leaves out this client, {rank}")]
    LeftOut {
        /// The label of the reply.
        label: Label,
        /// Its mask.
        mask: u32,
        /// This client's rank.
        rank: u32,
    },
    /// The replies are inconsistent.
    #[error(transparent)]
    Table(#[from] TableError),
    /// [`Client::finish`] before start-up was done.
    #[error("this client has not started")]
    NotRunning,
}

impl Client {
    /// A client with its first octets queued.
    ///
    /// # Errors
    /// Invalid settings; then nothing may be sent.
    pub fn new(settings: Settings) -> Result<Client, SettingsError> {
        settings.check()?;
        let (stage, first_len) = match settings.dialect {
            Dialect::Final => (Stage::Auth, SERVER_AUTH_LEN),
            Dialect::Draft => (Stage::Join, CMD_LEN),
        };
        let mut client = Client {
            stage,
            reader: Reader::new(first_len),
            begun: None,
            answered: 0,
            last_label: Label::NO_LABEL,
            total_len: 0,
            gathering: None,
            outputs: VecDeque::from([Cmd::emit(Command::Auth, &[&settings.auth_payload()])]),
            events: VecDeque::new(),
            failure: None,
            settings,
        };
        if stage == Stage::Join {
            client.send_rank();
        }
        Ok(client)
    }

    /// Its stage.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Octets to send, in order.
    pub fn poll_output(&mut self) -> Option<Bytes> {
        self.outputs.pop_front()
    }

    /// The next event, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Octets of the server were received, in any pieces.
    ///
    /// # Errors
    /// The server violates the protocol, or the clients' labels are inconsistent.
    pub fn handle_octets(&mut self, mut octets: &[u8]) -> Result<(), ClientError> {
        self.alive()?;
        while self.stage != Stage::Finished
            && let Some(piece) = self.reader.take(&mut octets)
        {
            if let Err(error) = self.handle_piece(&piece) {
                return self.fail(error);
            }
        }
        Ok(())
    }

    /// The server has closed its stream.
    ///
    /// # Errors
    /// The job has not ended.
    pub fn handle_eof(&mut self) -> Result<(), ClientError> {
        self.alive()?;
        match self.stage {
            Stage::Finished => Ok(()),
            stage => self.fail(ClientError::Closed { stage }),
        }
    }

    /// Queues FINI: all processes of this client have finished. Then the driver closes the connection (IMPI
    /// 5.8). A second call has no effect.
    ///
    /// # Errors
    /// Start-up is not complete, or has failed; then the driver only closes the connection.
    pub fn finish(&mut self) -> Result<(), ClientError> {
        self.alive()?;
        match self.stage {
            Stage::Finished => {}
            Stage::Running => {
                self.outputs.push_back(Cmd::emit(Command::Fini, &[]));
                self.stage = Stage::Finished;
            }
            _ => return Err(ClientError::NotRunning),
        }
        Ok(())
    }

    fn alive(&self) -> Result<(), ClientError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn fail(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.outputs.clear();
        self.failure = Some(error.clone());
        Err(error)
    }

    fn handle_piece(&mut self, piece: &[u8]) -> Result<(), ClientError> {
        // By default a command follows.
        self.reader.want(CMD_LEN);
        if let Some(cmd) = self.begun.take() {
            return self.handle_payload(cmd.command, piece);
        }
        let octets = *piece.first_chunk().expect("as long as was asked for");
        if self.stage == Stage::Auth {
            let [which, _len] = int4s(octets);
            return self.handle_method(which);
        }
        let cmd = Cmd::parse(octets)?;
        self.check(cmd)?;
        self.reader.want(cmd.len as usize);
        self.begun = Some(cmd);
        Ok(())
    }

    /// Checks that a command is permitted, before its payload is received.
    fn check(&mut self, cmd: Cmd) -> Result<(), ClientError> {
        let Cmd { command, len } = cmd;
        let data_len = match (self.stage, command) {
            (Stage::Join, Command::Impi) if len as usize == IMPI_LEN => 0,
            (Stage::Labels | Stage::Done, Command::Coll) if len as usize >= CHDR_LEN => {
                len as usize - CHDR_LEN
            }
            // LAM skips its payload (IMPI 5.6).
            (Stage::Done, Command::Done) => len as usize,
            (Stage::Join, Command::Impi) | (Stage::Labels | Stage::Done, Command::Coll) => {
                return Err(ClientError::Len { command, len });
            }
            (stage, _) => return Err(ClientError::Unexpected { command, stage }),
        };
        let total_len = self.total_len.saturating_add(data_len);
        if total_len > COLL_TOTAL_MAX {
            return Err(ClientError::TooMuch { total_len });
        }
        self.total_len = total_len;
        Ok(())
    }

    /// IMPI_Server_auth. The server does not confirm success (IMPI 5.2). Its length field is ignored: the
    /// method determines what follows, and LAM sends 8 with any method.
    fn handle_method(&mut self, which: i32) -> Result<(), ClientError> {
        let offered_mask = self.settings.auth.mask();
        let payload = match which {
            AUTH_NONE if self.settings.auth.none => None,
            AUTH_KEY if self.settings.auth.key.is_some() => Some(self.settings.key_payload()),
            _ => return Err(ClientError::Method { which, offered_mask }),
        };
        self.outputs.extend(payload);
        self.send_rank();
        self.stage = Stage::Join;
        Ok(())
    }

    fn handle_payload(&mut self, command: Command, payload: &[u8]) -> Result<(), ClientError> {
        match command {
            Command::Impi => self.handle_size(payload),
            Command::Coll => self.handle_reply(payload),
            _ => self.handle_done(),
        }
    }

    fn handle_size(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        let size = BigEndian::read_i32(payload);
        let rank = self.settings.rank;
        match u32::try_from(size) {
            Ok(size) if rank < size && size <= CLIENTS_MAX => {
                self.gathering = Some(Gathering::new(self.settings.dialect, size));
                self.events.push_back(Event::Joined { size });
                self.stage = Stage::Labels;
                self.send_labels();
                Ok(())
            }
            _ => Err(ClientError::Size { rank, size }),
        }
    }

    fn handle_reply(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        let (head, data) = payload.split_first_chunk().expect("checked");
        let [label, mask] = int4s(*head);
        let (label, mask, rank) = (Label(label), mask as u32, self.settings.rank);
        if label <= self.last_label {
            return Err(ClientError::Order { label, before: self.last_label });
        }
        self.last_label = label;
        // Other clients may send labels that are unknown here (IMPI 5.4).
        if label.name().is_none() {
            return Ok(());
        }
        match Label::ALL.get(self.answered) {
            Some(expected) if *expected == label => {}
            Some(expected) => return Err(ClientError::Label { label, expected: *expected }),
            None => return Err(ClientError::Order { label, before: Label::P_PID }),
        }
        if mask & 1 << rank == 0 {
            return Err(ClientError::LeftOut { label, mask, rank });
        }
        if let Some(gathering) = &mut self.gathering {
            gathering.handle_reply(Reply { label, mask, data })?;
        }
        self.answered += 1;
        if !self.settings.pipelines {
            self.send_next();
        }
        if self.answered == Label::ALL.len() {
            self.stage = Stage::Done;
        }
        Ok(())
    }

    fn handle_done(&mut self) -> Result<(), ClientError> {
        if let Some(gathering) = self.gathering.take() {
            self.events.push_back(Event::Done(Box::new(gathering.finish()?)));
        }
        self.stage = Stage::Running;
        Ok(())
    }

    fn send_rank(&mut self) {
        self.outputs.push_back(Cmd::emit(Command::Impi, &[&self.settings.rank.to_be_bytes()]));
    }

    fn send_labels(&mut self) {
        if self.settings.pipelines {
            self.outputs.extend(Label::ALL.map(|label| self.settings.coll(label)));
            self.outputs.push_back(Cmd::emit(Command::Done, &[]));
        } else {
            self.send_next();
        }
    }

    /// The label after the last answered one, or DONE.
    fn send_next(&mut self) {
        self.outputs.push_back(match Label::ALL.get(self.answered) {
            Some(label) => self.settings.coll(*label),
            None => Cmd::emit(Command::Done, &[]),
        });
    }
}
