//! The description of a world that a launcher hands to its ranks.

use mpjdev_bootstrap::job::world::{KEY_MAX, World, WorldError, address_octets};

/// Octets of the header, of a host and of a member, and where the counts stand: written out here, so that it
/// is not the parser that says what is right.
const HEADER_LEN: usize = 84;
const HOST_LEN: usize = 24;
const MEMBER_LEN: usize = 32;
const KEY_LEN_AT: usize = 56;
const PEER_TIMEOUT_AT: usize = 68;

/// A rank reads the input as the description of its world.
///
/// Promises: no panic; what is taken has exactly the octets of its counts, and comes back the same from its
/// own octets, which are those that came but for the form of IPv4 addresses; everything that a rank asks of
/// its world can be answered; the key is shown nowhere. What is refused says with which numbers.
pub fn world(input: &[u8]) {
    let world = match World::parse(input) {
        Ok(world) => world,
        Err(error) => return is_named(&error, input),
    };
    let (hosts, members) = (world.hosts.len(), world.members.len());
    assert_eq!(input.len(), HEADER_LEN + world.key.len() + hosts * HOST_LEN + members * MEMBER_LEN);
    let counts = [world.key.len(), hosts, members].map(|count| (count as u32).to_be_bytes());
    assert_eq!(&input[KEY_LEN_AT..PEER_TIMEOUT_AT], counts.concat());
    assert!(world.key.len() <= KEY_MAX);
    comes_back(&world, input);
    can_be_asked(&world);
}

fn is_named(error: &WorldError, input: &[u8]) {
    assert!(!error.to_string().is_empty());
    if let WorldError::Len { len, expected_len } = error {
        assert_eq!(*len, input.len());
        assert_ne!(len, expected_len);
    }
}

fn comes_back(world: &World, input: &[u8]) {
    let octets = world.emit();
    assert_eq!(World::parse(&octets).as_ref(), Ok(world));
    let mut came = input.to_vec();
    let first_host = HEADER_LEN + world.key.len();
    for (host, octets) in world.hosts.iter().zip(came[first_host..].chunks_exact_mut(HOST_LEN)) {
        octets[..16].copy_from_slice(&address_octets(host.address.ip()));
    }
    assert_eq!(octets, came);
}

fn can_be_asked(world: &World) {
    let ranks = world.base..world.base + world.count;
    assert!(!ranks.is_empty() && ranks.end as usize <= world.members.len());
    // Each of ours is a host of its own, and finds its address.
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
    assert_eq!(without.identity(), world.identity(), "the key is in no identity");
    let text = format!("{world:?}");
    assert!(key.len() < 3 || !text.contains(&format!("{key:?}")), "the key is shown");
}
