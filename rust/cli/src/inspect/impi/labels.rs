//! What stands under the labels of COLL (IMPI 3.3, 5.5).

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::layout::{CLIENTS_MAX, Label, MAXLINEAR_DEFAULT, Version, XSIZE_DEFAULT};

use super::item::{Value, address, count};

/// Elements of a payload that are told.
const VALUES_MAX: usize = 4096;

/// What the clients have said of themselves, by client: how many hosts and processes.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    hosts: Vec<(u32, u32)>,
    procs: Vec<(u32, u32)>,
}

impl Counts {
    /// A reply has told them.
    pub(super) fn learn(&mut self, label: Label, mask: u32, data: &[u8]) {
        let by_client = || clients(mask).zip(numbers(data)).collect();
        match label {
            Label::C_NHOSTS => self.hosts = by_client(),
            Label::C_NPROCS => self.procs = by_client(),
            _ => {}
        }
    }

    fn of(&self, label: Label) -> Option<&[(u32, u32)]> {
        match label.0 >> 12 {
            2 => Some(&self.hosts),
            3 => Some(&self.procs),
            _ => None,
        }
    }

    /// Elements of a label that all clients have together, if that is known.
    pub(super) fn total(&self, label: Label) -> Option<u64> {
        let counts = self.of(label).filter(|counts| !counts.is_empty())?;
        Some(counts.iter().map(|(_, count)| u64::from(*count)).sum())
    }
}

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

/// The elements under a label, as many of the `len` octets as are in `data`; none where the label is not known or the
/// length does not fit. `mask`: of a reply, whose elements are given to the clients that they come from.
pub(super) fn list(
    label: Label,
    dialect: Dialect,
    data: &[u8],
    len: u64,
    reply: Option<(u32, &Counts)>,
) -> Option<Value> {
    let element_len = element_len(label, dialect)?;
    let total = len / element_len as u64;
    if !len.is_multiple_of(element_len as u64) {
        return None;
    }
    let values = data.chunks_exact(element_len).take(VALUES_MAX).map(|octets| value(label, dialect, octets));
    let owners = reply.and_then(|(mask, counts)| owners(label, mask, counts, data, total));
    let owner = |k: usize| owners.as_ref().and_then(|owners| owners.get(k).copied());
    let shown = values.enumerate().map(|(k, value)| (owner(k), value)).collect();
    Some(Value::List { shown, total })
}

/// The client of each of the elements that are there, if their number is what the clients have said.
fn owners(label: Label, mask: u32, counts: &Counts, data: &[u8], total: u64) -> Option<Vec<u32>> {
    let there = data.len() / 4;
    if label == Label::C_VERSION {
        // Every client's begin with 0.0.
        let mut lists = clients(mask);
        let mut client = None;
        return data
            .as_chunks::<8>()
            .0
            .iter()
            .map(|octets| {
                if Version::parse(*octets) == Version::V0_0 {
                    client = lists.next();
                }
                client
            })
            .collect();
    }
    let Some(counts) = counts.of(label) else {
        return (total == u64::from(mask.count_ones())).then(|| clients(mask).collect());
    };
    let counts = counts.iter().filter(|(client, _)| mask & 1 << client != 0);
    let sum: u64 = counts.clone().map(|(_, count)| u64::from(*count)).sum();
    let each = counts.flat_map(|(client, count)| std::iter::repeat_n(*client, (*count as usize).min(there)));
    (sum == total).then(|| each.take(there).collect())
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

fn numbers(data: &[u8]) -> impl Iterator<Item = u32> {
    data.as_chunks::<4>().0.iter().map(|octets| u32::from_be_bytes(*octets))
}

/// What a label is about.
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
        Label::H_HIWATER => "packets that may be under way to a host",
        Label::P_IPV6 => "host ids of processes",
        Label::P_PID => "process ids",
        _ => "a label that the specification has not",
    }
}

/// What all make of a reply, if all of it is there.
pub(super) fn outcome(label: Label, data: &[u8], len: u64) -> Option<String> {
    let all: Vec<u32> = if data.len() as u64 == len { numbers(data).collect() } else { Vec::new() };
    let least = all.iter().copied().min()?;
    let sum: u64 = all.iter().copied().map(u64::from).sum();
    let agreed = |default| if least == u32::MAX { default } else { least };
    Some(match label {
        Label::C_NHOSTS => count(sum, "host"),
        Label::C_NPROCS if sum == 1 => "1 process".to_owned(),
        Label::C_NPROCS => format!("{sum} processes"),
        Label::C_DATALEN => format!("at most {} of data in a packet", count(least.into(), "octet")),
        Label::C_TAGUB => format!("the largest tag is {least}"),
        Label::C_COLL_XSIZE => format!("long from {} on", count(agreed(XSIZE_DEFAULT).into(), "octet")),
        Label::C_COLL_MAXLINEAR => {
            format!("linear up to {}", count(agreed(MAXLINEAR_DEFAULT).into(), "master"))
        }
        Label::H_ACKMARK => format!("a ProtoAck after {}", count(least.into(), "packet")),
        Label::H_HIWATER => format!("at most {} without a ProtoAck", count(least.into(), "packet")),
        _ => return None,
    })
}
