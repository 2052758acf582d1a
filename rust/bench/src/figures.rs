//! The figures that messages between processes have to reach, for each transport: all of them, and only here.

mod computing;
mod datagrams;
mod mpi;

use std::fmt;

use serde::{Deserialize, Serialize};

use computing::late;
pub use datagrams::Count;
pub use mpi::BEYOND;

use super::order::Case;
use super::outcome::{Compared, Mode, Sample, Summary};
use super::report::{aligned, bare_line, processors, time};
use super::side::Transport;

/// Who takes part in what is held against a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Our ranks in Java, as processes.
    Ours,
    /// The C program under an MPI, over the same transport.
    Theirs,
    /// Plain sockets, of the same transport.
    Plain,
    /// Our ranks in Java, as processes over TCP.
    OverTcp,
}

/// One that takes turns with the others of its trial.
pub type Part = (Who, Case, u64);

/// Some that take turns, and what is asked of them.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Ranks of each.
    pub ranks: u32,
    /// Who does what.
    pub parts: &'static [Part],
    /// What is asked; numbers of parts are places in that list.
    pub asked: &'static [Asked],
}

/// One figure.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// What people read.
    pub title: &'static str,
    /// Of what.
    pub of: Of,
    /// How far it may go.
    pub limit: Limit,
}

/// How far a figure may go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// So far at most.
    Most(f64),
    /// So far at least.
    Least(f64),
    /// Wherever it likes: it is only reported.
    None,
}

/// What is asked of ranks that reach each other over one transport.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// How ours reach each other, and theirs.
    pub transport: Transport,
    /// What is measured by taking turns.
    pub trials: &'static [Trial],
}

/// What is held against a figure.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    /// Time of the first by time of the second.
    Ratio(usize, usize),
    /// Nanoseconds of the first beyond those of the second.
    Beyond(usize, usize),
    /// Time of the second by time of the first: how many times as fast that is.
    Speed(usize, usize),
    /// Time of the slowest by that of the fastest, from the first of them to the last.
    Flat(usize, usize),
    /// Time of the slowest, from the first of them to the second, by time of the third.
    Slowest(usize, usize, usize),
    /// Microseconds of one in its worst turn.
    WorstMicros(usize),
    /// Microseconds of one.
    Micros(usize),
    /// Milliseconds of one.
    Millis(usize),
    /// What else the case tells.
    Extra(usize),
    /// What ranks over datagrams have counted.
    Counted(usize, Count),
}

const fn ratio(title: &'static str, most: f64, ours: usize, theirs: usize) -> Asked {
    Asked { title, of: Of::Ratio(ours, theirs), limit: Limit::Most(most) }
}

