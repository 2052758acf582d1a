//! The data under each label of a COLL command (IMPI 3.3, 5.5).

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::layout::{CLIENTS_MAX, Label, MAXLINEAR_DEFAULT, Version, XSIZE_DEFAULT};

use super::value::{List, Value, address};
use crate::inspect::text::count;

/// Elements of a payload that are listed.
const VALUES_MAX: usize = 4096;

/// The clients of a mask, ascending.
pub(super) fn clients(mask: u32) -> impl Iterator<Item = u32> {
    (0..CLIENTS_MAX).filter(move |client| mask & 1 << client != 0)
}

/// Octets of an element under a label, if it is known.
pub(super) fn element_len(label: Label, dialect: Dialect) -> Option<usize> {
    label.name()?;
    Some(match label {
        Label::H_IPV6 | Label::P_IPV6 => 16,
        Label::C_VERSION => 8,
        Label::P_PID if dialect == Dialect::Final => 8,
        _ => 4,
    })
}

/// The elements under a label; none if the label is unknown or the length does not fit. `mask` names the
/// clients that a reply has elements of.
pub(super) fn list(label: Label, dialect: Dialect, data: &[u8], mask: Option<u32>) -> Option<List> {
    let element_len = element_len(label, dialect)?;
    if !data.len().is_multiple_of(element_len) {
        return None;
    }
    let total = data.len() / element_len;
    let values = data.chunks_exact(element_len).take(VALUES_MAX).map(|octets| value(label, dialect, octets));
    let owners = mask.map_or(Vec::new(), |mask| owners(label, mask, data, total));
    let shown = values.enumerate().map(|(k, value)| (owners.get(k).copied().flatten(), value)).collect();
    Some(List { shown, total })
}

/// The client of each element, if the reply alone shows it: the versions of each client begin with 0.0, and
/// each client has at least one host and one process.
fn owners(label: Label, mask: u32, data: &[u8], total: usize) -> Vec<Option<u32>> {
    let mut clients = clients(mask);
    if label == Label::C_VERSION {
        let mut client = None;
        let versions = data.as_chunks::<8>().0.iter().take(VALUES_MAX);
        return versions
            .map(|octets| {
                if Version::parse(*octets) == Version::V0_0 {
                    client = clients.next();
                }
                client
            })
            .collect();
    }
    if total == mask.count_ones() as usize { clients.map(Some).collect() } else { Vec::new() }
}

fn value(label: Label, dialect: Dialect, octets: &[u8]) -> Value {
    let wide = octets.iter().fold(0u128, |number, octet| number << 8 | u128::from(*octet));
    match label {
        Label::H_IPV6 | Label::P_IPV6 => Value::Word(address(&wide.to_be_bytes())),
        Label::C_VERSION => Value::Word(Version::parse((wide as u64).to_be_bytes()).to_string()),
        Label::P_PID if dialect == Dialect::Final => Value::Pid((wide as u64).cast_signed()),
        Label::P_PID => Value::Pid((wide as u32).into()),
        Label::C_TAGUB | Label::C_COLL_XSIZE | Label::C_COLL_MAXLINEAR => {
            Value::Number((wide as u32).cast_signed().into())
        }
        // The port is in the low 16 bits.
        Label::H_PORT => Value::Number((wide as u16).into()),
        _ => Value::Number((wide as u32).into()),
    }
}

/// The subject of a label.
pub(super) fn subject(label: Label) -> &'static str {
    match label {
        Label::C_VERSION => "versions of IMPI",
        Label::C_NHOSTS => "number of hosts",
        Label::C_NPROCS => "number of processes",
        Label::C_DATALEN => "most octets of data in a packet",
        Label::C_TAGUB => "largest tag",
        Label::C_COLL_XSIZE => "octets from which collective operations are long",
        Label::C_COLL_MAXLINEAR => "masters up to which collective operations are linear",
        Label::H_IPV6 => "addresses of hosts",
        Label::H_PORT => "ports of hosts",
        Label::H_NPROCS => "processes of each host",
        Label::H_ACKMARK => "packets after which a host acknowledges them",
        Label::H_HIWATER => "packets that may be in flight to a host",
        Label::P_IPV6 => "host ids of processes",
        Label::P_PID => "process ids",
        _ => "a label that the specification does not have",
    }
}

/// The least number of a reply. The clients agree on it where they need one number.
pub(super) fn least(data: &[u8]) -> Option<u32> {
    numbers(data).min()
}

/// The agreement of the clients that a reply states.
pub(super) fn outcome(label: Label, data: &[u8]) -> Option<String> {
    let least = least(data)?;
    let agreed = |default| if least == u32::MAX { default } else { least };
    let sum = || numbers(data).map(u64::from).sum::<u64>();
    Some(match label {
        Label::C_NHOSTS => count(sum(), "host"),
        Label::C_NPROCS if sum() == 1 => "1 process".to_owned(),
        Label::C_NPROCS => format!("{} processes", sum()),
        Label::C_DATALEN => format!("at most {} of data in a packet", count(least, "octet")),
        Label::C_TAGUB => format!("the largest tag is {least}"),
        Label::C_COLL_XSIZE => format!("long from {}", count(agreed(XSIZE_DEFAULT), "octet")),
        Label::C_COLL_MAXLINEAR => format!("linear up to {}", count(agreed(MAXLINEAR_DEFAULT), "master")),
        Label::H_ACKMARK => format!("a ProtoAck after {}", count(least, "packet")),
        Label::H_HIWATER => format!("at most {} without a ProtoAck", count(least, "packet")),
        _ => return None,
    })
}

/// Violations of the protocol that a reply shows by itself.
pub(super) fn reply_fault(label: Label, mask: u32, data: &[u8]) -> Option<String> {
    let (clients, total) = (mask.count_ones() as usize, numbers(data).count());
    let is_of_clients = (Label::C_NHOSTS..Label::H_IPV6).contains(&label) && label.name().is_some();
    match label {
        _ if is_of_clients && total != clients => {
            Some(format!("{label} with {} of {}", count(total, "value"), count(clients, "client")))
        }
        Label::C_DATALEN | Label::H_ACKMARK | Label::H_HIWATER if least(data) == Some(0) => {
            Some(format!("{label} is 0"))
        }
        // A client without a value of its own sends -1.
        Label::C_COLL_XSIZE | Label::C_COLL_MAXLINEAR
            if least(data) != numbers(data).filter(|value| *value != u32::MAX).max().or(least(data)) =>
        {
            Some(format!("{label} must be the same everywhere"))
        }
        _ => None,
    }
}

fn numbers(data: &[u8]) -> impl Iterator<Item = u32> {
    data.as_chunks::<4>().0.iter().map(|octets| u32::from_be_bytes(*octets))
}
