//! Target of the parser of world descriptions.

use mpjdev_bootstrap::job::world::{KEY_MAX, World, WorldError, address_octets};

/// Lengths of header, host and member, and offsets of the counts. They are independent of the parser's
/// constants.
const HEADER_LEN: usize = 84;
const HOST_LEN: usize = 24;
const MEMBER_LEN: usize = 32;
const KEY_LEN_AT: usize = 56;
const PEER_TIMEOUT_AT: usize = 68;

/// Parses the input as a world description.
///
/// Invariants: an accepted description has the length of its counts, and emitting it gives the same octets,
/// except for the form of IPv4 addresses. Every question of a rank has an answer. The key is never printed.
/// An error has its numbers.
pub fn world(input: &[u8]) {
    let world = match World::parse(input) {
        Ok(world) => world,
        Err(error) => return check_error(&error, input),
    };
    let (hosts, members) = (world.hosts.len(), world.members.len());
    assert_eq!(input.len(), HEADER_LEN + world.key.len() + hosts * HOST_LEN + members * MEMBER_LEN);
    let counts = [world.key.len(), hosts, members].map(|count| (count as u32).to_be_bytes());
    assert_eq!(&input[KEY_LEN_AT..PEER_TIMEOUT_AT], counts.concat());
    assert!(world.key.len() <= KEY_MAX);
    round_trips(&world, input);
    answers_ranks(&world);
}

fn check_error(error: &WorldError, input: &[u8]) {
    assert!(!error.to_string().is_empty());
    if let WorldError::Len { len, expected_len } = error {
        assert_eq!(*len, input.len());
        assert_ne!(len, expected_len);
    }
}

fn round_trips(world: &World, input: &[u8]) {
    let octets = world.emit();
    assert_eq!(World::parse(&octets).as_ref(), Ok(world));
    let mut expected = input.to_vec();
    let first_host = HEADER_LEN + world.key.len();
    for (host, octets) in world.hosts.iter().zip(expected[first_host..].chunks_exact_mut(HOST_LEN)) {
        octets[..16].copy_from_slice(&address_octets(host.address.ip()));
    }
    assert_eq!(octets, expected);
}

fn answers_ranks(world: &World) {
    let ranks = world.base..world.base + world.count;
    assert!(!ranks.is_empty() && ranks.end as usize <= world.members.len());
    // Each own rank is a host of its own with an address.
    for (rank, host) in ranks.zip(world.own_hosts()) {
        let member = &world.members[rank as usize];
        assert!(member.is_ours && member.host == host);
        assert_eq!(world.address(host), world.hosts[host as usize].address);
        assert_eq!(world.members.iter().filter(|other| other.host == host).count(), 1);
    }
    assert!((world.count as usize..=world.members.len()).contains(&world.ranks_here()));
    let mesh = world.mesh_hosts();
    assert_eq!(mesh.len(), world.hosts.len());
    assert!(world.own_hosts().all(|host| mesh[host as usize].is_ours));
    assert!(world.terms.ackmark >= 1 && world.terms.ackmark <= world.terms.hiwater);
    assert!(world.terms.maxdatalen >= 1 && (32_767..=0x7fff_ffff).contains(&world.tag_ub));
    let key = world.key.clone();
    let without = World { key: Default::default(), ..world.clone() };
    assert_eq!(without.identity(), world.identity(), "no identity contains the key");
    let text = format!("{world:?}");
    let printed = [format!("{key:?}"), format!("{:?}", &key[..])];
    assert!(key.len() < 3 || !printed.iter().any(|key| text.contains(key)), "the key is printed");
}
