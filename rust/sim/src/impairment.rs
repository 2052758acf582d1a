//! Impairments of a simulated path, and their text form.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use thiserror::Error;

/// A probability in steps of 10^-9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chance(u32);

/// Losses in bursts: the model of Gilbert and Elliott.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The chance that a burst begins with a packet.
    pub enter: Chance,
    /// The chance that it ends with a packet; so a burst has 1 / leave packets on average.
    pub leave: Chance,
}

/// Reordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorder {
    /// The most later packets that overtake it; the number is evenly distributed.
    pub distance: u16,
    /// The chance that a packet is overtaken.
    pub chance: Chance,
}

/// A time in which no packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its begin in nanoseconds.
    pub begin_ns: u64,
    /// Its length in nanoseconds.
    pub len_ns: u64,
}

/// The impairments of one direction of a path. The default has none.
///
/// As text it is a list of parts with commas between them, in any order, each at most once, such as
/// `loss=1%,dup=1%,reorder=16,delay=5ms,jitter=1ms,rate=100mbit,burst=0.1%/30%`; nothing is no impairment.
///
/// | part | means | values |
/// |---|---|---|
/// | `loss=P` | each packet dies with this chance | `1%`, `0.01`, `1e-4` |
/// | `burst=P/Q` | a burst, in which all die, begins with chance P and ends with Q | `0.1%/30%` |
/// | `dup=P` | a packet arrives twice | `1%` |
/// | `reorder=N`, `reorder=N/P` | N later ones at most overtake a packet, chance P (10 %) | `16`, `3/50%` |
/// | `delay=T` | how long a packet takes | `5ms`, `100us`, `20ns`, `1.5s` |
/// | `jitter=T` | up to so much longer, so that packets also overtake each other | `1ms` |
/// | `rate=R` | bits per second | `100mbit`, `1.5gbit`, `64kbit`, `9600bit` |
/// | `queue=N` | packets that may wait for the rate, 256 if not said; those above it are lost | `64` |
/// | `partition=T/U` | from T on nothing passes, for U | `1s/500ms` |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impairment {
    /// The chance that a packet is lost.
    pub loss: Chance,
    /// Losses in bursts.
    pub burst: Option<Burst>,
    /// The chance that a packet is duplicated.
    pub duplication: Chance,
    /// Reordering.
    pub reorder: Option<Reorder>,
    /// The delay of a packet in nanoseconds.
    pub delay_ns: u64,
    /// The largest additional delay in nanoseconds, evenly distributed.
    pub jitter_ns: u64,
    /// Bits per second; `None` is no limit.
    pub rate: Option<NonZeroU64>,
    /// Packets that may wait for the rate, the one that is being sent included.
    pub queue: usize,
    /// A time in which no packet passes.
    pub partition: Option<Partition>,
}

/// An invalid text; the error names the part.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImpairmentError {
    /// No part has this name.
    #[error("{part:?}: there is no such impairment; there are {}", NAMES.join(", "))]
    Unknown {
        /// The part as it was given.
        part: String,
    },
    /// The value is invalid.
    #[error("{part:?}: {expected} is expected, such as {example}")]
    Value {
        /// The part as it was given.
        part: String,
        /// The expected text.
        expected: &'static str,
        /// An example.
        example: &'static str,
    },
    /// The part is repeated.
    #[error("{part:?}: {name} was said before")]
    Twice {
        /// The part as it was given.
        part: String,
        /// Its name.
        name: &'static str,
    },
}

/// Names of the parts.
const NAMES: [&str; 9] = ["loss", "burst", "dup", "reorder", "delay", "jitter", "rate", "queue", "partition"];
/// The chance that a packet is overtaken, if only the distance is given: 10 %.
const REORDER_CHANCE: Chance = Chance(100_000_000);
/// Packets that may wait for the rate, if it is not said.
const QUEUE_DEFAULT: usize = 256;
/// Units of times, in nanoseconds. A unit whose name ends another one's follows it.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
/// Units of rates, in bits per second.
const RATES: [(&str, f64); 4] = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("bit", 1.0)];

impl Chance {
    /// The billionths of certainty.
    pub const ALWAYS_BILLIONTHS: u32 = 1_000_000_000;
    /// Never.
    pub const NEVER: Self = Self(0);
    /// Always.
    pub const ALWAYS: Self = Self(Self::ALWAYS_BILLIONTHS);

    /// A chance in billionths, at most certainty.
    #[must_use]
    pub const fn from_billionths(billionths: u32) -> Option<Self> {
        if billionths <= Self::ALWAYS_BILLIONTHS { Some(Self(billionths)) } else { None }
    }

    /// A chance in percent; more than 100 count as 100.
    #[must_use]
    pub const fn percent(percent: u32) -> Self {
        if percent < 100 { Self(percent * (Self::ALWAYS_BILLIONTHS / 100)) } else { Self::ALWAYS }
    }

    /// As billionths.
    #[must_use]
    pub const fn billionths(self) -> u32 {
        self.0
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = match text.strip_suffix('%') {
            Some(number) => (number, 1e7),
            None => (text, 1e9),
        };
        let billionths = scaled(number, unit, f64::from(Self::ALWAYS_BILLIONTHS))?;
        Some(Self(billionths as u32))
    }
}

impl Partition {
    /// Whether no packet passes then.
    #[must_use]
    pub const fn holds(self, now_ns: u64) -> bool {
        self.begin_ns <= now_ns && now_ns - self.begin_ns < self.len_ns
    }
}

