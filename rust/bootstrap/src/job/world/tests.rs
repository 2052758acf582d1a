use super::*;

const DATAGRAMS: Datagrams =
    Datagrams { rate_kbit: NonZeroU32::new(77), len_max: NonZeroU32::new(1200), are_checked: true };

/// Two sites: a foreign host with two processes, and two ranks of this project.
fn world() -> World {
    let address = |last: u8, port: u16| SocketAddr::from(([127, 0, 0, last], port));
    let proc = |last: u8, pid: i64| Proc { host_id: address_octets(IpAddr::from([127, 0, 0, last])), pid };
    World {
        base: 2,
        count: 2,
        shares_memory: true,
        carrier: Carrier::Udp(DATAGRAMS),
        ports: 5000..=65_535,
        terms: Terms { dialect: Dialect::Draft, maxdatalen: 16, ackmark: 1, hiwater: 2 },
        tag_ub: 32_767,
        xsize: 1024,
        maxlinear: 4,
        connect_time: Duration::from_millis(1500),
        peer_timeout: Duration::from_millis(2500),
        key: Bytes::from_static(&[7, 8, 9]),
        hosts: vec![
            WorldHost { address: address(1, 5000), client: 0 },
            WorldHost { address: address(2, 5001), client: 1 },
            WorldHost { address: address(3, 65_535), client: 1 },
        ],
        members: vec![
            Member { proc: proc(1, 10), host: 0, is_ours: false },
            Member { proc: proc(1, 11), host: 0, is_ours: false },
            Member { proc: proc(2, -12), host: 1, is_ours: true },
            Member { proc: proc(3, i64::MAX), host: 2, is_ours: true },
        ],
    }
}

/// The parsed octets of a changed world.
fn parsed(change: impl FnOnce(&mut World)) -> Result<World, WorldError> {
    let mut changed = world();
    change(&mut changed);
    World::parse(&changed.emit())
}

#[test]
fn world_survives_a_round_trip_through_octets_and_sealed_memory() {
    assert_eq!(World::parse(&world().emit()), Ok(world()));
    assert_eq!(world().emit().len(), 84 + 3 + 3 * 24 + 4 * 32);
    let file = world().seal().expect("memory");
    let again = file.try_clone().expect("a descriptor");
    assert_eq!(World::open(file).expect("a world"), world());
    assert_eq!(World::open(again.try_clone().expect("a descriptor")).expect("still there"), world());
    assert!(rustix::io::write(&again, b"x").is_err(), "it is sealed");
}

#[test]
fn dialect_survives_a_round_trip() {
    for dialect in [Dialect::Final, Dialect::Draft] {
        let again = parsed(|world| world.terms.dialect = dialect).expect("a world");
        assert_eq!(again.terms.dialect, dialect);
    }
}

#[test]
fn carrier_survives_a_round_trip() {
    let lens = [0, DATAGRAM_LEN_MIN as u32, 65_507].map(NonZeroU32::new);
    let of = |len_max| Datagrams { rate_kbit: None, len_max, are_checked: len_max.is_none() };
    let carriers = [Carrier::Tcp].into_iter().chain(lens.map(|len_max| Carrier::Udp(of(len_max))));
    for carrier in carriers {
        assert_eq!(parsed(|world| world.carrier = carrier).map(|world| world.carrier), Ok(carrier));
    }
}

#[test]
fn world_of_another_length_is_refused() {
    let octets = world().emit();
    for len in 0..octets.len() {
        let error = World::parse(&octets[..len]).expect_err("cut off");
        assert!(matches!(error, WorldError::Len { len: l, .. } if l == len), "{len}: {error}");
    }
    let longer = [&octets[..], &[0]].concat();
    assert!(matches!(World::parse(&longer), Err(WorldError::Len { .. })));
    assert!(matches!(World::parse(b""), Err(WorldError::Len { len: 0, .. })));
}

#[test]
fn wrong_magic_or_version_is_refused() {
    for at in 0..12 {
        let mut octets = world().emit().to_vec();
        octets[at] ^= 1;
        assert_eq!(World::parse(&octets), Err(WorldError::Version), "octet {at}");
    }
}

#[test]
fn changed_octet_gives_a_usable_world_or_an_error() {
    let octets = world().emit();
    let mut worlds = 0;
    for at in 0..octets.len() {
        for value in [0, 1, 2, 0x7f, 0x80, 0xff] {
            let mut octets = octets.to_vec();
            octets[at] = value;
            if let Ok(world) = World::parse(&octets) {
                worlds += 1;
                // An accepted description can be used.
                assert!((world.base + world.count) as usize <= world.members.len());
                assert!(world.own_hosts().end as usize <= world.hosts.len());
                assert!(world.ranks_here() >= world.count as usize);
                assert_eq!(world.mesh_hosts().len(), world.hosts.len());
            }
        }
    }
    assert!(worlds > 0, "an address may be any");
}

#[test]
fn values_of_datagrams_are_refused_in_a_world_without_them() {
    let sound = World { carrier: Carrier::Tcp, ..world() }.emit();
    assert!(World::parse(&sound).is_ok());
    for (at, field) in [(27, "the flag of checksums"), (75, "rate_kbit"), (79, "the longest datagram")] {
        let mut octets = sound.to_vec();
        octets[at] |= 4;
        let refused = World::parse(&octets);
        assert!(
            matches!(refused, Err(WorldError::Value { field: named, value: 4 }) if named == field),
            "{refused:?}"
        );
    }
}