const fn speed(title: &'static str, least: f64, ours: usize, theirs: usize) -> Asked {
    Asked { title, of: Of::Speed(ours, theirs), limit: Limit::Least(least) }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

use Case::{
    Arrays, Buffers, Busy, Garbage, Objects, Random, RateArrays, RateBuffers, Ring, Serial, Strided, Sum,
};
use Who::{Ours, Plain, Theirs};

/// All groups.
pub const GROUPS: [Group; 4] = [
    Group { transport: Transport::Shm, trials: SHM },
    Group { transport: Transport::Tcp, trials: TCP },
    Group { transport: Transport::Udp, trials: datagrams::UDP },
    Group { transport: Transport::Mpi, trials: mpi::MPI },
];

const SHM: &[Trial] = &[
    late!("shm, 1 MiB, sender computes, late, ns", SendCompute, MIB),
    late!("shm, 1 KiB, receiver computes, late, ns", RecvCompute, KIB),
    Trial {
        ranks: 2,
        parts: &[(Ours, Arrays, 8), (Ours, Buffers, 8), (Theirs, Arrays, 8)],
        asked: &[ratio("8 B, array to array", 1.3, 0, 2), ratio("8 B, buffer to buffer", 0.9, 1, 2)],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Arrays, KIB), (Theirs, Arrays, KIB)],
        asked: &[ratio("1 KiB, array to array", 1.3, 0, 1)],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Arrays, 64 * KIB), (Theirs, Arrays, 64 * KIB)],
        asked: &[ratio("64 KiB, array to array", 0.8, 0, 1)],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Arrays, MIB), (Theirs, Arrays, MIB)],
        asked: &[ratio("1 MiB, array to array", 0.95, 0, 1)],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Arrays, 16 * MIB), (Theirs, Arrays, 16 * MIB)],
        asked: &[ratio("16 MiB, array to array", 0.9, 0, 1)],
    },
    Trial {
        ranks: 2,
        parts: &[
            (Ours, Buffers, 8),
            (Ours, Buffers, 64 * KIB),
            (Ours, Buffers, MIB),
            (Ours, Buffers, 16 * MIB),
            (Ours, Buffers, 64 * MIB),
        ],
        asked: &[
            Asked { title: "hand-over 64 KiB to 64 MiB, flat", of: Of::Flat(1, 4), limit: Limit::Most(1.2) },
            Asked { title: "hand-over against 8 B", of: Of::Slowest(1, 4, 0), limit: Limit::Most(1.5) },
        ],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Sum, 16 * MIB), (Theirs, Sum, 16 * MIB)],
        asked: &[ratio("16 MiB rewritten and summed up", 0.8, 0, 1)],
    },
    // Beside the rows above, in which C need not fetch what has not changed.
    Trial {
        ranks: 2,
        parts: &[(Ours, Sum, 64 * KIB), (Theirs, Sum, 64 * KIB)],
        asked: &[Asked { title: "64 KiB rewritten and summed up", of: Of::Ratio(0, 1), limit: Limit::None }],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Sum, MIB), (Theirs, Sum, MIB)],
        asked: &[Asked { title: "1 MiB rewritten and summed up", of: Of::Ratio(0, 1), limit: Limit::None }],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Strided, MIB), (Theirs, Strided, MIB)],
        asked: &[ratio("1 MiB, every second double", 0.5, 0, 1)],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Random, MIB), (Theirs, Random, MIB)],
        asked: &[ratio("1 MiB, random doubles", 0.7, 0, 1)],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, RateBuffers, 8), (Ours, RateArrays, 8), (Theirs, RateBuffers, 8)],
        asked: &[
            ratio("rate of 8 B, buffer to buffer", 1.0, 0, 2),
            ratio("rate of 8 B, array to array", 2.0, 1, 2),
        ],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Busy, 8)],
        asked: &[
            Asked { title: "rate to a rank that computes, us", of: Of::Micros(0), limit: Limit::None },
            // What the JVM's own threads do in that time is far less.
            Asked { title: "its wake-ups per message", of: Of::Extra(0), limit: Limit::Most(0.01) },
        ],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Objects, 8), (Ours, Serial, 8)],
        asked: &[ratio("1000 objects against one JVM", 1.1, 0, 1)],
    },
    Trial {
        ranks: 2,
        parts: &[(Ours, Garbage, 8)],
        asked: &[Asked {
            title: "garbage per send + receive, B",
            of: Of::Extra(0),
            limit: Limit::Most(32.0),
        }],
    },
    Trial {
        ranks: 8,
        parts: &[(Ours, Ring, 8), (Theirs, Ring, 8)],
        asked: &[
            ratio("ring of 8, a hop", 2.0, 0, 1),
            Asked { title: "ring of 8, worst turn, us", of: Of::WorstMicros(0), limit: Limit::Most(20.0) },
        ],
    },
    Trial {
        ranks: 16,
        parts: &[(Ours, Ring, 8), (Theirs, Ring, 8)],
        asked: &[
            ratio("ring of 16, a hop", 2.0, 0, 1),
            Asked { title: "ring of 16, worst turn, us", of: Of::WorstMicros(0), limit: Limit::Most(20.0) },
        ],
    },
];

