//! What two hosts tell each other on a new connection, without any I/O: octets in, octets out.
//!
//! ```text
//! to a foreign host                      between two of ours
//!
//! connector          acceptor            connector                          acceptor
//!     | number  ------> |                    | number, greeting, nonce ------> |
//!     | packets <-----> |                    | <--------------- greeting, nonce|
//!                                            | proof of the connector -------> |
//!                                            | <---------- proof, or a refusal |
//!                                            | packets <--------------------> |
//! ```
//!
//! | what | octets | it is |
//! |---|---|---|
//! | number | 4 | the connector's global host number, big-endian (IMPI 6) |
//! | greeting | 8 | `mpjmesh` and a version, so that another program is told from another key |
//! | nonce | 16 | random |
//! | proof | 32 | HMAC-SHA-256 under the key, of what is below |
//! | refusal | 32 | zeros, in the place of the acceptor's proof: the connector's was wrong |
//!
//! A proof is made of a label of 24 octets that names the side, the connector's number, the acceptor's number, the
//! connector's nonce, the acceptor's nonce, and what tells the job from others. The one who connects proves itself first:
//! a stranger who comes by learns nothing to try keys on. Numbers are IMPI's, the rest is a choice of ours.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

/// Octets of a host's number.
pub const NUMBER_LEN: usize = 4;
/// Octets of a nonce.
pub const NONCE_LEN: usize = 16;
/// Octets of a greeting and the nonce behind it.
pub const GREETING_LEN: usize = GREETING.len() + NONCE_LEN;
/// Octets of a proof.
pub const PROOF_LEN: usize = 32;

/// Random octets that are used once.
pub type Nonce = [u8; NONCE_LEN];

/// What a host of ours says before anything else, but for its number.
pub const GREETING: [u8; 8] = *b"mpjmesh\x01";
const CONNECTOR: [u8; 24] = *b"mpjdev mesh connector\0\0\0";
const ACCEPTOR: [u8; 24] = *b"mpjdev mesh acceptor\0\0\0\0";
/// Says that the other's proof was wrong. No key gives this proof, but for one in 2^256.
pub const REFUSAL: [u8; PROOF_LEN] = [0; PROOF_LEN];
/// The longest that is said at once: a proof, or what a connector begins with.
const OUTPUT_MAX: usize =
    if PROOF_LEN > NUMBER_LEN + GREETING_LEN { PROOF_LEN } else { NUMBER_LEN + GREETING_LEN };

/// Two hosts of ours and what they have in common.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    /// Number of the one that connects.
    pub connector: u32,
    /// Number of the one that accepts.
    pub acceptor: u32,
    /// The key; empty where none is needed.
    pub key: &'a [u8],
    /// What tells the job from others.
    pub job: &'a [u8],
}

/// The key is never shown.
impl fmt::Debug for Pair<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pair {{ connector: {}, acceptor: {}, .. }}", self.connector, self.acceptor)
    }
}

/// What came is not what a host of ours says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// Something else than a greeting: another program, or another version.
    #[error("it does not greet as hosts of ours do, but begins with {0:02x?}")]
    NoGreeting([u8; 8]),
    /// One's own nonce came back.
    #[error("it sent back the nonce that it was sent")]
    Reflected,
    /// The proof is wrong.
    #[error("its proof is wrong: it has another key, or belongs to another job")]
    WrongProof,
    /// The acceptor says that the connector's proof is wrong.
    #[error("it refused the proof: it has another key, or belongs to another job")]
    Refused,
}

/// One end of the exchange on one connection.
///
/// In a loop: whoever holds it sends [`output`](Self::output) and says how much of it went by [`sent`](Self::sent), then
/// gives [`handle_octets`](Self::handle_octets) at most [`needed`](Self::needed) octets of what came, never more: what is
/// behind them are packets. When an acceptor knows the [`number`](Self::number) it must be told who that is, by
/// [`admit_foreign`](Self::admit_foreign) or [`admit_ours`](Self::admit_ours). After a fault the output that is left may
/// be sent, and nothing else follows.
#[derive(Clone, Debug)]
pub struct Handshake<'a> {
    state: State<'a>,
    input: [u8; PROOF_LEN],
    input_len: usize,
    output: [u8; OUTPUT_MAX],
    output_range: (usize, usize),
}

