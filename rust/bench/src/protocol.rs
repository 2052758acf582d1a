//! Commands to contestants and their answers: lines of text, the same for Rust, Java and C.

use std::fmt;
use std::str::FromStr;

use mpjdev_engine::stats::Datagrams;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::calls::Call;

/// Messages of a window. They are sent one after the other, and one short answer follows.
const WINDOW: u64 = 64;
/// Limit of the octets of a window, since some contestants have memory for all its messages.
const WINDOW_OCTETS: u64 = 256 << 20;

/// Messages of a window if each has `octets` octets: 64, or fewer so that they have at most 256 MiB together,
/// and at least one.
pub fn window(octets: u64) -> u64 {
    (WINDOW_OCTETS / octets.max(1)).clamp(1, WINDOW)
}

/// The command that ends a contestant.
pub const END: &str = "end";

/// Case of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Case {
    /// Round trip from array to array: write, send, receive, read.
    Arrays,
    /// Round trip from array to array without a buffer, if the contestant has a call for it.
    Direct,
    /// As direct, through the calls of package mpi.
    Mpi,
    /// As direct, each trip timed. The second result is the median, multiplied by the number of trips.
    Timed,
    /// Round trip from buffer to buffer: send and receive of a written message.
    Buffers,
    /// As arrays, every second double.
    Strided,
    /// As strided, without a buffer, if the contestant has a call for it.
    StridedDirect,
    /// As arrays, all doubles in random order.
    Random,
    /// As random, without a buffer, if the contestant has a call for it.
    RandomDirect,
    /// As arrays, from and to memory outside the Java heap that the sender rewrites and the receiver sums up.
    Sum,
    /// As sum, from array to array without a buffer, if the contestant has a call for it.
    SumDirect,
    /// As mpi, the column of a matrix by a derived datatype.
    Column,
    /// As mpi, all doubles in random order by a derived datatype.
    Indexed,
    /// Round trip with a thousand small objects.
    Objects,
    /// The same through the calls of package mpi.
    ObjectsMpi,
    /// The same objects serialised and deserialised by one rank alone.
    Serial,
    /// Windows of messages from array to array.
    RateArrays,
    /// Windows of messages from array to array without a buffer.
    RateDirect,
    /// Windows of messages from buffer to buffer.
    RateBuffers,
    /// Windows of messages from array to array that are started first and waited for together.
    RateRequests,
    /// As requests, through the calls of package mpi.
    RateMpi,
    /// Windows of messages to a rank that computes meanwhile.
    Busy,
    /// Message from a rank that computes after its send.
    SendCompute,
    /// Message to a rank that computes after it has posted the receive.
    RecvCompute,
    /// One message around a ring of all ranks.
    Ring,
    /// A message from every rank to every other rank.
    Alltoall,
    /// Java garbage of a send and a receive.
    Garbage,
    /// The same without a buffer.
    GarbageDirect,
    /// The same through the calls of package mpi.
    GarbageMpi,
    /// A collective call, timed at each rank. The second result is the median over the calls of the rank,
    /// multiplied by their number.
    Collective(Call),
}

impl Case {
    /// All cases but collective calls.
    pub const ALL: [Case; 29] = [
        Case::Arrays,
        Case::Direct,
        Case::Mpi,
        Case::Timed,
        Case::Buffers,
        Case::Strided,
        Case::StridedDirect,
        Case::Random,
        Case::RandomDirect,
        Case::Sum,
        Case::SumDirect,
        Case::Column,
        Case::Indexed,
        Case::Objects,
        Case::ObjectsMpi,
        Case::Serial,
        Case::RateArrays,
        Case::RateDirect,
        Case::RateBuffers,
        Case::RateRequests,
        Case::RateMpi,
        Case::Busy,
        Case::SendCompute,
        Case::RecvCompute,
        Case::Ring,
        Case::Alltoall,
        Case::Garbage,
        Case::GarbageDirect,
        Case::GarbageMpi,
    ];