/// Whoever sends one message with each write is beside those that may send more. Plain sockets move what is there, as our buffers
/// do; arrays are packed and unpacked besides.
const TCP: &[Trial] = &[
    late!("tcp, 1 MiB, sender computes, late, ns", SendCompute, MIB),
    late!("tcp, 1 KiB, receiver computes, late, ns", RecvCompute, KIB),
    Trial {
        ranks: 2,
        parts: &[(Ours, Arrays, 8), (Ours, Buffers, 8), (Plain, Arrays, 8), (Theirs, Arrays, 8)],
        asked: &[
            ratio("tcp, 8 B, array to array, plain sockets", 1.25, 0, 2),
            ratio("tcp, 8 B, array to array, Open MPI", 1.0, 0, 3),
            ratio("tcp, 8 B, buffer to buffer, plain sockets", 1.25, 1, 2),
            ratio("tcp, 8 B, buffer to buffer, Open MPI", 1.0, 1, 3),
        ],
    },
    Trial {
        ranks: 2,
        parts: &[
            (Ours, RateBuffers, MIB),
            (Plain, RateArrays, MIB),
            (Theirs, RateArrays, MIB),
            (Ours, RateArrays, MIB),
        ],
        asked: &[
            speed("tcp, bandwidth of 1 MiB, buffers, plain sockets", 0.9, 0, 1),
            speed("tcp, bandwidth of 1 MiB, buffers, Open MPI", 1.0, 0, 2),
            Asked {
                title: "tcp, bandwidth of 1 MiB, arrays, plain sockets",
                of: Of::Speed(3, 1),
                limit: Limit::None,
            },
        ],
    },
    Trial {
        ranks: 2,
        parts: &[
            (Ours, RateBuffers, 16 * MIB),
            (Plain, RateArrays, 16 * MIB),
            (Theirs, RateArrays, 16 * MIB),
            (Ours, RateArrays, 16 * MIB),
        ],
        asked: &[
            speed("tcp, bandwidth of 16 MiB, buffers, plain sockets", 0.9, 0, 1),
            speed("tcp, bandwidth of 16 MiB, buffers, Open MPI", 1.0, 0, 2),
            Asked {
                title: "tcp, bandwidth of 16 MiB, arrays, plain sockets",
                of: Of::Speed(3, 1),
                limit: Limit::None,
            },
        ],
    },
    Trial {
        ranks: 2,
        parts: &[
            (Ours, RateArrays, 8),
            (Ours, RateBuffers, 8),
            (Plain, RateArrays, 8),
            (Theirs, RateArrays, 8),
        ],
        asked: &[
            speed("tcp, rate of 8 B, array to array, one by write", 5.0, 0, 2),
            speed("tcp, rate of 8 B, buffer to buffer, one by write", 5.0, 1, 2),
            Asked {
                title: "tcp, rate of 8 B, array to array, Open MPI",
                of: Of::Speed(0, 3),
                limit: Limit::None,
            },
        ],
    },
];

/// Ranks of the jobs that are empty, and of those whose memory is looked at.
pub const JOB_RANKS: u32 = 16;
/// Time of an empty job in Java by that of as many plain JVMs.
pub const START: Asked =
    Asked { title: "start and end of 16 ranks", of: Of::Ratio(0, 1), limit: Limit::Most(1.3) };
/// KiB of shared memory of a rank that has done nothing.
pub const IDLE: Asked =
    Asked { title: "shared memory of an idle rank, KiB", of: Of::Extra(0), limit: Limit::Most(1024.0) };
/// KiB of shared memory that a pair takes which has exchanged something small.
pub const PAIR: Asked =
    Asked { title: "shared memory of a used pair, KiB", of: Of::Extra(0), limit: Limit::Most(64.0) };
/// KiB of private memory of a rank in Rust, which has no JVM.
pub const PRIVATE: Asked =
    Asked { title: "private memory of an idle rank, KiB", of: Of::Extra(0), limit: Limit::Most(1024.0) };

/// Clients of a job that starts up, and of one that a client's share is held against.
pub const CLIENTS: [u32; 2] = [32, 8];
/// What is asked of start-up: of how long it takes beyond connecting, and of a client's share of all of it, that of many by that
/// of few. Half as much again is still linear, a choice of ours; the square would be four times as much.
pub const STARTUP: [Asked; 2] = [
    Asked {
        title: "tcp, start-up of 32 clients beyond connecting, ms",
        of: Of::Millis(0),
        limit: Limit::Most(50.0),
    },
    Asked {
        title: "tcp, start-up, share of one of 32 by one of 8",
        of: Of::Ratio(1, 2),
        limit: Limit::Most(1.5),
    },
];

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As asked.
    Reached,
    /// Past the limit.
    Missed,
    /// Nothing is asked.
    Reported,
    /// Whoever it is held against is not there.
    Unknown,
}

/// A figure beside what was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Held {
    /// What people read.
    pub title: String,
    /// How far it may go.
    pub asked: Limit,
    /// What it is.
    pub measured: Option<f64>,
    /// What came of it.
    pub verdict: Verdict,
    /// Nanoseconds of ours.
    pub ours: Option<f64>,
    /// Nanoseconds of what it is held against.
    pub against: Option<f64>,
    /// How far apart the processors were.
    pub mode: Mode,
    /// Nanoseconds of the bare line.
    pub line: Option<f64>,
    /// How many processors others used meanwhile.
    pub others: Option<f64>,
}

