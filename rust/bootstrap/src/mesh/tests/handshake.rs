//! Tests of the handshake between two ends, octet by octet. The proofs come from another implementation of
//! HMAC-SHA-256.

use super::super::handshake::{Fault, GREETING_LEN, Handshake, NONCE_LEN, PROOF_LEN, Pair};

const PAIR: Pair<'_> = Pair { connector: 3, acceptor: 1, key: b"secret key", job: b"job 7" };
const NONCE_3: [u8; NONCE_LEN] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const NONCE_1: [u8; NONCE_LEN] = [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31];
const PROOF_OF_3: &str = "3551774998bba31cc6a0989ca2ebfd479e5b40ed6b8eb11f64967b15e6dae9d5";
const PROOF_OF_1: &str = "66e3b646795116e16d8e0222d5ceaf35c103416a2af2289c4cb126f02cf018e7";
/// The proof without a key.
const OPEN_PROOF_OF_3: &str = "75415a78fd8f5c733d115de08d7ae33f7f5d2a9a05e82d19e7ecc4ec73c5f671";

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().map(|c| c.to_digit(16).expect("hexadecimal")).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// The first octets of a host, up to its nonce.
fn greeting(nonce: [u8; NONCE_LEN]) -> Vec<u8> {
    [b"mpjmesh\x01".as_slice(), &nonce].concat()
}

/// All current output of this end.
fn take_output(end: &mut Handshake<'_>) -> Vec<u8> {
    let octets = end.output().to_vec();
    end.sent(octets.len());
    octets
}

/// Passes octets to this end, one by one.
fn feed(end: &mut Handshake<'_>, octets: &[u8]) -> Result<(), Fault> {
    octets.iter().try_for_each(|octet| end.handle_octets(&[*octet]))
}

/// An acceptor that has received the number 3, and accepts it as that of a host of this project.
fn acceptor() -> Handshake<'static> {
    let mut end = Handshake::accept();
    feed(&mut end, &[0, 0, 0, 3]).expect("a number");
    end.admit_ours(PAIR, NONCE_1);
    end
}

/// A connector that has sent its first octets.
fn connector(pair: Pair<'static>) -> Handshake<'static> {
    let mut end = Handshake::connect_ours(pair, NONCE_3);
    take_output(&mut end);
    end
}

/// Runs both ends until neither has output; returns the results of the connector and the acceptor.
fn run_both<'a>(
    connector: &mut Handshake<'a>,
    acceptor: &mut Handshake<'a>,
    pair: Pair<'a>,
) -> [Result<(), Fault>; 2] {
    let mut ends = [Ok(()), Ok(())];
    loop {
        let (forth, back) = (take_output(connector), take_output(acceptor));
        if forth.is_empty() && back.is_empty() {
            return ends;
        }
        ends[0] = ends[0].and(feed(connector, &back));
        for octet in forth {
            ends[1] = ends[1].and(acceptor.handle_octets(&[octet]));
            if acceptor.number().is_some() {
                acceptor.admit_ours(pair, NONCE_1);
            }
        }
    }
}

/// IMPI 6 and a capture: `host 1 -> host 0: 00000001`, and no answer.
#[test]
fn handshake_with_a_foreign_host_is_the_number_only() {
    let mut one = Handshake::connect_foreign(1);
    assert_eq!((one.needed(), one.is_complete()), (0, false));
    assert_eq!(take_output(&mut one), [0, 0, 0, 1]);
    assert!(one.is_complete());

    let mut zero = Handshake::accept();
    assert_eq!(zero.needed(), 4);
    feed(&mut zero, &[0, 0, 0]).expect("three octets");
    assert_eq!((zero.needed(), zero.number()), (1, None));
    feed(&mut zero, &[1]).expect("the last");
    assert_eq!((zero.needed(), zero.number(), zero.is_complete()), (0, Some(1), false));
    zero.admit_foreign();
    assert_eq!((zero.needed(), zero.number(), zero.is_complete()), (0, None, true));
    assert!(zero.output().is_empty());
}

#[test]
fn handshake_has_the_recorded_octets() {
    let mut three = Handshake::connect_ours(PAIR, NONCE_3);
    assert_eq!(three.needed(), 0, "it sends first");
    assert_eq!(take_output(&mut three), [vec![0, 0, 0, 3], greeting(NONCE_3)].concat());
    assert_eq!(three.needed(), GREETING_LEN);
    feed(&mut three, &greeting(NONCE_1)).expect("a greeting");
    assert_eq!(three.needed(), 0, "it has output");
    assert_eq!(take_output(&mut three), octets(PROOF_OF_3));
    assert_eq!((three.needed(), three.is_complete()), (PROOF_LEN, false));
    feed(&mut three, &octets(PROOF_OF_1)).expect("a proof");
    assert_eq!((three.needed(), three.is_complete()), (0, true));

    let mut one = acceptor();
    assert_eq!((one.output(), one.needed()), ([].as_slice(), GREETING_LEN));
    feed(&mut one, &greeting(NONCE_3)).expect("a greeting");
    assert_eq!(take_output(&mut one), greeting(NONCE_1));
    assert_eq!((one.needed(), one.is_complete()), (PROOF_LEN, false));
    feed(&mut one, &octets(PROOF_OF_3)).expect("a proof");
    assert!(!one.is_complete(), "its own proof is not sent");
    assert_eq!(take_output(&mut one), octets(PROOF_OF_1));
    assert_eq!((one.needed(), one.is_complete()), (0, true));
}