    /// Word of the case in a command.
    pub fn name(self) -> &'static str {
        match self {
            Case::Arrays => "arrays",
            Case::Direct => "direct",
            Case::Mpi => "mpi",
            Case::Timed => "timed",
            Case::Buffers => "buffers",
            Case::Strided => "strided",
            Case::StridedDirect => "strided-direct",
            Case::Random => "random",
            Case::RandomDirect => "random-direct",
            Case::Sum => "sum",
            Case::SumDirect => "sum-direct",
            Case::Column => "column",
            Case::Indexed => "indexed",
            Case::Objects => "objects",
            Case::ObjectsMpi => "objects-mpi",
            Case::Serial => "serial",
            Case::RateArrays => "rate-arrays",
            Case::RateDirect => "rate-direct",
            Case::RateBuffers => "rate-buffers",
            Case::RateRequests => "rate-requests",
            Case::RateMpi => "rate-mpi",
            Case::Busy => "busy",
            Case::SendCompute => "send-compute",
            Case::RecvCompute => "recv-compute",
            Case::Ring => "ring",
            Case::Alltoall => "alltoall",
            Case::Garbage => "garbage",
            Case::GarbageDirect => "garbage-direct",
            Case::GarbageMpi => "garbage-mpi",
            Case::Collective(call) => call.word(),
        }
    }

    /// Name in reports.
    pub fn title(self) -> &'static str {
        match self {
            Case::Arrays => "array to array",
            Case::Direct => "array to array, direct",
            Case::Mpi => "array to array, package mpi",
            Case::Timed => "array to array, mean / median",
            Case::Buffers => "buffer to buffer",
            Case::Strided => "every second double",
            Case::StridedDirect => "every second double, direct",
            Case::Random => "random doubles",
            Case::RandomDirect => "random doubles, direct",
            Case::Sum => "rewritten and summed up",
            Case::SumDirect => "rewritten and summed up, direct",
            Case::Column => "column, package mpi",
            Case::Indexed => "random doubles, package mpi",
            Case::Objects => "1000 objects",
            Case::ObjectsMpi => "1000 objects, package mpi",
            Case::Serial => "1000 objects in one JVM",
            Case::RateArrays => "window, array to array",
            Case::RateDirect => "window, direct",
            Case::RateBuffers => "window, buffer to buffer",
            Case::RateRequests => "window, requests",
            Case::RateMpi => "window, package mpi",
            Case::Busy => "window, receiver computes",
            Case::SendCompute => "sender computes after send",
            Case::RecvCompute => "receiver computes after irecv",
            Case::Ring => "ring, one hop",
            Case::Alltoall => "all to all",
            Case::Garbage => "garbage",
            Case::GarbageDirect => "garbage, direct",
            Case::GarbageMpi => "garbage, package mpi",
            Case::Collective(call) => call.title(),
        }
    }

    /// Number of reported units of one repetition: one-way trips, messages or hops.
    pub fn per_time(self, octets: u64, ranks: u32) -> u64 {
        match self {
            Case::Arrays
            | Case::Direct
            | Case::Mpi
            | Case::Timed
            | Case::Buffers
            | Case::Strided
            | Case::StridedDirect
            | Case::Random
            | Case::RandomDirect
            | Case::Sum
            | Case::SumDirect
            | Case::Column
            | Case::Indexed
            | Case::Objects
            | Case::ObjectsMpi => 2,
            Case::RateArrays
            | Case::RateDirect
            | Case::RateBuffers
            | Case::RateRequests
            | Case::RateMpi
            | Case::Busy => window(octets),
            Case::Ring => u64::from(ranks.max(1)),
            Case::Serial
            | Case::Alltoall
            | Case::Garbage
            | Case::GarbageDirect
            | Case::GarbageMpi
            | Case::SendCompute
            | Case::RecvCompute
            | Case::Collective(_) => 1,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Case {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Case {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let mut cases = Case::ALL.into_iter().chain(Call::ALL.map(Case::Collective));
        cases.find(|case| case.name() == word).ok_or_else(|| format!("{word} is not a case"))
    }
}

/// Command to run a case with messages of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCommand {
    /// Case to run.
    pub case: Case,
    /// Octets of the elements of a message, a multiple of eight.
    pub octets: u64,
    /// Repetitions, at least one.
    pub times: u64,
}

impl fmt::Display for RunCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.case, self.octets, self.times)
    }
}