#[derive(Clone, Copy, Debug)]
enum State<'a> {
    /// The acceptor waits for the number.
    Number,
    /// The acceptor waits for a word on it.
    Unknown(u32),
    /// Waits for the other's nonce.
    Greeting(Challenge<'a>),
    /// Waits for the other's proof, with its nonce.
    Proof(Challenge<'a>, Nonce),
    /// Nothing more is to come.
    Complete,
    /// It came to a fault.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Connector,
    Acceptor,
}

#[derive(Clone, Copy, Debug)]
struct Challenge<'a> {
    pair: Pair<'a>,
    side: Side,
    nonce: Nonce,
}

impl<'a> Handshake<'a> {
    /// The end that connects to a foreign host: it says its number, and that is all.
    pub fn connect_foreign(connector: u32) -> Self {
        let mut handshake = Handshake::new(State::Complete);
        handshake.say(&connector.to_be_bytes());
        handshake
    }

    /// The end that connects to one of ours. The nonce is random and used nowhere else.
    pub fn connect_ours(pair: Pair<'a>, nonce: Nonce) -> Self {
        let mut handshake = Handshake::new(State::Greeting(Challenge { pair, side: Side::Connector, nonce }));
        handshake.say(&pair.connector.to_be_bytes());
        handshake.greet(&nonce);
        handshake
    }

    /// The end that accepts, which knows nothing yet.
    pub fn accept() -> Self {
        Handshake::new(State::Number)
    }

    fn new(state: State<'a>) -> Self {
        Handshake {
            state,
            input: [0; PROOF_LEN],
            input_len: 0,
            output: [0; OUTPUT_MAX],
            output_range: (0, 0),
        }
    }

    /// Octets that may be taken from the connection now; 0 when there are none to come, and while there is output: what
    /// comes is an answer to it.
    pub fn needed(&self) -> usize {
        if self.output().is_empty() { self.message_len() - self.input_len } else { 0 }
    }

    /// The number that came, while nobody has said yet whose it is.
    pub fn number(&self) -> Option<u32> {
        match self.state {
            State::Unknown(number) => Some(number),
            _ => None,
        }
    }

    /// Octets to be sent now.
    pub fn output(&self) -> &[u8] {
        let (begin, end) = self.output_range;
        &self.output[begin..end]
    }