impl Asked {
    /// Holds what was measured of a trial against it.
    pub fn hold(&self, compared: &Compared, samples: &[Vec<Sample>]) -> Held {
        let summary = |at: usize| compared.summaries.get(at).copied().flatten();
        let nanos = |at: usize| summary(at).map(|s: Summary| s.median);
        let all = |from: usize, to: usize| (from..=to).map(nanos).collect::<Option<Vec<f64>>>();
        let most = |all: Vec<f64>| all.into_iter().fold(0.0, f64::max);
        let least = |all: Vec<f64>| all.into_iter().fold(f64::INFINITY, f64::min);
        let (ours, against) = match self.of {
            Of::Ratio(ours, theirs) | Of::Beyond(ours, theirs) | Of::Speed(ours, theirs) => {
                (nanos(ours), nanos(theirs))
            }
            Of::Flat(from, to) => (all(from, to).map(most), all(from, to).map(least)),
            Of::Slowest(from, to, by) => (all(from, to).map(most), nanos(by)),
            Of::WorstMicros(at) => {
                let turns = samples.get(at).map(|turns| turns.iter().map(|s| s.nanos).collect());
                (turns.map(most), None)
            }
            Of::Micros(at) | Of::Millis(at) | Of::Extra(at) => (nanos(at), None),
            Of::Counted(..) => (None, None),
        };
        let measured = match self.of {
            Of::Ratio(..) | Of::Flat(..) | Of::Slowest(..) => ours.zip(against).map(|(o, a)| o / a),
            Of::Beyond(..) => ours.zip(against).map(|(o, a)| o - a),
            Of::Speed(..) => ours.zip(against).map(|(o, a)| a / o),
            Of::WorstMicros(_) | Of::Micros(_) => ours.map(|nanos| nanos / 1000.0),
            Of::Millis(_) => ours.map(|nanos| nanos / 1e6),
            Of::Extra(at) => summary(at).map(|s| s.extra),
            Of::Counted(at, count) => samples.get(at).and_then(|turns| count.of(turns)),
        };
        Held { ours, against, line: compared.line, mode: compared.mode, ..self.value(measured) }
    }

    /// A figure that was measured in another way.
    pub fn value(&self, measured: Option<f64>) -> Held {
        let is_within = |measured| match self.limit {
            Limit::Most(most) => Some(measured <= most),
            Limit::Least(least) => Some(measured >= least),
            Limit::None => None,
        };
        let verdict = match measured.map(is_within) {
            None => Verdict::Unknown,
            Some(None) => Verdict::Reported,
            Some(Some(true)) => Verdict::Reached,
            Some(Some(false)) => Verdict::Missed,
        };
        Held {
            title: self.title.to_owned(),
            asked: self.limit,
            measured,
            verdict,
            ours: None,
            against: None,
            mode: Mode::Mixed,
            line: None,
            others: None,
        }
    }
}

/// A line for each figure, and what is missed once more.
pub fn table(held: &[Held]) -> String {
    let head = ["", "asked", "measured", "reached", "ours", "against", "bare line", "others"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for figure in held {
        let verdict = match figure.verdict {
            Verdict::Reached => "yes",
            Verdict::Missed => "NO",
            Verdict::Reported => "reported",
            Verdict::Unknown => "not measured",
        };
        let nanos = |value: Option<f64>| value.map_or(String::new(), time);
        lines.push(vec![
            figure.title.clone(),
            figure.asked.to_string(),
            figure.measured.map_or("-".to_owned(), short),
            verdict.to_owned(),
            nanos(figure.ours),
            nanos(figure.against),
            figure.line.map_or(String::new(), |_| bare_line(figure.line, figure.mode)),
            figure.others.map_or(String::new(), |_| processors(figure.others)),
        ]);
    }
    // A column that has nothing to say is none.
    let says = |at: usize| at < 4 || lines[1..].iter().any(|line| !line[at].is_empty());
    let said: Vec<usize> = (0..head.len()).filter(|at| says(*at)).collect();
    let lines: Vec<Vec<String>> =
        lines.iter().map(|line| said.iter().map(|at| line[*at].clone()).collect()).collect();
    let asked = || held.iter().filter(|figure| figure.asked != Limit::None);
    let count = |verdict| asked().filter(|figure| figure.verdict == verdict).count();
    let (reached, missed) = (count(Verdict::Reached), count(Verdict::Missed));
    format!(
        "{}\nOf {} figures {reached} are reached, {missed} missed, {} not measured.\n",
        aligned(&lines),
        asked().count(),
        count(Verdict::Unknown)
    )
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Most(most) => write!(f, "<= {}", short(*most)),
            Limit::Least(least) => write!(f, ">= {}", short(*least)),
            Limit::None => f.write_str("-"),
        }
    }
}