impl FromStr for RunCommand {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split_ascii_whitespace();
        let (Some(case), Some(octets), Some(times), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(format!("an command has three words, not {line:?}"));
        };
        let number = |word: &str| word.parse::<u64>().map_err(|e| format!("{word}: {e}"));
        Ok(RunCommand { case: case.parse()?, octets: number(octets)?, times: number(times)?.max(1) })
    }
}

/// Answer of a rank: time, second result and counters, as `NANOS EXTRA NAME=VALUE ...`. Only the first word
/// is required.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answer {
    /// Nanoseconds of all repetitions.
    pub nanos: f64,
    /// Second result: octets of garbage, sleeps, or the median times the repetitions; 0 for most cases.
    pub extra: f64,
    /// Counters of a rank over UDP.
    pub counted: Option<Datagrams>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} {}", self.nanos, self.extra)?;
        match self.counted {
            Some(counted) => write!(f, " {}", counted.words()),
            None => Ok(()),
        }
    }
}

impl FromStr for Answer {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let wrong = |_| format!("{line:?} is not an answer");
        let number = |word: &str| word.parse::<f64>().ok().filter(|n| n.is_finite()).ok_or(()).map_err(wrong);
        let mut words = line.split_ascii_whitespace();
        let nanos = number(words.next().ok_or("an empty answer")?)?;
        let extra = words.next().map(number).transpose()?.unwrap_or(0.0);
        let mut words = words.peekable();
        let counted = words.peek().is_some().then(|| Datagrams::parse(words)).transpose();
        Ok(Answer { nanos, extra, counted: counted.map_err(|_| wrong(()))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_survives_the_round_trip_through_its_line() {
        for case in Case::ALL.into_iter().chain(Call::ALL.map(Case::Collective)) {
            let command = RunCommand { case, octets: 1 << 20, times: 7 };
            assert_eq!(command.to_string().parse(), Ok(command));
        }
        for nonsense in ["", "arrays", "arrays 8", "arrays 8 x", "arrays 8 1 1", "array 8 1"] {
            assert!(nonsense.parse::<RunCommand>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn window_has_at_most_64_messages_and_256_mib() {
        let mib = 1 << 20;
        assert_eq!([8, mib, 4 * mib, 4 * mib + 8, 16 * mib, 256 * mib].map(window), [64, 64, 64, 63, 16, 1]);
        assert_eq!([window(0), window(u64::MAX)], [64, 1]);
        assert_eq!(Case::RateArrays.per_time(16 * mib, 2), 16);
    }

    #[test]
    fn answer_has_one_or_two_times_and_the_counters() {
        assert_eq!("1500".parse(), Ok(Answer { nanos: 1500.0, ..Answer::default() }));
        let answer = Answer { nanos: 1500.0, extra: 32.5, counted: None };
        assert_eq!("1500 32.5".parse(), Ok(answer));
        let counted = Some(Datagrams { acks: 7, window: 100, ..Datagrams::default() });
        for answer in [answer, Answer { counted, ..answer }] {
            assert_eq!(answer.to_string().parse(), Ok(answer));
        }
        for nonsense in ["", "none", "inf", "1 x", "1 2 3", "1 2 acks", "1 acks=2"] {
            assert!(nonsense.parse::<Answer>().is_err(), "{nonsense}");
        }
    }
}
