//! Goodput of streams and messages through a bad network: the system's TCP, ours, and the protocol of 1997,
//! in one run.

use std::fmt::Write;
use std::time::Duration;

use mpjdev_proto::datagram::network::{Chance, Impairment};
use serde::Serialize;

use super::BenchError;
use super::contest::Stop;
use super::ends::Told;
use super::figures::{self, Asked, Held, Limit, Of};
use super::netem::{Maker, Way};
use super::pairs::{Pair, Tcp};
use super::report::aligned;
use super::stream::Goodput;

/// Measurement of goodput.
#[derive(Debug)]
pub struct GoodputRun<'a> {
    /// Impairment each way.
    pub impairment: Impairment,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Maker of the impairment.
    pub maker: Maker,
    /// Duration of each stream.
    pub time: Duration,
    /// Somebody wants all this to end.
    pub stop: &'a Stop,
}

/// Measured values.
#[derive(Debug, Default, Serialize)]
pub struct Measured {
    /// Maker of the impairment.
    maker: String,
    streams: Vec<Streams>,
    messages: Vec<Messages>,
    /// A stream of ours whose packets all come, by what its sender and its receiver tell.
    lossless: [Told; 2],
    /// One of whose packets some are lost, far apart.
    repaired: [Told; 2],
    figures: Vec<Held>,
}

/// Streams through one network, in millions of bits of messages in a second.
#[derive(Debug, Serialize)]
struct Streams {
    network: String,
    /// The system's TCP, alone.
    tcp: f64,
    /// Ours, alone, and what both ends tell.
    ours: f64,
    told: [Told; 2],
    /// Both at once.
    tcp_beside: f64,
    ours_beside: f64,
    /// Jain's index of them.
    fairness: f64,
    /// Ours where the rate is declared and nobody else is there.
    private: Option<f64>,
    /// That as a share of the rate.
    private_share: Option<f64>,
}

/// Messages through one network by one machine.
#[derive(Debug, Serialize)]
struct Messages {
    network: String,
    machine: &'static str,
    /// Microseconds of 8 octets there and back, the mean.
    round_trip_us: f64,
    /// Millions of bits in a second of messages that fill a datagram.
    stream: f64,
    /// Packets of that stream that left again, of all that left.
    again: u64,
    sent: u64,
    /// Acknowledgments without a message.
    pure_acks: u64,
}

/// Machines by their names and by the words that a pair is started with.
const MACHINES: [(&str, &[&str]); 3] =
    [("reliable", &[]), ("unet", &["--unet"]), ("unet, eager acks", &["--unet", "--eager-acks"])];
/// Loss of packets where machines are compared, in billionths: 0 and 0.1 %.
const LOSSES: [u32; 2] = [0, 1_000_000];
/// Octets of a message that fits a datagram, by either machine.
const FITS: u64 = 1400;
/// Packets of a stream that are lost where they are to be few, and what its packets and its rate are taken
/// for.
const FEW_LOSSES: f64 = 6.0;
const FEW_RATE: f64 = 1e9;
const PACKET_BITS: f64 = 12_000.0;
/// Packets that may wait for the rate where none is to be lost: more than a window.
const LONG_QUEUE: usize = 2048;
/// Round trips of a ping-pong in a second of its time, at most.
const TRIPS: f64 = 50.0;
/// A part of the time is enough to compare machines.
const PART: u32 = 2;

