//! Methods of authentication, offered and enabled in every combination (IMPI 5.2).

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::{
    Auth, Client, ClientError, Event, Fault, Key, Server, ServerSettings, Settings, SettingsError, Stage,
};

use crate::job::{BOTH, KEY, LIMITS, NO_KEY, WITH_KEY, Watched, message, server, settings};

const OTHER_KEY: Key = Key(KEY.0 ^ 1);

/// The result of a client with these methods at a server with those.
fn meet(offered: Auth, enabled: Auth, dialect: Dialect) -> Result<(), Fault> {
    let mut watched = Watched::new(server(1, enabled, dialect));
    watched.connect(0, 5);
    let mut client = Client::new(Settings { auth: offered, dialect, ..settings(0) }).expect("sound");
    let events = watched.serve(5, &mut client);
    match watched.closed.pop() {
        None => {
            assert!(matches!(events[..], [Event::Joined { size: 1 }, Event::Done(_)]), "{events:?}");
            Ok(())
        }
        Some((5, Some(fault))) => {
            assert!(
                watched.outcome().is_none(),
                "the fault of an unauthenticated client does not end the job"
            );
            let stage = client.stage();
            assert_eq!(client.handle_eof(), Err(ClientError::Closed { stage }));
            Err(fault)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_combination_of_methods_has_its_outcome() {
    let wrong = Auth { none: false, key: Some(OTHER_KEY) };
    let wrong_or_none = Auth { none: true, key: Some(OTHER_KEY) };
    let no_method = |auth: Auth| Err(Fault::NoMethod { offered_mask: auth.mask() });
    let offers = [NO_KEY, WITH_KEY, BOTH, wrong, wrong_or_none];
    let met = |enabled| offers.map(|offered| meet(offered, enabled, Dialect::Final));
    assert_eq!(met(NO_KEY), [Ok(()), no_method(WITH_KEY), Ok(()), no_method(wrong), Ok(())]);
    assert_eq!(
        met(WITH_KEY),
        [no_method(NO_KEY), Ok(()), Ok(()), Err(Fault::WrongKey), Err(Fault::WrongKey)]
    );
    // The strongest common method: a client that offers a key is asked for it.
    assert_eq!(met(BOTH), [Ok(()), Ok(()), Ok(()), Err(Fault::WrongKey), Err(Fault::WrongKey)]);
}

#[test]
fn draft_server_compares_the_key_unless_none_is_needed() {
    let wrong = Auth { none: false, key: Some(OTHER_KEY) };
    let met = |enabled| [NO_KEY, WITH_KEY, BOTH, wrong].map(|offered| meet(offered, enabled, Dialect::Draft));
    assert_eq!(met(NO_KEY), [Ok(()), Ok(()), Ok(()), Ok(())]);
    assert_eq!(met(WITH_KEY), [Err(Fault::WrongKey), Ok(()), Ok(()), Err(Fault::WrongKey)]);
    assert_eq!(met(BOTH), [Ok(()), Ok(()), Ok(()), Ok(())]);
}

#[test]
fn every_other_key_is_wrong() {
    for bit in 0..64 {
        let wrong = Auth { none: false, key: Some(Key(KEY.0 ^ 1 << bit)) };
        assert_eq!(meet(wrong, WITH_KEY, Dialect::Final), Err(Fault::WrongKey), "bit {bit}");
    }
}

#[test]
fn auth_of_the_other_dialect_is_refused() {
    let auth = |dialect, len: usize| {
        let mut watched = Watched::new(server(1, BOTH, dialect));
        watched.connect(0, 0);
        watched.receive(0, &message(b"AUTH", &vec![0; len]));
        watched.fault(0).cloned()
    };
    assert_eq!(auth(Dialect::Final, 8), Some(Fault::OtherDialect { dialect: Dialect::Final }));
    assert_eq!(auth(Dialect::Draft, 4), Some(Fault::OtherDialect { dialect: Dialect::Draft }));
    assert_eq!(
        (auth(Dialect::Final, 4), auth(Dialect::Draft, 8)),
        (Some(Fault::NoMethod { offered_mask: 0 }), None)
    );
    let text = Fault::OtherDialect { dialect: Dialect::Final }.to_string();
    assert!(text.contains("final"), "{text}");
}

/// Proves that a client sends neither a key nor anything else for a method that it did not offer.
#[test]
fn client_refuses_a_method_that_it_did_not_offer() {
    let asked = |auth, which: i32, len: i32| {
        let mut client = Client::new(Settings { auth, ..settings(0) }).expect("sound");
        assert!(client.poll_output().is_some());
        let result = client.handle_octets(&[which.to_be_bytes(), len.to_be_bytes()].concat());
        let said: Vec<Vec<u8>> = std::iter::from_fn(|| client.poll_output()).map(Vec::from).collect();
        assert_eq!(result.is_err(), said.is_empty(), "{which}, {len}");
        (result, said.len())
    };
    let refused = |which, auth: Auth| (Err(ClientError::Method { which, offered_mask: auth.mask() }), 0);
    assert_eq!(asked(NO_KEY, 0, 0), (Ok(()), 1));
    assert_eq!(asked(NO_KEY, 1, 8), refused(1, NO_KEY));
    assert_eq!(asked(WITH_KEY, 0, 0), refused(0, WITH_KEY));
    assert_eq!(asked(WITH_KEY, 1, 8), (Ok(()), 2));
    assert_eq!(asked(BOTH, 0, 0), (Ok(()), 1));
    // Private methods, and numbers that are bits of no mask.
    for which in [2, 3, 15, 16, 30, 31, 32, 33, 64, -1, -31, i32::MAX, i32::MIN, i32::MIN + 1] {
        for auth in [NO_KEY, WITH_KEY, BOTH] {
            assert_eq!([asked(auth, which, 0), asked(auth, which, 8)], [0, 1].map(|_| refused(which, auth)));
        }
    }
    // The length is ignored: LAM's server sends 8 for every method.
    for (which, len, said) in [(0, 8, 1), (0, -1, 1), (1, 0, 2), (1, 16, 2), (1, -8, 2)] {
        assert_eq!(asked(BOTH, which, len), (Ok(()), said), "{which}, {len}");
    }
}

/// Proves that unknown methods have no effect: a server chooses a known, enabled and offered method, or
/// refuses.
#[test]
fn server_ignores_unknown_methods() {
    let private = (2..32).map(|bit| 1u32 << bit).chain([0, 0xffff_0000, 0xffff_fffc]);
    for (private, known) in private.flat_map(|private| (0..4).map(move |known| (private, known))) {
        for enabled in [NO_KEY, WITH_KEY, BOTH] {
            let offered_mask = private | known;
            let mut watched = Watched::new(server(1, enabled, Dialect::Final));
            watched.connect(0, 0);
            watched.receive(0, &message(b"AUTH", &offered_mask.to_be_bytes()));
            let (sent, fault) = (watched.sent_to(0), watched.fault(0).cloned());
            let expected = match known & enabled.mask() {
                0 => (Vec::new(), Some(Fault::NoMethod { offered_mask })),
                1 => (vec![0; 8], None),
                _ => (vec![0, 0, 0, 1, 0, 0, 0, 8], None),
            };
            assert_eq!((sent, fault), expected, "{offered_mask:#x} at {enabled:?}");
        }
    }
}

#[test]
fn client_and_server_without_a_method_are_refused() {
    let nothing = Auth::default();
    assert_eq!(Client::new(Settings { auth: nothing, ..settings(0) }).err(), Some(SettingsError::NoAuth));
    let server = ServerSettings { clients: 1, dialect: Dialect::Final, auth: nothing, limits: LIMITS };
    assert_eq!(Server::new(server, 0).err(), Some(SettingsError::NoAuth));
}

#[test]
fn key_is_not_printed() {
    let client = Client::new(Settings { auth: WITH_KEY, ..settings(0) }).expect("sound");
    let text = format!("{client:?} {:?}", server(1, WITH_KEY, Dialect::Final));
    assert!(!text.contains("81985529216486895") && !text.contains("123456789abcdef"), "{text}");
    assert_eq!(client.stage(), Stage::Auth);
}
