//! Faults of a connection, and of a job.

use std::fmt;

use thiserror::Error;

use crate::impi::Dialect;
use crate::impi::startup::layout::{COLL_TOTAL_MAX, CmdError, Command, Label};

/// Why a connection is closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// It has ended.
    #[error("the connection ended too early")]
    Closed,
    /// It has not sent its rank in time.
    #[error("it has not joined within {} s", *after_ms as f64 / 1000.0)]
    Silent {
        /// The time limit.
        after_ms: u64,
    },
    /// It sent an invalid command.
    #[error(transparent)]
    Cmd(#[from] CmdError),
    /// A command out of turn.
    #[error("{command} comes out of turn, {}", due(expected))]
    Unexpected {
        /// The command.
        command: Command,
        /// The commands that are permitted.
        expected: &'static [Command],
    },
    /// A command with a wrong length.
    #[error("{command} has a length of {len}")]
    Len {
        /// The command.
        command: Command,
        /// Its length.
        len: u32,
    },
    /// Its AUTH has the length of the other dialect.
    #[error("its AUTH is not that of the dialect {}", dialect.name())]
    OtherDialect {
        /// The server's dialect.
        dialect: Dialect,
    },
    /// No method in common.
    #[error("it offers authentication methods {offered_mask:#x}, none of which is enabled here")]
    NoMethod {
        /// The mask it offers.
        offered_mask: u32,
    },
    /// A wrong key.
    #[error("wrong key")]
    WrongKey,
    /// There is no such rank.
    #[error("there is no rank {rank} among {clients} clients")]
    Rank {
        /// The rank.
        rank: i32,
        /// Clients of the job.
        clients: u32,
    },
    /// Another client has this rank.
    #[error("there is a client of rank {rank} already")]
    RankTaken {
        /// The rank.
        rank: u32,
    },
    /// All clients have joined.
    #[error("the job has all of its {clients} clients")]
    Full {
        /// Clients of the job.
        clients: u32,
    },
    /// Evicted for a new connection, since too many have connected and not joined.
    #[error("closed for a new connection: it had not joined, like {} others", *unjoined - 1)]
    Evicted {
        /// Connections that had not joined, this one among them.
        unjoined: usize,
    },
    /// Labels that do not ascend, or the reserved one.
    #[error("{label} comes after {before}")]
    Label {
        /// The label.
        label: Label,
        /// The one before.
        before: Label,
    },
    /// More labels than any client needs.
    #[error("it sends more than {max} labels")]
    TooManyLabels {
        /// The limit.
        max: u32,
    },
    /// More data than any job needs.
    #[error("with it the clients send {total_len} octets of data, at most {COLL_TOTAL_MAX} are taken")]
    TooMuch {
        /// The octets announced.
        total_len: usize,
    },
}

/// Why a job has failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// A client failed before the job ran.
    #[error("client {rank} failed before the job ran: {fault}")]
    Client {
        /// Its rank.
        rank: u32,
        /// The fault.
        fault: Fault,
    },
    /// Clients have not joined in time.
    #[error("the time to form the job is over, without {missing}")]
    NotFormed {
        /// Those.
        missing: Ranks,
    },
    /// Clients have not sent their labels in time.
    #[error("the time to start the job is over, all wait for {silent}")]
    NotStarted {
        /// Those.
        silent: Ranks,
    },
    /// Clients were lost while the job ran.
    #[error("{}{}", losses(lost), rest(unfinished))]
    Lost {
        /// The lost clients and their faults, in order.
        lost: Vec<(u32, Fault)>,
        /// The clients that have not finished within the grace time.
        unfinished: Ranks,
    },
}

/// Ranks of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks(pub Vec<u32>);

impl fmt::Display for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.0.len() == 1 { "client" } else { "clients" };
        let ranks: Vec<String> = self.0.iter().map(u32::to_string).collect();
        write!(f, "{word} {}", ranks.join(", "))
    }
}

fn due(expected: &[Command]) -> String {
    match expected {
        [] => "all have to wait".to_owned(),
        [one] => format!("{one} is due"),
        [one, ..] => format!("{one} is due or what follows it"),
    }
}

fn losses(lost: &[(u32, Fault)]) -> String {
    let each = lost.iter().map(|(rank, fault)| format!("client {rank} was lost without FINI: {fault}"));
    each.collect::<Vec<_>>().join("; ")
}

fn rest(unfinished: &Ranks) -> String {
    if unfinished.0.is_empty() { String::new() } else { format!("; {unfinished} did not finish after that") }
}