impl GoodputRun<'_> {
    /// Measures all of it; `tell` hears what is measured next.
    ///
    /// # Errors
    /// [`BenchError::Missing`] when there can be no such network here, and why; an end has failed; somebody
    /// wants it to end.
    pub fn run(&self, tell: &dyn Fn(&str)) -> Result<Measured, BenchError> {
        let mut measured = Measured { maker: self.maker.to_string(), ..Measured::default() };
        let without = Impairment { loss: Chance::NEVER, ..self.impairment };
        let mut networks = vec![without];
        networks.extend((without != self.impairment).then_some(self.impairment));
        for network in networks {
            measured.streams.push(self.streams(network, tell)?);
        }
        let long = Impairment { queue: LONG_QUEUE, ..without };
        tell(&format!("a stream without loss, {}", name(long)));
        measured.lossless = self.ends(long, self.time, &self.stream_words())?;
        let few = Impairment { loss: self.few_losses(), ..long };
        tell(&format!("a stream with few losses, {}", name(few)));
        measured.repaired = self.ends(few, self.time, &self.stream_words())?;
        for billionths in LOSSES {
            let loss = Chance::from_billionths(billionths).unwrap_or(Chance::NEVER);
            for (machine, words) in MACHINES {
                let network = Impairment { loss, ..self.impairment };
                measured.messages.push(self.messages(network, machine, words, tell)?);
            }
        }
        measured.figures = measured.held();
        Ok(measured)
    }

    /// Loss of packets for a stream that loses a few, far apart.
    fn few_losses(&self) -> Chance {
        let rate = self.impairment.rate.map_or(FEW_RATE, |rate| rate.get() as f64);
        let packets = (rate * self.time.as_secs_f64() / PACKET_BITS).max(FEW_LOSSES);
        Chance::from_billionths((1e9 * FEW_LOSSES / packets) as u32).unwrap_or(Chance::NEVER)
    }

    fn way(&self, network: Impairment) -> Result<Way, BenchError> {
        if self.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(BenchError::Stopped);
        }
        Way::new(network, self.seed, Some(self.maker))
    }

    fn stream_words(&self) -> Vec<String> {
        vec![format!("--seconds={}", self.time.as_secs_f64())]
    }

    fn ends(&self, network: Impairment, time: Duration, words: &[String]) -> Result<[Told; 2], BenchError> {
        let way = self.way(network)?;
        let mut ends = Pair::of_ends(&way, words)?;
        ends.begin()?;
        ends.told(time)
    }

    fn streams(&self, network: Impairment, tell: &dyn Fn(&str)) -> Result<Streams, BenchError> {
        let of = |what: &str| tell(&format!("{what}, {}", name(network)));
        of("a stream of TCP");
        let way = self.way(network)?;
        let tcp = Tcp::prepare(&way, self.time, "cubic")?.start()?.tcp(self.time)?;
        drop(way);
        of("a stream of ours");
        let told = self.ends(network, self.time, &self.stream_words())?;
        of("both at once");
        let (tcp_beside, ours_beside) = self.both(network)?;
        let private = match network.rate {
            Some(rate) => {
                of("a stream of ours over a private link");
                let words = [self.stream_words(), vec![format!("--private={rate}")]].concat();
                Some((self.ends(network, self.time, &words)?[1].goodput().mbit(), rate.get() as f64 / 1e6))
            }
            None => None,
        };
        Ok(Streams {
            network: name(network),
            tcp: tcp.mbit(),
            ours: told[1].goodput().mbit(),
            told,
            tcp_beside: tcp_beside.mbit(),
            ours_beside: ours_beside.mbit(),
            fairness: fairness(tcp_beside.mbit(), ours_beside.mbit()),
            private: private.map(|(goodput, _)| goodput),
            private_share: private.map(|(goodput, rate)| goodput / rate),
        })
    }

    /// A stream of TCP and one of ours through one way.
    fn both(&self, network: Impairment) -> Result<(Goodput, Goodput), BenchError> {
        let way = self.way(network)?;
        let mut ours = Pair::of_ends(&way, &self.stream_words())?;
        let tcp = Tcp::prepare(&way, self.time, "cubic")?.start()?;
        ours.begin()?;
        let told = ours.told(self.time)?;
        Ok((tcp.tcp(self.time)?, told[1].goodput()))
    }

    fn messages(
        &self,
        network: Impairment,
        machine: &'static str,
        words: &[&str],
        tell: &dyn Fn(&str),
    ) -> Result<Messages, BenchError> {
        tell(&format!("messages, {machine}, {}", name(network)));
        let time = self.time / PART;
        let of =
            |own: [String; 2]| words.iter().map(|word| (*word).to_owned()).chain(own).collect::<Vec<_>>();
        let times = (time.as_secs_f64() * TRIPS).ceil().max(1.0);
        let words = of([format!("--times={times}"), "--octets=8".to_owned()]);
        let trips = self.ends(network, time, &words)?[0];
        let words = of([format!("--seconds={}", time.as_secs_f64()), format!("--octets={FITS}")]);
        let [giver, taker] = self.ends(network, time, &words)?;
        Ok(Messages {
            network: name(network),
            machine,
            round_trip_us: trips.nanos as f64 / 1e3 / trips.done.max(1) as f64,
            stream: taker.goodput().mbit(),
            again: giver.retransmitted,
            sent: giver.sent + giver.retransmitted,
            pure_acks: taker.pure_acks,
        })
    }
}

/// Name of a network.
fn name(network: Impairment) -> String {
    let text = network.to_string();
    if text.is_empty() { "nothing bad".to_owned() } else { text }
}

/// Jain's index of two: 1 when both have the same, one half when one has all.
fn fairness(one: f64, other: f64) -> f64 {
    let squares = 2.0 * (one * one + other * other);
    if squares > 0.0 { (one + other).powi(2) / squares } else { 0.0 }
}

/// Windows that a stream has gone through, by its round trip.
fn windows(giver: &Told, taker: &Told) -> f64 {
    (taker.nanos as f64 / 1e3 / giver.rtt_us.max(1) as f64).max(1.0)
}

