//! The values of fields, as text and as JSON.

use std::fmt;
use std::net::Ipv6Addr;

use mpjdev_proto::impi::marker::unmarked;
use mpjdev_proto::impi::{Dialect, Proc};
use serde::{Serialize, Serializer};

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Value {
    Number(i128),
    Word(String),
    #[serde(serialize_with = "process")]
    Process(Proc),
    Pid(i64),
    Set(Vec<Value>),
    List(List),
}

/// Values by client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List {
    /// The first values, each with its client if that is known.
    pub(super) shown: Vec<(Option<u32>, Value)>,
    pub(super) total: usize,
}

/// Fields of a command or a header: names of the specification, without `pk_`, and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(pub(super) Vec<(&'static str, Value)>);

impl Fields {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Serialize for List {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.shown.iter().map(|(_, value)| value))
    }
}

fn process<S: Serializer>(proc: &Proc, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Process {
        address: String,
        pid: i64,
    }
    Process { address: address(&proc.host_id), pid: proc.pid }.serialize(serializer)
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Word(word) => f.write_str(word),
            Value::Process(proc) => write!(f, "{}/{}", address(&proc.host_id), Value::Pid(proc.pid)),
            Value::Pid(pid) => match unmarked(Dialect::Final, *pid).or(unmarked(Dialect::Draft, *pid)) {
                Some(own) => write!(f, "mpj:{own}"),
                None => write!(f, "{pid}"),
            },
            Value::Set(values) => write!(f, "{{{}}}", joined(values.iter())),
            Value::List(list) => f.write_str(&joined(list.shown.iter().map(|(_, value)| value))),
        }
    }
}

fn joined<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    values.map(Value::to_string).collect::<Vec<_>>().join(", ")
}

/// The text of a host id or an address. LAM puts IPv4 behind twelve zeros; all others are IPv6 (IMPI 2.1).
pub(super) fn address(octets: &[u8; 16]) -> String {
    match octets {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] if *a != 0 => format!("{a}.{b}.{c}.{d}"),
        _ => Ipv6Addr::from(*octets).to_string(),
    }
}
