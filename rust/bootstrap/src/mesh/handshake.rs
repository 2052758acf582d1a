//! The handshake of two hosts on a new connection, without I/O.
//!
//! ```text
//! to a foreign host                      between hosts of this project
//!
//! connector          acceptor            connector                          acceptor
//!     | number  ------> |                    | number, greeting, nonce ------> |
//!     | packets <-----> |                    | <--------------- greeting, nonce|
//!                                            | proof of the connector -------> |
//!                                            | <---------- proof, or a refusal |
//!                                            | packets <--------------------> |
//! ```
//!
//! | field | octets | contents |
//! |---|---|---|
//! | number | 4 | the connector's global host number, big-endian (IMPI 6) |
//! | greeting | 8 | `mpjmesh` and a version, which excludes other programs |
//! | nonce | 16 | random |
//! | proof | 32 | HMAC-SHA-256 under the key, over the fields below |
//! | refusal | 32 | zeros instead of the acceptor's proof: the connector's proof was wrong |
//!
//! A proof is computed over a label of 24 octets that names the side, the connector's number, the acceptor's
//! number, the connector's nonce, the acceptor's nonce, and the identity of the job. The connector proves
//! itself first, so an unauthenticated client gets no proof to try keys on. Numbers are IMPI's; the rest is
//! this project's choice.

use std::fmt;

use bytes::{Buf, BufMut, BytesMut};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

/// Octets of a host's number.
pub const NUMBER_LEN: usize = 4;
/// Octets of a nonce.
pub const NONCE_LEN: usize = 16;
/// Octets of a greeting and of the nonce behind it.
pub const GREETING_LEN: usize = GREETING.len() + NONCE_LEN;
/// Octets of a proof.
pub const PROOF_LEN: usize = 32;

/// Random octets that are used once.
pub type Nonce = [u8; NONCE_LEN];

/// The first octets of a host of this project, after its number.
pub const GREETING: [u8; 8] = *b"mpjmesh\x01";
const CONNECTOR: [u8; 24] = *b"mpjdev mesh connector\0\0\0";
const ACCEPTOR: [u8; 24] = *b"mpjdev mesh acceptor\0\0\0\0";
/// The notice that the other side's proof was wrong. No key gives this proof, except one in 2^256.
pub const REFUSAL: [u8; PROOF_LEN] = [0; PROOF_LEN];

/// Two hosts of this project and their common secrets.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    /// Number of the host that connects.
    pub connector: u32,
    /// Number of the host that accepts.
    pub acceptor: u32,
    /// The key; empty without one.
    pub key: &'a [u8],
    /// The identity of the job.
    pub job: &'a [u8],
}

/// The key is not printed.
impl fmt::Debug for Pair<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pair {{ connector: {}, acceptor: {}, .. }}", self.connector, self.acceptor)
    }
}

/// A violation of the handshake by the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// There is no greeting of this version: another program, or another version.
    #[error("it sent no mpjdev greeting, but {0:02x?}")]
    NoGreeting([u8; 8]),
    /// The own nonce was sent back.
    #[error("it sent back the nonce that it had received")]
    Reflected,
    /// The proof is wrong.
    #[error("its proof is wrong: it has another key, or belongs to another job")]
    WrongProof,
    /// The acceptor reports that the connector's proof is wrong.
    #[error("it refused this host's proof: it has another key, or belongs to another job")]
    Refused,
}

/// One end of the handshake on one connection.
///
/// The caller runs a loop: it sends [`output`](Self::output) and reports the sent length to
/// [`sent`](Self::sent), then passes at most [`needed`](Self::needed) received octets to
/// [`handle_octets`](Self::handle_octets), never more: the octets behind them are packets. When an acceptor
/// has the [`number`](Self::number), the caller decides by [`admit_foreign`](Self::admit_foreign) or
/// [`admit_ours`](Self::admit_ours). After a fault the remaining output may be sent, and nothing else
/// follows.
#[derive(Clone, Debug)]
pub struct Handshake<'a> {
    state: State<'a>,
    /// The received octets of the next message.
    input: BytesMut,
    /// The octets to send.
    output: BytesMut,
}

