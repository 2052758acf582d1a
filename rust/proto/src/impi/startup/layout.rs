//! Every constant of the startup protocol, and its smallest structures (IMPI 3.1 to 3.3, 4). All numbers are
//! big-endian.

use std::fmt;

use byteorder::{BigEndian, ByteOrder};
use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

/// Most clients of a job: the bits of client_mask (IMPI 3.5).
pub const CLIENTS_MAX: u32 = 32;
/// Most octets of all COLL payloads of a job. A choice of ours (IMPI 18).
pub const COLL_TOTAL_MAX: usize = 32 << 20;
/// Most hosts of a job. A choice of ours.
pub const HOSTS_MAX: u32 = 1 << 16;
/// Most processes of a job. A choice of ours; their labels fit [`COLL_TOTAL_MAX`].
pub const PROCS_MAX: u32 = 1 << 20;

/// Octets of IMPI_Cmd: command and length (IMPI 4).
pub const CMD_LEN: usize = 8;
/// Octets of IMPI_Client_auth: auth_mask (IMPI 4).
pub const CLIENT_AUTH_LEN: usize = 4;
/// Octets of IMPI_Server_auth, which is sent without IMPI_Cmd: which and len (IMPI 4, 5).
pub const SERVER_AUTH_LEN: usize = 8;
/// Octets of IMPI_Auth_key (IMPI 4). The draft's whole AUTH payload (IMPI 5.2).
pub const AUTH_KEY_LEN: usize = 8;
/// Octets of IMPI_Impi: rank or size (IMPI 4).
pub const IMPI_LEN: usize = 4;
/// Octets of IMPI_Coll before the client's data: label (IMPI 4).
pub const COLL_LEN: usize = 4;
/// Octets of IMPI_Chdr before the data of all: label and client_mask (IMPI 4).
pub const CHDR_LEN: usize = 8;

/// Method number of "no authentication" (IMPI 3.2).
pub const AUTH_NONE: i32 = 0;
/// Method number of "a key in clear" (IMPI 3.2).
pub const AUTH_KEY: i32 = 1;

/// Least IMPI_Tag_ub (IMPI 3.5).
pub const TAG_UB_MIN: u32 = 32767;
/// Largest IMPI_Tag_ub (IMPI 3.5).
pub const TAG_UB_MAX: u32 = i32::MAX as u32;
/// The meaning of -1 in C_COLL_XSIZE, in octets (IMPI 5.5).
pub const XSIZE_DEFAULT: u32 = 1024;
/// The meaning of -1 in C_COLL_MAXLINEAR (IMPI 5.5).
pub const MAXLINEAR_DEFAULT: u32 = 4;
/// C_DATALEN of a client that does not send that label (IMPI 5.4).
pub const DATALEN_DEFAULT: u32 = 1;

// The labels of the most processes and hosts fit.
const _: () = assert!(PROCS_MAX as usize * (16 + 8) + HOSTS_MAX as usize * (16 + 4 * 4) <= COLL_TOTAL_MAX);
// Four ASCII octets each (IMPI 3.1).
const _: () = assert!(Command::Auth.code() == 0x4155_5448 && Command::Fini.code() == 0x4649_4E49);

/// A command of the startup protocol (IMPI 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Authentication.
    Auth,
    /// Rank of a client, size of the job.
    Impi,
    /// Data under a label.
    Coll,
    /// No more labels.
    Done,
    /// The client has finished.
    Fini,
}

impl Command {
    /// All commands.
    pub const ALL: [Command; 5] = [Command::Auth, Command::Impi, Command::Coll, Command::Done, Command::Fini];

    /// Its name, the four octets on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Command::Auth => "AUTH",
            Command::Impi => "IMPI",
            Command::Coll => "COLL",
            Command::Done => "DONE",
            Command::Fini => "FINI",
        }
    }

    /// Its number.
    #[must_use]
    pub const fn code(self) -> i32 {
        match *self.name().as_bytes() {
            [a, b, c, d] => i32::from_be_bytes([a, b, c, d]),
            _ => unreachable!(),
        }
    }

    /// The command of this number.
    #[must_use]
    pub fn from_code(code: i32) -> Option<Command> {
        Command::ALL.into_iter().find(|command| command.code() == code)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// IMPI_Cmd, the header of every payload except those of authentication (IMPI 4).
///
/// ```text
///    0                4                8
///   +----------------+----------------+--- - - -
///   | cmd      Int4  | len      Int4  | len octets
///   +----------------+----------------+--- - - -
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cmd {
    /// The command.
    pub command: Command,
    /// Octets that follow, at most 2^31 - 1.
    pub len: u32,
}

/// An invalid IMPI_Cmd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CmdError {
    /// There is no such command.
    #[error("{} is no command", quoted(*code))]
    Unknown {
        /// The field cmd.
        code: i32,
    },
    /// The length is negative.
    #[error("{command} has the length {len}")]
    NegativeLen {
        /// The command.
        command: Command,
        /// The field len.
        len: i32,
    },
}

impl Cmd {
    /// Reads the eight octets.
    ///
    /// # Errors
    /// An unknown command, or a negative length.
    pub fn parse(octets: [u8; CMD_LEN]) -> Result<Cmd, CmdError> {
        let [code, len] = int4s(octets);
        let command = Command::from_code(code).ok_or(CmdError::Unknown { code })?;
        match u32::try_from(len) {
            Ok(len) => Ok(Cmd { command, len }),
            Err(_) => Err(CmdError::NegativeLen { command, len }),
        }
    }

