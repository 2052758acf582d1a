//! Creation of communicators with foreign ranks: it is refused before a message is sent.

use mpjdev_buffer::Encoding;
use mpjdev_engine::collective::Operation;
use mpjdev_engine::{Comm, Config, DeviceError, Mode, Uninterruptible};

use crate::site::{Client, Site, TERMS};

/// Start of an operation.
type Start = fn(&Comm) -> Operation;

const OPERATIONS: [(&str, Start); 3] = [
    ("dup", |comm| comm.start_dup()),
    ("create", |comm| comm.start_create(&[0])),
    ("split", |comm| comm.start_split(-1, 0)),
];

#[test]
fn making_communicators_with_foreign_ranks_is_refused_and_nothing_is_sent() {
    let worlds: [(&[Client], u32, u32); 3] = [
        (&[Client::Ours(1), Client::Foreign(&[1])], 1, 0),
        (&[Client::Foreign(&[2]), Client::Ours(1)], 0, 2),
        (&[Client::Ours(2), Client::Ours(1), Client::Foreign(&[1, 2]), Client::Ours(1)], 3, 1),
    ];
    for (clients, first_foreign, of) in worlds {
        let site = Site::new(clients, TERMS, Config::default());
        let comm = &site.ranks[&of];
        for (operation, start) in OPERATIONS {
            let error = start(comm).finish(&mut Uninterruptible).map(drop).unwrap_err();
            assert_eq!(error, DeviceError::Foreign { operation, rank: first_foreign });
            let text = error.to_string();
            assert!(text.contains(operation) && text.contains(&format!("rank {first_foreign} ")), "{text}");
            assert!(text.contains("send and receive"), "{text}");
        }
        for ((_, rank), mut speaker) in site.speakers {
            let message = {
                let mut buffer = mpjdev_buffer::WriteBuffer::new(site.pool.clone(), 16, Encoding::Big)
                    .expect("a capacity");
                buffer.finish().expect("memory").clone()
            };
            let to = speaker.head(0).lsrank;
            site.ranks[&rank].send(&message, to, 9, Mode::Standard, &mut Uninterruptible).expect("sent");
            let (head, _) = speaker.take();
            assert_eq!((head.tag, head.seqnum), (9, 1), "the first packet is the first message");
        }
    }
}

/// Without foreign ranks every operation works, with any clients.
#[test]
fn ranks_of_ours_make_communicators_over_several_clients() {
    let site = Site::new(&[Client::Ours(1), Client::Ours(2)], TERMS, Config::default());
    std::thread::scope(|scope| {
        for comm in site.ranks.values() {
            scope.spawn(|| {
                for (operation, start) in OPERATIONS {
                    start(comm)
                        .finish(&mut Uninterruptible)
                        .unwrap_or_else(|error| panic!("{operation}: {error}"));
                }
                comm.barrier(&mut Uninterruptible).expect("a barrier");
            });
        }
    });
    site.check_clean();
}
