//! Goodput of streams and messages through an impaired network: the system's TCP, mpjdev over UDP, and the
//! U-Net protocol of 1997, in one run.

use std::time::Duration;

use mpjdev_sim::{Chance, Impairment};
use serde::{Deserialize, Serialize};

use super::BenchError;
use super::contest::Stop;
use super::ends::EndReport;
use super::environment::Environment;
use super::figures::{self, Figure, Limit, Quantity, Target};
use super::netem::{Emulator, ImpairedPath};
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
    /// Emulator of the impairment.
    pub emulator: Emulator,
    /// Duration of each stream.
    pub time: Duration,
    /// Flag that ends the measurement.
    pub stop: &'a Stop,
}

/// Results of a measurement.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Environment of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<Environment>,
    /// Emulator of the impairment.
    emulator: String,
    streams: Vec<Streams>,
    messages: Vec<Messages>,
    /// Reports of both ends of a stream without loss.
    lossless: [EndReport; 2],
    /// Reports of both ends of a stream with few losses.
    repaired: [EndReport; 2],
    figures: Vec<Figure>,
}

/// Streams through one network, in Mbit/s.
#[derive(Debug, Serialize, Deserialize)]
struct Streams {
    network: String,
    /// TCP alone.
    tcp: f64,
    /// mpjdev alone.
    ours: f64,
    /// Reports of both ends of that stream.
    ends: [EndReport; 2],
    /// TCP beside mpjdev.
    tcp_beside: f64,
    /// mpjdev beside TCP.
    ours_beside: f64,
    /// Jain's fairness index of both.
    fairness: f64,
    /// mpjdev alone over a link that is declared private with its rate.
    private: Option<f64>,
    /// That divided by the rate.
    private_share: Option<f64>,
}

/// Messages through one network by one protocol.
#[derive(Debug, Serialize, Deserialize)]
struct Messages {
    network: String,
    protocol: String,
    /// Mean microseconds of a round trip of 8 octets.
    round_trip_us: f64,
    /// Mbit/s of messages that fill a datagram.
    stream: f64,
    /// Retransmitted packets of that stream, and all packets.
    retransmitted: u64,
    sent: u64,
    /// Acks without a message.
    pure_acks: u64,
}

/// Protocols: name, and options of the ends.
const PROTOCOLS: [(&str, &[&str]); 3] =
    [("reliable", &[]), ("unet", &["--unet"]), ("unet, eager acks", &["--unet", "--eager-acks"])];
/// Loss of packets for the comparison of protocols, in billionths: 0 and 0.1 %.
const LOSSES: [u32; 2] = [0, 1_000_000];
/// Octets of a message that fits a datagram of every protocol.
const FITS: u64 = 1400;
/// Lost packets of a stream with few losses, and the rate and packet length that are assumed for it.
const FEW_LOSSES: f64 = 6.0;
const FEW_RATE: f64 = 1e9;
const PACKET_BITS: f64 = 12_000.0;
/// Queue of a network without loss in packets: more than a window.
const LONG_QUEUE: usize = 2048;
/// Limit of the round trips per second.
const TRIPS: f64 = 50.0;
/// Divisor of the time for the comparison of protocols.
const PART: u32 = 2;