impl Impairment {
    /// A path without impairments.
    pub const NONE: Self = Self {
        loss: Chance::NEVER,
        burst: None,
        duplication: Chance::NEVER,
        reorder: None,
        delay_ns: 0,
        jitter_ns: 0,
        rate: None,
        queue: QUEUE_DEFAULT,
        partition: None,
    };

    /// Applies one part; `None` if its value is invalid.
    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "loss" => self.loss = Chance::parse(value)?,
            "burst" => {
                let (enter, leave) = value.split_once('/')?;
                self.burst = Some(Burst { enter: Chance::parse(enter)?, leave: Chance::parse(leave)? });
            }
            "dup" => self.duplication = Chance::parse(value)?,
            "reorder" => {
                let (distance, chance) = match value.split_once('/') {
                    Some((distance, chance)) => (distance, Chance::parse(chance)?),
                    None => (value, REORDER_CHANCE),
                };
                let distance = distance.parse().ok().filter(|distance| *distance > 0)?;
                self.reorder = Some(Reorder { distance, chance });
            }
            "delay" => self.delay_ns = time_ns(value)?,
            "jitter" => self.jitter_ns = time_ns(value)?,
            "rate" => self.rate = Some(NonZeroU64::new(with_unit(value, &RATES)?)?),
            "queue" => self.queue = value.parse().ok().filter(|queue| *queue > 0)?,
            _ => {
                let (begin, len) = value.split_once('/')?;
                self.partition = Some(Partition { begin_ns: time_ns(begin)?, len_ns: time_ns(len)? });
            }
        }
        Some(())
    }
}

impl Default for Impairment {
    fn default() -> Self {
        Self::NONE
    }
}

impl FromStr for Impairment {
    type Err = ImpairmentError;

    fn from_str(text: &str) -> Result<Self, ImpairmentError> {
        let mut impairment = Self::NONE;
        let mut seen = [false; NAMES.len()];
        for part in text.split(',').map(str::trim).filter(|_| !text.trim().is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let Some(place) = NAMES.iter().position(|known| *known == name) else {
                return Err(ImpairmentError::Unknown { part: part.to_owned() });
            };
            if std::mem::replace(&mut seen[place], true) {
                return Err(ImpairmentError::Twice { part: part.to_owned(), name: NAMES[place] });
            }
            if impairment.set(name, value).is_none() {
                let (expected, example) = expected(name);
                return Err(ImpairmentError::Value { part: part.to_owned(), expected, example });
            }
        }
        Ok(impairment)
    }
}

/// The text from which it is parsed.
impl fmt::Display for Impairment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let chance = |Chance(billionths): Chance| format!("{}%", f64::from(billionths) / 1e7);
        let mut part = |is_there: bool, text: String| parts.extend(is_there.then_some(text));
        part(self.loss > Chance::NEVER, format!("loss={}", chance(self.loss)));
        if let Some(Burst { enter, leave }) = self.burst {
            part(true, format!("burst={}/{}", chance(enter), chance(leave)));
        }
        part(self.duplication > Chance::NEVER, format!("dup={}", chance(self.duplication)));
        if let Some(reorder) = self.reorder {
            part(true, format!("reorder={}/{}", reorder.distance, chance(reorder.chance)));
        }
        part(self.delay_ns > 0, format!("delay={}", time(self.delay_ns)));
        part(self.jitter_ns > 0, format!("jitter={}", time(self.jitter_ns)));
        if let Some(rate) = self.rate {
            part(true, format!("rate={rate}bit"));
        }
        part(self.queue != QUEUE_DEFAULT, format!("queue={}", self.queue));
        if let Some(Partition { begin_ns, len_ns }) = self.partition {
            part(true, format!("partition={}/{}", time(begin_ns), time(len_ns)));
        }
        f.write_str(&parts.join(","))
    }
}

/// The expected value of a name, and an example.
fn expected(name: &str) -> (&'static str, &'static str) {
    match name {
        "loss" | "dup" => ("a chance up to 100%", "1% or 0.01"),
        "burst" => ("the chances that it begins and that it ends", "0.1%/30%"),
        "reorder" => ("a distance of 1 to 65535 packets, with or without a chance", "16 or 16/5%"),
        "delay" | "jitter" => ("a time in ns, us, ms or s", "5ms"),
        "rate" => ("a rate in bit, kbit, mbit or gbit per second", "100mbit"),
        "queue" => ("a number of packets, 1 at least", "64"),
        _ => ("when it begins and how long it lasts", "1s/500ms"),
    }
}

/// A number times a unit, rounded, if it is within 0 and a maximum.
fn scaled(number: &str, unit: f64, max: f64) -> Option<u64> {
    let scaled = number.parse::<f64>().ok()? * unit;
    // NaN is not within it.
    (0.0..=max).contains(&scaled).then(|| scaled.round() as u64)
}

fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    // Times of 2^53 ns are 104 days; up to there all numbers are exact.
    let max = (1_u64 << f64::MANTISSA_DIGITS) as f64;
    let (number, unit) = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))?;
    scaled(number, unit, max)
}

fn time_ns(text: &str) -> Option<u64> {
    with_unit(text, &TIMES)
}

/// A time in the largest unit in which it is a whole number.
fn time(time_ns: u64) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000), ("ns", 1)];
    let whole = units.into_iter().find(|(_, unit)| time_ns.is_multiple_of(*unit));
    let (name, unit) = whole.unwrap_or(("ns", 1));
    format!("{}{name}", time_ns / unit)
}