    /// Whether all was said and sent: what follows on the connection are packets.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Complete) && self.output().is_empty()
    }

    /// So many octets of the output were sent.
    ///
    /// # Panics
    /// They are more than there are.
    pub fn sent(&mut self, len: usize) {
        assert!(len <= self.output().len(), "{len} octets sent of {}", self.output().len());
        self.output_range.0 += len;
        if self.output().is_empty() {
            self.output_range = (0, 0);
        }
    }

    /// These octets came.
    ///
    /// # Errors
    /// The other end is none of ours, or has another key.
    ///
    /// # Panics
    /// They are more than are needed.
    pub fn handle_octets(&mut self, octets: &[u8]) -> Result<(), Fault> {
        assert!(octets.len() <= self.needed(), "{} octets where {} are needed", octets.len(), self.needed());
        self.input[self.input_len..][..octets.len()].copy_from_slice(octets);
        self.input_len += octets.len();
        if octets.is_empty() || self.needed() > 0 {
            return Ok(());
        }
        self.input_len = 0;
        match self.handle_message() {
            Ok(state) => self.state = state,
            Err(fault) => {
                self.state = State::Failed;
                return Err(fault);
            }
        }
        Ok(())
    }

    /// The number is a foreign host's: there is nothing more to say.
    ///
    /// # Panics
    /// There is no number to judge.
    pub fn admit_foreign(&mut self) {
        assert!(self.number().is_some(), "no number to judge");
        self.state = State::Complete;
    }

    /// The number is that of one of ours, which has to prove it. The nonce is random and used nowhere else.
    ///
    /// # Panics
    /// There is no number to judge, or the pair's connector has another.
    pub fn admit_ours(&mut self, pair: Pair<'a>, nonce: Nonce) {
        assert_eq!(self.number(), Some(pair.connector), "the number to judge");
        self.state = State::Greeting(Challenge { pair, side: Side::Acceptor, nonce });
    }

    /// Octets of what comes next.
    fn message_len(&self) -> usize {
        match self.state {
            State::Number => NUMBER_LEN,
            State::Greeting(_) => GREETING_LEN,
            State::Proof(..) => PROOF_LEN,
            State::Unknown(_) | State::Complete | State::Failed => 0,
        }
    }

    /// What came next is whole: what follows from it.
    fn handle_message(&mut self) -> Result<State<'a>, Fault> {
        match self.state {
            State::Number => Ok(State::Unknown(u32::from_be_bytes(first(&self.input)))),
            State::Greeting(challenge) => self.handle_greeting(challenge),
            State::Proof(challenge, nonce) => self.handle_proof(challenge, nonce),
            State::Unknown(_) | State::Complete | State::Failed => Ok(self.state),
        }
    }

    fn handle_greeting(&mut self, challenge: Challenge<'a>) -> Result<State<'a>, Fault> {
        let greeting: [u8; GREETING.len()] = first(&self.input);
        if greeting != GREETING {
            return Err(Fault::NoGreeting(greeting));
        }
        let nonce: Nonce = first(&self.input[GREETING.len()..]);
        if nonce == challenge.nonce {
            return Err(Fault::Reflected);
        }
        match challenge.side {
            Side::Connector => self.say(&challenge.proof(Side::Connector, nonce)),
            Side::Acceptor => self.greet(&challenge.nonce),
        }
        Ok(State::Proof(challenge, nonce))
    }

    fn handle_proof(&mut self, challenge: Challenge<'a>, nonce: Nonce) -> Result<State<'a>, Fault> {
        match challenge.side {
            Side::Connector if self.input == REFUSAL => Err(Fault::Refused),
            Side::Connector if challenge.is_proof(Side::Acceptor, nonce, &self.input) => Ok(State::Complete),
            Side::Acceptor if challenge.is_proof(Side::Connector, nonce, &self.input) => {
                self.say(&challenge.proof(Side::Acceptor, nonce));
                Ok(State::Complete)
            }
            Side::Connector => Err(Fault::WrongProof),
            Side::Acceptor => {
                self.say(&REFUSAL);
                Err(Fault::WrongProof)
            }
        }
    }

    fn greet(&mut self, nonce: &Nonce) {
        self.say(&GREETING);
        self.say(nonce);
    }

    fn say(&mut self, octets: &[u8]) {
        let end = self.output_range.1;
        self.output[end..end + octets.len()].copy_from_slice(octets);
        self.output_range.1 += octets.len();
    }
}

impl Challenge<'_> {
    fn proof(&self, side: Side, theirs: Nonce) -> [u8; PROOF_LEN] {
        self.mac(side, theirs).finalize().into_bytes().into()
    }

    /// Takes the same time for all that is no proof.
    fn is_proof(&self, side: Side, theirs: Nonce, proof: &[u8; PROOF_LEN]) -> bool {
        self.mac(side, theirs).verify_slice(proof).is_ok()
    }

    fn mac(&self, side: Side, theirs: Nonce) -> Hmac<Sha256> {
        let (connector, acceptor) = match self.side {
            Side::Connector => (self.nonce, theirs),
            Side::Acceptor => (theirs, self.nonce),
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(self.pair.key).expect("a key of any length");
        mac.update(if side == Side::Connector { &CONNECTOR } else { &ACCEPTOR });
        mac.update(&self.pair.connector.to_be_bytes());
        mac.update(&self.pair.acceptor.to_be_bytes());
        mac.update(&connector);
        mac.update(&acceptor);
        // Last, since it is of any length.
        mac.update(self.pair.job);
        mac
    }
}

fn first<const N: usize>(octets: &[u8]) -> [u8; N] {
    octets[..N].try_into().expect("as many octets")
}