#[test]
fn value_outside_its_limits_is_refused_by_name() {
    let value = |field, value| Err(WorldError::Value { field, value });
    let hosts_of = |count: usize| move |world: &mut World| world.hosts.truncate(count);
    assert_eq!(parsed(|world| world.key = vec![0; 65].into()), value("the length of the key", 65));
    assert_eq!(parsed(hosts_of(0)), value("the number of hosts", 0));
    assert_eq!(parsed(hosts_of(2)), value("the host of a rank", 2));
    assert_eq!(parsed(|world| world.members.clear()), value("the number of ranks", 0));
    assert_eq!(parsed(|world| world.terms.maxdatalen = 0), value("maxdatalen", 0));
    assert_eq!(parsed(|world| world.terms.ackmark = 0), value("ackmark", 0));
    assert_eq!(parsed(|world| world.terms.ackmark = 3), value("ackmark", 3));
    assert_eq!(parsed(|world| world.tag_ub = 32_766), value("tag_ub", 32_766));
    assert_eq!(parsed(|world| world.tag_ub = 1 << 31), value("tag_ub", 1 << 31));
    for (ports, first) in [((0, 9), 0), ((9, 8), 9)] {
        assert_eq!(parsed(|world| world.ports = ports.0..=ports.1), value("the first port", first));
    }
    assert!(parsed(|world| world.ports = 0..=0).is_ok());
    assert_eq!(parsed(|world| world.peer_timeout = Duration::ZERO), value("peer_timeout_ms", 0));
    let more = Duration::from_millis(1 << 31);
    assert_eq!(parsed(|world| world.peer_timeout = more), value("peer_timeout_ms", 1 << 31));
    let len = |len| Carrier::Udp(Datagrams { len_max: NonZeroU32::new(len), ..DATAGRAMS });
    for wrong in [75, 65_508, u32::MAX] {
        assert_eq!(parsed(|w| w.carrier = len(wrong)), value("the longest datagram", wrong.into()));
    }
    assert_eq!(parsed(|world| world.count = 0), value("the number of the launcher's ranks", 0));
    assert_eq!(parsed(|world| world.count = 5), value("the number of the launcher's ranks", 5));
    assert_eq!(parsed(|world| world.base = 3), value("the launcher's first rank", 3));
    assert_eq!(parsed(|world| world.base = u32::MAX), value("the launcher's first rank", u32::MAX.into()));
    assert_eq!(parsed(|world| world.hosts[2].client = 4096), value("the site of a host", 4096));
    assert_eq!(parsed(|world| world.hosts[2].client = 0), value("the site of a host", 0));
    assert_eq!(parsed(|world| world.members[1].host = 1), value("the ranks of a host", 2));
    assert_eq!(parsed(|world| world.members[3].host = 1), value("the host of a rank of the launcher's", 1));
    let foreign = value("whether a rank of the launcher's is ours", 0);
    assert_eq!(parsed(|world| world.members[2].is_ours = false), foreign);
}

#[test]
fn ipv4_mapped_address_is_ipv4_and_ipv6_is_unchanged() {
    let v4 = IpAddr::from([192, 0, 2, 7]);
    assert_eq!(address_of([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7]), v4);
    assert_eq!(address_of([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 7]), v4);
    for text in ["::1", "2001:db8::1", "fe80::1"] {
        let address: IpAddr = text.parse().expect("an address");
        assert_eq!(address_of(address_octets(address)), address);
    }
    assert_eq!(address_of(address_octets(v4)), v4);
}

#[test]
fn hosts_are_ours_when_all_their_processes_are() {
    let ours: Vec<bool> = world().mesh_hosts().iter().map(|host| host.is_ours).collect();
    assert_eq!(ours, [false, true, true]);
    let mut mixed = world();
    mixed.members[0].is_ours = true;
    assert!(!mixed.mesh_hosts()[0].is_ours);
    mixed.members.remove(0);
    mixed.members.remove(0);
    assert!(!mixed.mesh_hosts()[0].is_ours, "a host without processes is not ours");
}

#[test]
fn identity_is_equal_at_all_sites_and_differs_for_other_jobs() {
    let mut other_site = world();
    (other_site.base, other_site.count, other_site.shares_memory) = (0, 1, false);
    assert_eq!(other_site.identity(), world().identity());
    let mut other_job = world();
    other_job.members[0].proc.pid = 12;
    assert_ne!(other_job.identity(), world().identity());
    assert_ne!(World { hosts: world().hosts[..2].to_vec(), ..world() }.identity(), world().identity());
}

#[test]
fn key_is_not_printed() {
    assert!(!format!("{:?}", world()).contains("7, 8, 9"));
}

/// They are known only where there is a foreign rank, and its tags are defined.
#[test]
fn clients_are_known_where_there_is_a_barrier_with_foreign_ranks() {
    assert!(world().clients(2).is_none(), "the draft's tags are not known");
    let terms = Terms { dialect: Dialect::Final, ..world().terms };
    let members = world().members.into_iter().map(|member| Member { is_ours: true, ..member }).collect();
    assert!(World { terms, members, ..world() }.clients(2).is_none(), "all are ours");
    let world = World { terms, ..world() };
    for rank in world.base..world.base + world.count {
        let clients = world.clients(rank).expect("there are foreign ranks");
        assert_eq!((clients.own, clients.maxlinear), (2..4, 4));
        let masters: Vec<(u32, u32)> =
            clients.masters.all().iter().map(|master| (master.client, master.world_rank)).collect();
        assert_eq!(masters, [(0, 0), (1, 2)]);
    }
}