impl Measured {
    /// Targets of this measurement.
    fn held(&self) -> Vec<Held> {
        let mut held = Vec::new();
        let mut hold = |title: String, limit: Limit, measured: Option<f64>| {
            held.push(Held { title, ..Asked { title: "", of: Of::Micros(0), limit }.value(measured) });
        };
        for streams in &self.streams {
            let network = &streams.network;
            hold(format!("ours by TCP, {network}"), Limit::Least(0.9), Some(streams.ours / streams.tcp));
            hold(format!("fairness beside TCP, {network}"), Limit::Least(0.9), Some(streams.fairness));
            if let Some(share) = streams.private_share {
                hold(format!("share of a private link, {network}"), Limit::Least(0.7), Some(share));
            }
            let giver = &streams.told[0];
            let by_timer = giver.timeouts as f64 / giver.retransmitted.max(1) as f64;
            hold(format!("timers by retransmitted packets, {network}"), Limit::None, Some(by_timer));
        }
        let [giver, taker] = &self.lossless;
        hold("packets retransmitted without loss".into(), Limit::Most(0.0), Some(giver.retransmitted as f64));
        let acks = taker.pure_acks as f64 / windows(giver, taker);
        hold("pure acknowledgments in a window, without loss".into(), Limit::Most(5.0), Some(acks));
        let giver = &self.repaired[0];
        let timers = (giver.retransmitted > 0).then_some(giver.timeouts as f64);
        hold("timers that expired where few packets are lost".into(), Limit::Most(0.0), timers);
        held
    }

    /// As text.
    pub fn table(&self) -> String {
        let mbit = |value: f64| format!("{value:.1}");
        let head =
            ["Mbit/s", "TCP CUBIC", "ours", "ratio", "TCP beside", "ours beside", "Jain", "private link"];
        let mut streams = vec![head.map(str::to_owned).to_vec()];
        for row in &self.streams {
            streams.push(vec![
                row.network.clone(),
                mbit(row.tcp),
                mbit(row.ours),
                format!("{:.2}", row.ours / row.tcp),
                mbit(row.tcp_beside),
                mbit(row.ours_beside),
                format!("{:.3}", row.fairness),
                row.private.map_or("-".to_owned(), mbit),
            ]);
        }
        let head = [
            "messages",
            "machine",
            "8 octets, there and back",
            "stream, Mbit/s",
            "again",
            "sent",
            "pure acks",
        ];
        let mut messages = vec![head.map(str::to_owned).to_vec()];
        for row in &self.messages {
            messages.push(vec![
                row.network.clone(),
                row.machine.to_owned(),
                format!("{:.1} ms", row.round_trip_us / 1e3),
                mbit(row.stream),
                row.again.to_string(),
                row.sent.to_string(),
                row.pure_acks.to_string(),
            ]);
        }
        let mut text = format!("Through {}, the same each way:\n\n", self.maker);
        // A text takes any of this.
        let _ =
            write!(text, "{}\n{}\n{}", aligned(&streams), aligned(&messages), figures::table(&self.figures));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_jains_index() {
        assert_eq!(fairness(10.0, 10.0), 1.0);
        assert_eq!(fairness(10.0, 0.0), 0.5);
        assert!((fairness(3.0, 1.0) - 0.8).abs() < 1e-9);
        assert_eq!(fairness(0.0, 0.0), 0.0);
    }

    #[test]
    fn goodput_figures_have_the_measured_values() {
        let giver = Told { sent: 1000, rtt_us: 10_000, timeouts: 1, retransmitted: 4, ..Told::default() };
        let taker = Told { nanos: 1_000_000_000, pure_acks: 400, ..Told::default() };
        let streams = Streams {
            network: "loss=1%".into(),
            tcp: 10.0,
            ours: 8.0,
            told: [giver, taker],
            tcp_beside: 5.0,
            ours_beside: 5.0,
            fairness: 1.0,
            private: Some(70.0),
            private_share: Some(0.7),
        };
        let lossless = [Told { retransmitted: 0, ..giver }, taker];
        let measured =
            Measured { streams: vec![streams], lossless, repaired: [giver, taker], ..Measured::default() };
        let held = measured.held();
        let values: Vec<f64> = held.iter().filter_map(|held| held.measured).collect();
        assert_eq!(values, [0.8, 1.0, 0.7, 0.25, 0.0, 4.0, 1.0]);
        let text = Measured { figures: held, ..measured }.table();
        assert!(text.contains("Of 6 figures 4 are reached, 2 missed, 0 not measured."), "{text}");
        assert!(text.contains("loss=1%       10.0   8.0   0.80"), "{text}");
    }
}