#[test]
fn output_is_sent_in_pieces() {
    let mut three = Handshake::connect_ours(PAIR, NONCE_3);
    let mut all = Vec::new();
    while let Some(octet) = three.output().first() {
        all.push(*octet);
        assert_eq!(three.needed(), 0);
        three.sent(1);
    }
    assert_eq!(all, [vec![0, 0, 0, 3], greeting(NONCE_3)].concat());
    assert_eq!(three.needed(), GREETING_LEN);
}

#[test]
fn proof_without_a_key_is_made_with_the_empty_key() {
    let open = Pair { key: b"", ..PAIR };
    let mut three = connector(open);
    feed(&mut three, &greeting(NONCE_1)).expect("a greeting");
    assert_eq!(take_output(&mut three), octets(OPEN_PROOF_OF_3));
}

#[test]
fn handshake_with_another_key_job_or_number_fails() {
    let others = [
        Pair { key: b"secret keys", ..PAIR },
        Pair { key: b"", ..PAIR },
        Pair { job: b"job 8", ..PAIR },
        Pair { acceptor: 2, ..PAIR },
    ];
    let run = |pair| {
        let (mut connector, mut acceptor) = (Handshake::connect_ours(PAIR, NONCE_3), Handshake::accept());
        let ends = run_both(&mut connector, &mut acceptor, pair);
        (ends, connector.is_complete(), acceptor.is_complete())
    };
    assert_eq!(run(PAIR), ([Ok(()), Ok(())], true, true));
    for other in others {
        let refused = [Err(Fault::Refused), Err(Fault::WrongProof)];
        assert_eq!(run(other), (refused, false, false), "{other:?}");
    }
}

#[test]
fn connector_refuses_an_acceptor_without_proof() {
    for wrong in [octets(PROOF_OF_3), [octets(PROOF_OF_1)[..31].to_vec(), vec![0]].concat(), vec![1; 32]] {
        let mut three = connector(PAIR);
        feed(&mut three, &greeting(NONCE_1)).expect("a greeting");
        take_output(&mut three);
        assert_eq!(feed(&mut three, &wrong), Err(Fault::WrongProof));
        assert_eq!((three.needed(), three.output(), three.is_complete()), (0, [].as_slice(), false));
    }
}

#[test]
fn acceptor_refuses_a_proof_with_any_wrong_bit() {
    for bit in 0..8 * PROOF_LEN {
        let mut one = acceptor();
        feed(&mut one, &greeting(NONCE_3)).expect("a greeting");
        take_output(&mut one);
        let mut proof = octets(PROOF_OF_3);
        proof[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(feed(&mut one, &proof), Err(Fault::WrongProof), "bit {bit}");
        assert_eq!((one.needed(), take_output(&mut one)), (0, vec![0; PROOF_LEN]));
        assert!(!one.is_complete());
    }
}

/// A proof is valid for one pair of nonces, in one direction.
#[test]
fn replayed_proof_is_refused() {
    let mut one = Handshake::accept();
    feed(&mut one, &[0, 0, 0, 3]).expect("a number");
    one.admit_ours(PAIR, [7; NONCE_LEN]);
    feed(&mut one, &greeting(NONCE_3)).expect("a greeting");
    take_output(&mut one);
    assert_eq!(feed(&mut one, &octets(PROOF_OF_3)), Err(Fault::WrongProof));
}

#[test]
fn reflected_greeting_and_proof_are_refused() {
    let mut three = connector(PAIR);
    assert_eq!(feed(&mut three, &greeting(NONCE_3)), Err(Fault::Reflected));
    let mut one = acceptor();
    assert_eq!(feed(&mut one, &greeting(NONCE_1)), Err(Fault::Reflected));
    // The own proof, sent back with another nonce.
    let mut three = connector(PAIR);
    feed(&mut three, &greeting(NONCE_1)).expect("a greeting");
    let proof = take_output(&mut three);
    assert_eq!(feed(&mut three, &proof), Err(Fault::WrongProof));
}

#[test]
fn missing_greeting_and_other_version_are_faults() {
    let mut three = connector(PAIR);
    let answer = b"HTTP/1.1 400 Bad Request";
    assert_eq!(feed(&mut three, answer), Err(Fault::NoGreeting(*b"HTTP/1.1")));
    let mut one = acceptor();
    let mut other_version = greeting(NONCE_3);
    other_version[7] = 2;
    assert_eq!(feed(&mut one, &other_version), Err(Fault::NoGreeting(*b"mpjmesh\x02")));
    assert_eq!((one.needed(), one.output()), (0, [].as_slice()), "another program gets no refusal");
}

#[test]
fn truncated_handshake_is_incomplete() {
    let whole = [greeting(NONCE_3), octets(PROOF_OF_3)].concat();
    for len in 0..whole.len() {
        let mut one = acceptor();
        for octet in &whole[..len] {
            take_output(&mut one);
            one.handle_octets(&[*octet]).expect("no fault");
        }
        take_output(&mut one);
        assert!(!one.is_complete() && one.needed() > 0, "{len} octets");
    }
}

/// The octets behind the handshake belong to the next protocol.
#[test]
#[should_panic(expected = "2 octets where 1 are needed")]
fn octets_behind_the_handshake_panic() {
    let mut end = Handshake::accept();
    feed(&mut end, &[0, 0, 0]).expect("three octets");
    let _ = end.handle_octets(&[3, 0]);
}

#[test]
fn debug_output_omits_the_key() {
    let shown = format!("{:?} {:?}", connector(PAIR), PAIR);
    let key = format!("{:?}", PAIR.key);
    assert!(!shown.contains("secret") && !shown.contains(key.trim_matches(['[', ']'])), "{shown}");
}