    /// A whole command: the header and the concatenated parts of its payload.
    ///
    /// # Panics
    /// With a payload of 2^31 octets.
    #[must_use]
    pub fn emit(command: Command, payload: &[&[u8]]) -> Bytes {
        let len: usize = payload.iter().map(|part| part.len()).sum();
        let mut octets = BytesMut::with_capacity(CMD_LEN + len);
        octets.put_i32(command.code());
        octets.put_i32(i32::try_from(len).expect("a payload is shorter"));
        payload.iter().for_each(|part| octets.put_slice(part));
        octets.freeze()
    }
}

/// The label of a COLL payload (IMPI 3.3). Clients may send other labels than these.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub i32);

impl Label {
    /// Reserved, never sent.
    pub const NO_LABEL: Label = Label(0);
    /// Versions of IMPI, each Uint4 major and Uint4 minor.
    pub const C_VERSION: Label = Label(0x1000);
    /// Number of hosts, Uint4.
    pub const C_NHOSTS: Label = Label(0x1100);
    /// Number of processes, Uint4.
    pub const C_NPROCS: Label = Label(0x1200);
    /// Largest data part of a packet, Uint4; the draft's IMPI_C_PKTLEN.
    pub const C_DATALEN: Label = Label(0x1300);
    /// Largest tag, Int4.
    pub const C_TAGUB: Label = Label(0x1400);
    /// Octets from which collective operations are "long", Int4, or -1.
    pub const C_COLL_XSIZE: Label = Label(0x1500);
    /// Masters up to which collective operations are linear, Int4, or -1.
    pub const C_COLL_MAXLINEAR: Label = Label(0x1600);
    /// Addresses of hosts, 16 octets each.
    pub const H_IPV6: Label = Label(0x2000);
    /// Ports of hosts, 4 octets each, the port in the low 16 bits.
    pub const H_PORT: Label = Label(0x2100);
    /// Numbers of processes of hosts, Uint4 each.
    pub const H_NPROCS: Label = Label(0x2200);
    /// Marks at which hosts acknowledge packets, Uint4 each.
    pub const H_ACKMARK: Label = Label(0x2300);
    /// Packets that may be in flight to hosts, Uint4 each.
    pub const H_HIWATER: Label = Label(0x2400);
    /// Host ids of processes, 16 octets each.
    pub const P_IPV6: Label = Label(0x3000);
    /// Process ids, 8 octets each; the draft's have 4.
    pub const P_PID: Label = Label(0x3100);

    /// The labels that every client sends, ascending, each once (IMPI 5.4).
    pub const ALL: [Label; 14] = [
        Label::C_VERSION,
        Label::C_NHOSTS,
        Label::C_NPROCS,
        Label::C_DATALEN,
        Label::C_TAGUB,
        Label::C_COLL_XSIZE,
        Label::C_COLL_MAXLINEAR,
        Label::H_IPV6,
        Label::H_PORT,
        Label::H_NPROCS,
        Label::H_ACKMARK,
        Label::H_HIWATER,
        Label::P_IPV6,
        Label::P_PID,
    ];

    /// Its name without the prefix IMPI_, if it has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 14] = [
            "C_VERSION",
            "C_NHOSTS",
            "C_NPROCS",
            "C_DATALEN",
            "C_TAGUB",
            "C_COLL_XSIZE",
            "C_COLL_MAXLINEAR",
            "H_IPV6",
            "H_PORT",
            "H_NPROCS",
            "H_ACKMARK",
            "H_HIWATER",
            "P_IPV6",
            "P_PID",
        ];
        Label::ALL.iter().zip(NAMES).find(|(label, _)| **label == self).map(|(_, name)| name)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "label {:#06x}", self.0),
        }
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A version of IMPI (IMPI 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// Before the point.
    pub major: u32,
    /// Behind it.
    pub minor: u32,
}

impl Version {
    /// 0.0, the only version, which every client has (IMPI 5.5).
    pub const V0_0: Version = Version { major: 0, minor: 0 };

    /// Its eight octets.
    #[must_use]
    pub fn emit(self) -> [u8; 8] {
        let mut octets = [0; 8];
        BigEndian::write_u32_into(&[self.major, self.minor], &mut octets);
        octets
    }

    /// The version of eight octets.
    #[must_use]
    pub fn parse(octets: [u8; 8]) -> Version {
        Version { major: BigEndian::read_u32(&octets[..4]), minor: BigEndian::read_u32(&octets[4..]) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The two Int4 of eight octets.
pub(super) fn int4s(octets: [u8; 8]) -> [i32; 2] {
    [BigEndian::read_i32(&octets[..4]), BigEndian::read_i32(&octets[4..])]
}

/// A command code as four characters, if these are printable, else as a number.
fn quoted(code: i32) -> String {
    let octets = code.to_be_bytes();
    if octets.iter().all(|octet| octet.is_ascii_graphic() || *octet == b' ') {
        format!("\"{}\"", octets.escape_ascii())
    } else {
        format!("{:#010x}", code)
    }
}