#[derive(Clone, Copy, Debug)]
enum State<'a> {
    /// The acceptor waits for the number.
    Number,
    /// The acceptor waits for the decision about the number.
    Unknown(u32),
    /// Waits for the other side's nonce.
    Greeting(Challenge<'a>),
    /// Waits for the other side's proof, with its nonce.
    Proof(Challenge<'a>, Nonce),
    /// No further octets are expected.
    Complete,
    /// The handshake has failed.
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
    /// The end that connects to a foreign host: it sends its number only.
    pub fn connect_foreign(connector: u32) -> Self {
        let mut handshake = Handshake::new(State::Complete);
        handshake.output.put_u32(connector);
        handshake
    }

    /// The end that connects to a host of this project. The nonce is random and used nowhere else.
    pub fn connect_ours(pair: Pair<'a>, nonce: Nonce) -> Self {
        let mut handshake = Handshake::new(State::Greeting(Challenge { pair, side: Side::Connector, nonce }));
        handshake.output.put_u32(pair.connector);
        handshake.push_greeting(&nonce);
        handshake
    }

    /// The end that accepts, without any knowledge of the connector.
    pub fn accept() -> Self {
        Handshake::new(State::Number)
    }

    fn new(state: State<'a>) -> Self {
        Handshake { state, input: BytesMut::new(), output: BytesMut::new() }
    }

    /// Octets that may be taken from the connection now. 0 when no more are expected, and while there is
    /// output: the next input is an answer to it.
    pub fn needed(&self) -> usize {
        if self.output().is_empty() { self.message_len() - self.input.len() } else { 0 }
    }

    /// The received number, until the caller has decided about it.
    pub fn number(&self) -> Option<u32> {
        match self.state {
            State::Unknown(number) => Some(number),
            _ => None,
        }
    }

    /// Octets to be sent now.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Whether the handshake is complete: packets follow on the connection.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Complete) && self.output().is_empty()
    }

    /// Records that `len` octets of the output were sent.
    ///
    /// # Panics
    /// `len` exceeds the output.
    pub fn sent(&mut self, len: usize) {
        assert!(len <= self.output.len(), "{len} octets sent of {}", self.output.len());
        self.output.advance(len);
    }

    /// Handles received octets.
    ///
    /// # Errors
    /// The other end is no host of this project, or has another key.
    ///
    /// # Panics
    /// There are more octets than needed.
    pub fn handle_octets(&mut self, octets: &[u8]) -> Result<(), Fault> {
        assert!(octets.len() <= self.needed(), "{} octets where {} are needed", octets.len(), self.needed());
        self.input.put_slice(octets);
        if octets.is_empty() || self.needed() > 0 {
            return Ok(());
        }
        let message = self.input.split();
        match self.handle_message(&message) {
            Ok(state) => self.state = state,
            Err(fault) => {
                self.state = State::Failed;
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Accepts the number as a foreign host's, which completes the handshake.
    ///
    /// # Panics
    /// There is no number to decide about.
    pub fn admit_foreign(&mut self) {
        assert!(self.number().is_some(), "no number to decide about");
        self.state = State::Complete;
    }

    /// Accepts the number as that of a host of this project, which has to prove it. The nonce is random and
    /// used nowhere else.
    ///
    /// # Panics
    /// There is no number to decide about, or the pair's connector has another.
    pub fn admit_ours(&mut self, pair: Pair<'a>, nonce: Nonce) {
        assert_eq!(self.number(), Some(pair.connector), "the number to decide about");
        self.state = State::Greeting(Challenge { pair, side: Side::Acceptor, nonce });
    }

    /// Octets of the next message.
    fn message_len(&self) -> usize {
        match self.state {
            State::Number => NUMBER_LEN,
            State::Greeting(_) => GREETING_LEN,
            State::Proof(..) => PROOF_LEN,
            State::Unknown(_) | State::Complete | State::Failed => 0,
        }
    }

    /// Handles a complete message; returns the next state.
    fn handle_message(&mut self, mut message: &[u8]) -> Result<State<'a>, Fault> {
        match self.state {
            State::Number => Ok(State::Unknown(message.get_u32())),
            State::Greeting(challenge) => self.handle_greeting(challenge, message),
            State::Proof(challenge, nonce) => self.handle_proof(challenge, nonce, message),
            State::Unknown(_) | State::Complete | State::Failed => Ok(self.state),
        }
    }

    fn handle_greeting(&mut self, challenge: Challenge<'a>, mut message: &[u8]) -> Result<State<'a>, Fault> {
        let greeting = message.get_u64().to_be_bytes();
        if greeting != GREETING {
            return Err(Fault::NoGreeting(greeting));
        }
        let nonce: Nonce = message.get_u128().to_be_bytes();
        if nonce == challenge.nonce {
            return Err(Fault::Reflected);
        }
        match challenge.side {
            Side::Connector => self.output.put_slice(&challenge.proof(Side::Connector, nonce)),
            Side::Acceptor => self.push_greeting(&challenge.nonce),
        }
        Ok(State::Proof(challenge, nonce))
    }

    fn handle_proof(
        &mut self,
        challenge: Challenge<'a>,
        nonce: Nonce,
        proof: &[u8],
    ) -> Result<State<'a>, Fault> {
        match challenge.side {
            Side::Connector if proof == REFUSAL => Err(Fault::Refused),
            Side::Connector if challenge.is_proof(Side::Acceptor, nonce, proof) => Ok(State::Complete),
            Side::Acceptor if challenge.is_proof(Side::Connector, nonce, proof) => {
                self.output.put_slice(&challenge.proof(Side::Acceptor, nonce));
                Ok(State::Complete)
            }
            Side::Connector => Err(Fault::WrongProof),
            Side::Acceptor => {
                self.output.put_slice(&REFUSAL);
                Err(Fault::WrongProof)
            }
        }
    }

    fn push_greeting(&mut self, nonce: &Nonce) {
        self.output.put_slice(&GREETING);
        self.output.put_slice(nonce);
    }
}

impl Challenge<'_> {
    fn proof(&self, side: Side, theirs: Nonce) -> [u8; PROOF_LEN] {
        self.mac(side, theirs).finalize().into_bytes().into()
    }

    /// Checks a proof in constant time.
    fn is_proof(&self, side: Side, theirs: Nonce, proof: &[u8]) -> bool {
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
        // The identity is last, since it may have any length.
        mac.update(self.pair.job);
        mac
    }
}