impl GoodputRun<'_> {
    /// Measures everything. `progress` gets the name of each measurement.
    ///
    /// # Errors
    /// [`BenchError::Missing`] if the network cannot be made; an end has failed; or `stop` is set.
    pub fn run(&self, progress: &dyn Fn(&str)) -> Result<Measured, BenchError> {
        let mut measured = Measured { emulator: self.emulator.to_string(), ..Measured::default() };
        let without = Impairment { loss: Chance::NEVER, ..self.impairment };
        let mut networks = vec![without];
        networks.extend((without != self.impairment).then_some(self.impairment));
        for network in networks {
            measured.streams.push(self.streams(network, progress)?);
        }
        let long = Impairment { queue: LONG_QUEUE, ..without };
        progress(&format!("a stream without loss, {}", name(long)));
        measured.lossless = self.ends(long, self.time, &self.stream_words())?;
        let few = Impairment { loss: self.few_losses(), ..long };
        progress(&format!("a stream with few losses, {}", name(few)));
        measured.repaired = self.ends(few, self.time, &self.stream_words())?;
        for billionths in LOSSES {
            let loss = Chance::from_billionths(billionths).unwrap_or(Chance::NEVER);
            for (protocol, words) in PROTOCOLS {
                let network = Impairment { loss, ..self.impairment };
                measured.messages.push(self.messages(network, protocol, words, progress)?);
            }
        }
        measured.figures = measured.evaluate();
        Ok(measured)
    }

    /// Loss of packets for a stream with few losses.
    fn few_losses(&self) -> Chance {
        let rate = self.impairment.rate.map_or(FEW_RATE, |rate| rate.get() as f64);
        let packets = (rate * self.time.as_secs_f64() / PACKET_BITS).max(FEW_LOSSES);
        Chance::from_billionths((1e9 * FEW_LOSSES / packets) as u32).unwrap_or(Chance::NEVER)
    }

    fn path(&self, network: Impairment) -> Result<ImpairedPath, BenchError> {
        if self.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(BenchError::Stopped);
        }
        ImpairedPath::new(network, self.seed, Some(self.emulator))
    }

    fn stream_words(&self) -> Vec<String> {
        vec![format!("--seconds={}", self.time.as_secs_f64())]
    }

    fn ends(
        &self,
        network: Impairment,
        time: Duration,
        words: &[String],
    ) -> Result<[EndReport; 2], BenchError> {
        let path = self.path(network)?;
        let mut ends = Pair::of_ends(&path, words)?;
        ends.begin()?;
        ends.reports(time)
    }

    fn streams(&self, network: Impairment, progress: &dyn Fn(&str)) -> Result<Streams, BenchError> {
        let of = |what: &str| progress(&format!("{what}, {}", name(network)));
        of("a stream of TCP");
        let path = self.path(network)?;
        let tcp = Tcp::prepare(&path, self.time, "cubic")?.start()?.tcp(self.time)?;
        drop(path);
        of("a stream of ours");
        let ends = self.ends(network, self.time, &self.stream_words())?;
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
            ours: ends[1].goodput().mbit(),
            ends,
            tcp_beside: tcp_beside.mbit(),
            ours_beside: ours_beside.mbit(),
            fairness: fairness(tcp_beside.mbit(), ours_beside.mbit()),
            private: private.map(|(goodput, _)| goodput),
            private_share: private.map(|(goodput, rate)| goodput / rate),
        })
    }

    /// A TCP stream and an mpjdev stream through one path at the same time.
    fn both(&self, network: Impairment) -> Result<(Goodput, Goodput), BenchError> {
        let path = self.path(network)?;
        let mut ours = Pair::of_ends(&path, &self.stream_words())?;
        let tcp = Tcp::prepare(&path, self.time, "cubic")?.start()?;
        ours.begin()?;
        let ends = ours.reports(self.time)?;
        Ok((tcp.tcp(self.time)?, ends[1].goodput()))
    }

    fn messages(
        &self,
        network: Impairment,
        protocol: &str,
        words: &[&str],
        progress: &dyn Fn(&str),
    ) -> Result<Messages, BenchError> {
        progress(&format!("messages, {protocol}, {}", name(network)));
        let time = self.time / PART;
        let of =
            |own: [String; 2]| words.iter().map(|word| (*word).to_owned()).chain(own).collect::<Vec<_>>();
        let times = (time.as_secs_f64() * TRIPS).ceil().max(1.0);
        let words = of([format!("--times={times}"), "--octets=8".to_owned()]);
        let trips = self.ends(network, time, &words)?[0];
        let words = of([format!("--seconds={}", time.as_secs_f64()), format!("--octets={FITS}")]);
        let [sender, receiver] = self.ends(network, time, &words)?;
        Ok(Messages {
            network: name(network),
            protocol: protocol.to_owned(),
            round_trip_us: trips.nanos as f64 / 1e3 / trips.done.max(1) as f64,
            stream: receiver.goodput().mbit(),
            retransmitted: sender.retransmitted,
            sent: sender.sent + sender.retransmitted,
            pure_acks: receiver.pure_acks,
        })
    }
}

/// Name of a network in reports.
fn name(network: Impairment) -> String {
    let text = network.to_string();
    if text.is_empty() { "no impairment".to_owned() } else { text }
}

/// Jain's index of two values: 1 if they are equal, one half if one is 0.
fn fairness(one: f64, other: f64) -> f64 {
    let squares = 2.0 * (one * one + other * other);
    if squares > 0.0 { (one + other).powi(2) / squares } else { 0.0 }
}

/// Windows of a stream: its time divided by the RTT.
fn windows(sender: &EndReport, receiver: &EndReport) -> f64 {
    (receiver.nanos as f64 / 1e3 / sender.rtt_us.max(1) as f64).max(1.0)
}