/// Three digits.
pub(crate) fn short(value: f64) -> String {
    match value {
        -10.0..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::compare;

    fn turns(nanos: f64, extra: f64) -> Vec<Sample> {
        vec![Sample { nanos, extra, before: Some(30.0), after: Some(30.0), counted: None }; 3]
    }

    fn held(of: Of, most: f64, samples: &[Vec<Sample>]) -> (Option<f64>, Verdict) {
        limited(of, Limit::Most(most), samples)
    }

    fn limited(of: Of, limit: Limit, samples: &[Vec<Sample>]) -> (Option<f64>, Verdict) {
        let held = Asked { title: "", of, limit }.hold(&compare(samples), samples);
        (held.measured, held.verdict)
    }

    #[test]
    fn a_figure_is_reached_up_to_what_is_asked() {
        let samples = [turns(130.0, 0.0), turns(100.0, 0.0), vec![]];
        assert_eq!(held(Of::Ratio(0, 1), 1.3, &samples), (Some(1.3), Verdict::Reached));
        assert_eq!(held(Of::Ratio(0, 1), 1.2, &samples), (Some(1.3), Verdict::Missed));
        assert_eq!(held(Of::Ratio(0, 2), 1.3, &samples), (None, Verdict::Unknown));
        let reported = Asked { title: "", of: Of::Micros(0), limit: Limit::None };
        assert_eq!(reported.hold(&compare(&samples), &samples).verdict, Verdict::Reported);
    }

    #[test]
    fn a_speed_is_reached_from_what_is_asked_on() {
        let samples = [turns(100.0, 0.0), turns(500.0, 0.0), vec![]];
        assert_eq!(limited(Of::Speed(0, 1), Limit::Least(5.0), &samples), (Some(5.0), Verdict::Reached));
        assert_eq!(limited(Of::Speed(0, 1), Limit::Least(5.1), &samples), (Some(5.0), Verdict::Missed));
        assert_eq!(limited(Of::Speed(2, 1), Limit::Least(5.0), &samples), (None, Verdict::Unknown));
    }

    #[test]
    fn the_table_says_what_is_asked_and_whether_it_is_reached() {
        let asked = |title, limit| Asked { title, of: Of::Micros(0), limit };
        let (most, least) = (asked("most", Limit::Most(1.25)), asked("least", Limit::Least(5.0)));
        let held = [most.value(Some(1.3)), least.value(Some(12.0)), least.value(None)];
        let text = table(&held);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][..3], ["asked", "measured", "reached"]);
        assert_eq!(lines[1], ["most", "<=", "1.25", "1.30", "NO"]);
        assert_eq!(lines[2], ["least", ">=", "5.00", "12.0", "yes"]);
        assert_eq!(lines[3], ["least", ">=", "5.00", "-", "not", "measured"]);
        assert!(text.ends_with("Of 3 figures 1 are reached, 1 missed, 1 not measured.\n"), "{text}");
    }

    #[test]
    fn several_sizes_are_held_against_one_another_and_against_another_one() {
        let samples = [turns(50.0, 0.0), turns(70.0, 0.0), turns(77.0, 0.0), turns(72.0, 0.0)];
        assert_eq!(held(Of::Flat(1, 3), 1.2, &samples).0, Some(77.0 / 70.0));
        assert_eq!(held(Of::Slowest(1, 3, 0), 1.5, &samples).0, Some(77.0 / 50.0));
    }

    #[test]
    fn the_worst_turn_counts_in_whatever_mode_it_was() {
        let mut ring = turns(2000.0, 32.0);
        ring.push(Sample { nanos: 30_000.0, extra: 32.0, ..Sample::default() });
        assert_eq!(held(Of::WorstMicros(0), 20.0, &[ring.clone()]), (Some(30.0), Verdict::Missed));
        assert_eq!(held(Of::Extra(0), 32.0, &[ring]), (Some(32.0), Verdict::Reached));
    }

    #[test]
    fn every_figure_names_parts_of_its_trial() {
        for trial in GROUPS.iter().flat_map(|group| group.trials) {
            for asked in trial.asked {
                let last = match asked.of {
                    Of::Ratio(a, b) | Of::Beyond(a, b) | Of::Speed(a, b) | Of::Flat(a, b) => a.max(b),
                    Of::Slowest(a, b, c) => a.max(b).max(c),
                    Of::WorstMicros(a) | Of::Micros(a) | Of::Millis(a) => a,
                    Of::Extra(a) | Of::Counted(a, _) => a,
                };
                assert!(last < trial.parts.len(), "{}", asked.title);
            }
        }
    }
}
