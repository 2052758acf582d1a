//! Connections that end after any octet.

use mpjdev_proto::impi::startup::{
    Client, ClientError, Failure, Fault, Server, ServerEvent, ServerSettings, Settings, Stage,
};

use crate::job::{BOTH, LIMITS, NO_KEY, WITH_KEY, Watched, settings};
use crate::vectors::{self, Step, Vector};

/// Replays a capture up to the octet after which client 1's connection ends.
fn replay(vector: &Vector, mut octets_left: usize) -> Watched {
    let auth = if ["key", "draft"].contains(&vector.name) { WITH_KEY } else { NO_KEY };
    let settings = ServerSettings { clients: 2, dialect: vector.dialect, auth, limits: LIMITS };
    let mut watched = Watched::new(Server::new(settings, 0).expect("sound"));
    (0..2).for_each(|conn| watched.connect(0, conn));
    for step in &vector.steps {
        match step {
            Step::Send(1, octets) => {
                let count = octets.len().min(octets_left);
                watched.receive(1, &octets[..count]);
                octets_left -= count;
                if octets_left == 0 {
                    break;
                }
            }
            Step::Send(client, octets) => watched.receive(*client as u64, octets),
            _ => {}
        }
    }
    watched.server.handle_eof(0, 1);
    watched.drain();
    watched
}

/// Proves that the server reports the end of a connection at every octet, and that no job waits forever: an
/// unauthenticated client is dropped, a joined one ends the job, one of a running job is lost and the other
/// may finish.
#[test]
fn client_cut_off_after_any_octet_fails() {
    for vector in vectors::all() {
        let said = vector.said_by(1);
        let total: usize = said.iter().map(Vec::len).sum();
        let joined = said.iter().position(|octets| octets.starts_with(b"IMPI")).expect("it joins");
        let joined: usize = said[..=joined].iter().map(Vec::len).sum();
        for cut in 0..=total {
            let name = format!("{} after {cut} of {total} octets", vector.name);
            let mut watched = replay(&vector, cut);
            let fini = total - 8;
            if cut < joined {
                assert_eq!((watched.fault(1), watched.outcome()), (Some(&Fault::Closed), None), "{name}");
            } else if cut < fini {
                let failure = Failure::Client { rank: 1, fault: Fault::Closed };
                assert_eq!(watched.outcome(), Some(&ServerEvent::Over(Err(failure))), "{name}");
                assert!(watched.closed.contains(&(0, None)), "{name}");
            } else if cut < total {
                let lost = ServerEvent::Lost { rank: 1, fault: Fault::Closed };
                assert!(watched.events.contains(&lost), "{name}: {:?}", watched.events);
                watched.receive(0, b"FINI\0\0\0\0");
                assert!(matches!(watched.outcome(), Some(ServerEvent::Over(Err(_)))), "{name}");
            } else {
                assert_eq!(watched.outcome(), Some(&ServerEvent::Over(Ok(()))), "{name}");
            }
        }
    }
}

/// Proves that a client fails wherever the server's stream ends, that it sends nothing afterwards, and that
/// the error is final.
#[test]
fn server_cut_off_after_any_octet_fails_the_client() {
    for vector in vectors::all() {
        let sent: Vec<u8> = vector.sent_to(0).concat();
        for cut in 0..=sent.len() {
            let settings = Settings { dialect: vector.dialect, auth: BOTH, pipelines: true, ..settings(0) };
            let mut client = Client::new(settings).expect("sound");
            // Its data are those of another number of hosts and processes.
            let result = client.handle_octets(&sent[..cut]);
            let stage = client.stage();
            let ended = client.handle_eof();
            match result {
                Ok(()) => assert_eq!(ended, Err(ClientError::Closed { stage })),
                Err(error) => assert_eq!(ended, Err(error)),
            }
            assert_eq!(client.poll_output(), None);
            assert_eq!(client.handle_octets(&sent[cut..]), ended);
            assert_eq!(client.finish(), ended);
        }
    }
}

#[test]
fn closed_connection_text_has_the_likely_reason() {
    let text = |stage| ClientError::Closed { stage }.to_string();
    assert!(text(Stage::Auth).contains("no method in common"), "{}", text(Stage::Auth));
    assert!(text(Stage::Join).contains("wrong key"), "{}", text(Stage::Join));
    assert!(text(Stage::Labels).contains("aborted"), "{}", text(Stage::Labels));
}