impl Measured {
    /// Targets of this measurement.
    fn evaluate(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        let mut add = |title: String, limit: Limit, measured: Option<f64>| {
            figures.push(Figure {
                title,
                ..Target { title: "", quantity: Quantity::Micros(0), limit }.figure(measured)
            });
        };
        for streams in &self.streams {
            let network = &streams.network;
            add(format!("ours by TCP, {network}"), Limit::Least(0.9), Some(streams.ours / streams.tcp));
            add(format!("fairness beside TCP, {network}"), Limit::Least(0.9), Some(streams.fairness));
            if let Some(share) = streams.private_share {
                add(format!("share of a private link, {network}"), Limit::Least(0.7), Some(share));
            }
            let sender = &streams.ends[0];
            let by_timer = sender.timeouts as f64 / sender.retransmitted.max(1) as f64;
            add(format!("timeouts by retransmitted packets, {network}"), Limit::None, Some(by_timer));
        }
        let [sender, receiver] = &self.lossless;
        add("packets retransmitted without loss".into(), Limit::Most(0.0), Some(sender.retransmitted as f64));
        let acks = receiver.pure_acks as f64 / windows(sender, receiver);
        add("pure acks per window, without loss".into(), Limit::Most(5.0), Some(acks));
        let sender = &self.repaired[0];
        let timers = (sender.retransmitted > 0).then_some(sender.timeouts as f64);
        add("timeouts with few losses".into(), Limit::Most(0.0), timers);
        figures
    }

    /// Adds the environment of the run.
    pub fn with_environment(self, environment: Environment) -> Measured {
        Measured { environment: Some(environment), ..self }
    }

    /// Environment of the run.
    pub fn environment(&self) -> Option<&Environment> {
        self.environment.as_ref()
    }

    /// Emulator of the impairment.
    pub fn emulator(&self) -> &str {
        &self.emulator
    }

    /// Figures of all targets.
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// Lines of the table of streams, with its head.
    pub fn stream_lines(&self) -> Vec<Vec<String>> {
        let head =
            ["Mbit/s", "TCP CUBIC", "ours", "ratio", "TCP beside", "ours beside", "Jain", "private link"];
        let line = |row: &Streams| {
            vec![
                row.network.clone(),
                mbit(row.tcp),
                mbit(row.ours),
                format!("{:.2}", row.ours / row.tcp),
                mbit(row.tcp_beside),
                mbit(row.ours_beside),
                format!("{:.3}", row.fairness),
                row.private.map_or("-".to_owned(), mbit),
            ]
        };
        let head = head.map(str::to_owned).to_vec();
        std::iter::once(head).chain(self.streams.iter().map(line)).collect()
    }

    /// Lines of the table of messages, with its head.
    pub fn message_lines(&self) -> Vec<Vec<String>> {
        let head = [
            "messages",
            "protocol",
            "8 octets, round trip",
            "stream, Mbit/s",
            "retransmitted",
            "sent",
            "pure acks",
        ];
        let line = |row: &Messages| {
            vec![
                row.network.clone(),
                row.protocol.clone(),
                format!("{:.1} ms", row.round_trip_us / 1e3),
                mbit(row.stream),
                row.retransmitted.to_string(),
                row.sent.to_string(),
                row.pure_acks.to_string(),
            ]
        };
        let head = head.map(str::to_owned).to_vec();
        std::iter::once(head).chain(self.messages.iter().map(line)).collect()
    }

    /// All tables as text.
    pub fn table(&self) -> String {
        let (streams, messages) = (aligned(&self.stream_lines()), aligned(&self.message_lines()));
        let figures = figures::table(&self.figures);
        format!("Through {}, the same each way:\n\n{streams}\n{messages}\n{figures}", self.emulator)
    }
}

fn mbit(value: f64) -> String {
    format!("{value:.1}")
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
        let sender =
            EndReport { sent: 1000, rtt_us: 10_000, timeouts: 1, retransmitted: 4, ..EndReport::default() };
        let receiver = EndReport { nanos: 1_000_000_000, pure_acks: 400, ..EndReport::default() };
        let streams = Streams {
            network: "loss=1%".into(),
            tcp: 10.0,
            ours: 8.0,
            ends: [sender, receiver],
            tcp_beside: 5.0,
            ours_beside: 5.0,
            fairness: 1.0,
            private: Some(70.0),
            private_share: Some(0.7),
        };
        let lossless = [EndReport { retransmitted: 0, ..sender }, receiver];
        let measured = Measured {
            streams: vec![streams],
            lossless,
            repaired: [sender, receiver],
            ..Measured::default()
        };
        let figures = measured.evaluate();
        let values: Vec<f64> = figures.iter().filter_map(|figures| figures.measured).collect();
        assert_eq!(values, [0.8, 1.0, 0.7, 0.25, 0.0, 4.0, 1.0]);
        let text = Measured { figures, ..measured }.table();
        assert!(text.contains("Of 6 figures 4 are reached, 2 missed, 0 not measured."), "{text}");
        assert!(text.contains("loss=1%       10.0   8.0   0.80"), "{text}");
    }
}
