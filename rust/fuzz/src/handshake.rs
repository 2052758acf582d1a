//! Target of the handshake of two hosts on a new connection.

use mpjdev_bootstrap::mesh::handshake::{
    Fault, GREETING_LEN, Handshake, NONCE_LEN, NUMBER_LEN, Nonce, PROOF_LEN, Pair,
};

const PAIR: Pair<'_> =
    Pair { connector: 7, acceptor: 2, key: b"a key of the fuzz target", job: b"a job of it" };
const NONCE: Nonce = [0xa5; NONCE_LEN];
/// Octets of the greeting before the nonce.
const BEFORE_NONCE: usize = GREETING_LEN - NONCE_LEN;

/// One end of the handshake receives the input. The first octet selects the end.
///
/// Invariants: the end consumes and sends no octet beyond the handshake. Its result does not depend on the
/// division of the input. The handshake is complete if and only if the octets are those of a host that has
/// the key.
pub fn handshake(input: &[u8]) {
    let Some((side, octets)) = input.split_first() else { return };
    let is_acceptor = side % 2 == 1;
    let whole = feed(begin(is_acceptor), octets, PROOF_LEN);
    assert_eq!(feed(begin(is_acceptor), octets, 1), whole, "octet by octet");
    assert_eq!(feed(begin(is_acceptor), octets, 7), whole, "in pieces");
    let sent_max = NUMBER_LEN + GREETING_LEN + PROOF_LEN;
    assert!(whole.taken <= sent_max && whole.sent_octets.len() <= sent_max);
    let number = octets.get(..NUMBER_LEN).filter(|_| is_acceptor);
    if number.is_some_and(|number| number != PAIR.connector.to_be_bytes()) {
        assert!(
            whole.is_complete && whole.taken == NUMBER_LEN && whole.sent_octets.is_empty(),
            "a foreign host"
        );
        return;
    }
    let honest = honest(is_acceptor, octets);
    let is_honest = honest.is_some_and(|honest| octets.starts_with(&honest));
    assert_eq!(whole.is_complete, is_honest, "{:?}", whole.fault);
}

/// Result of one end.
#[derive(Debug, PartialEq, Eq)]
struct Exchange {
    taken: usize,
    sent_octets: Vec<u8>,
    fault: Option<Fault>,
    is_complete: bool,
}

fn begin(is_acceptor: bool) -> Handshake<'static> {
    if is_acceptor { Handshake::accept() } else { Handshake::connect_ours(PAIR, NONCE) }
}

fn feed(mut end: Handshake<'_>, octets: &[u8], most: usize) -> Exchange {
    let mut exchange = Exchange { taken: 0, sent_octets: Vec::new(), fault: None, is_complete: false };
    loop {
        let output = end.output().len();
        exchange.sent_octets.extend(end.output());
        end.sent(output);
        if let Some(number) = end.number() {
            if number == PAIR.connector { end.admit_ours(PAIR, NONCE) } else { end.admit_foreign() }
        }
        let rest = &octets[exchange.taken..];
        let piece = &rest[..rest.len().min(end.needed()).min(most)];
        if piece.is_empty() {
            exchange.is_complete = end.is_complete();
            return exchange;
        }
        assert!(exchange.fault.is_none(), "it consumes octets after a fault");
        exchange.taken += piece.len();
        exchange.fault = end.handle_octets(piece).err();
    }
}

/// Octets of a host that has the key, for the nonce in these octets. `None` if they are too short.
fn honest(hears_acceptor: bool, octets: &[u8]) -> Option<Vec<u8>> {
    let nonce_at = BEFORE_NONCE + if hears_acceptor { NUMBER_LEN } else { 0 };
    let nonce: Nonce = octets.get(nonce_at..nonce_at + NONCE_LEN)?.try_into().ok()?;
    let mut here = begin(hears_acceptor);
    let mut there = if hears_acceptor { Handshake::connect_ours(PAIR, nonce) } else { Handshake::accept() };
    let mut sent_octets = Vec::new();
    loop {
        let (forth, back) = (there.output().to_vec(), here.output().to_vec());
        if forth.is_empty() && back.is_empty() {
            return there.is_complete().then_some(sent_octets);
        }
        there.sent(forth.len());
        here.sent(back.len());
        sent_octets.extend(&forth);
        feed_honest(&mut here, &forth, NONCE).ok()?;
        feed_honest(&mut there, &back, nonce).ok()?;
    }
}

/// Passes octets to an honest end. The nonce is that of an acceptor.
fn feed_honest(end: &mut Handshake<'_>, octets: &[u8], nonce: Nonce) -> Result<(), Fault> {
    for octet in octets {
        end.handle_octets(&[*octet])?;
        if end.number().is_some() {
            end.admit_ours(PAIR, nonce);
        }
    }
    Ok(())
}
