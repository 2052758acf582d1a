//! Tests of keys in the environment, and of the clients that may join.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;

use mpjdev_cli::impi::client::{JoinError, join};
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::{Auth, ClientError, Key, Settings, SettingsError};

use crate::process::{NO_KEY, Process, WITH_KEY, command, message, settings, soon};

const OTHER: Auth = Auth { none: false, key: Some(Key(43)) };
const BOTH: Auth = Auth { none: true, key: WITH_KEY.key };

/// Joins as the only client; returns the lines of the server and whether the client has joined. After a
/// refusal a valid client joins.
fn meet(variables: &[(&str, &str)], dialect: Dialect, auth: Auth, right: Auth) -> (bool, String) {
    let text = if dialect == Dialect::Final { "final" } else { "draft" };
    let server = Process::start_with(&["-server", "1", "--dialect", text], variables);
    let with = |auth| join(&server.address.to_string(), Settings { auth, dialect, ..settings(0) }, soon());
    let (is_in, joined) = match with(auth) {
        Ok(joined) => (true, joined),
        Err(JoinError::Protocol(ClientError::Closed { .. })) => (false, with(right).expect("the right one")),
        Err(error) => panic!("{error}"),
    };
    joined.connection.finish(soon()).expect("it takes it");
    let (status, text) = server.ended();
    assert_eq!(status, 0, "{text}");
    (is_in, text)
}

#[test]
fn environment_sets_the_authentication() {
    const NONE: (&str, &str) = ("IMPI_AUTH_NONE", "");
    const KEY: (&str, &str) = ("IMPI_AUTH_KEY", "42");
    let nothing: &[(&str, &str)] = &[];
    // The variables, a valid client, and which clients may join: without a key, with it, with both, with
    // another.
    let cases = [
        (nothing, NO_KEY, [true, false, true, false]),
        (&[NONE], NO_KEY, [true, false, true, false]),
        (&[KEY], WITH_KEY, [false, true, true, false]),
        (&[("IMPI_AUTH_KEY", "0x2A")], WITH_KEY, [false, true, true, false]),
        (&[NONE, KEY], WITH_KEY, [true, true, true, false]),
    ];
    for (variables, right, wanted) in cases {
        for (auth, may) in [NO_KEY, WITH_KEY, BOTH, OTHER].into_iter().zip(wanted) {
            let (is_in, text) = meet(variables, Dialect::Final, auth, right);
            assert_eq!(is_in, may, "{variables:?}, {auth:?}: {text}");
            assert_eq!(text.lines().count(), usize::from(!may), "{text}");
            assert!(may || text.contains("refused 127.0.0.1:"), "{text}");
        }
    }
    assert!(meet(&[KEY], Dialect::Final, OTHER, WITH_KEY).1.ends_with(": wrong key\n"));
}

#[test]
fn draft_server_requires_the_key_in_auth() {
    let key = [("IMPI_AUTH_KEY", "42")];
    for (auth, may) in [(WITH_KEY, true), (OTHER, false), (NO_KEY, false)] {
        let (is_in, text) = meet(&key, Dialect::Draft, auth, WITH_KEY);
        assert_eq!((is_in, text.ends_with(": wrong key\n")), (may, !may), "{text}");
    }
    assert!(meet(&[], Dialect::Draft, OTHER, NO_KEY).0);
}

/// Proves that a site of the other dialect is refused, and the server continues.
#[test]
fn auth_of_the_other_dialect_is_refused() {
    for (ours, theirs) in [("final", Dialect::Draft), ("draft", Dialect::Final)] {
        let server = Process::start(&["-server", "1", "--dialect", ours]);
        let with = |dialect| join(&server.address.to_string(), Settings { dialect, ..settings(0) }, soon());
        with(theirs).expect_err("refused");
        let joined = with(if theirs == Dialect::Draft { Dialect::Final } else { Dialect::Draft });
        joined.expect("it joins").connection.finish(soon()).expect("it takes it");
        let (status, text) = server.ended();
        assert_eq!((status, text.lines().count()), (0, 1));
        assert!(text.ends_with(&format!(": its AUTH is not that of the dialect {ours}\n")), "{text}");
    }
}

#[test]
fn key_file_precedes_the_variable() {
    let file = std::env::temp_dir().join(format!("mpjdev-impi-key-{}", std::process::id()));
    std::fs::write(&file, "42\n").expect("a file");
    let name = file.to_str().expect("UTF-8");
    let mode = |mode| std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("ours");
    mode(0o600);
    let both = [("IMPI_AUTH_KEY_FILE", name), ("IMPI_AUTH_KEY", "43")];
    assert!(meet(&both, Dialect::Final, WITH_KEY, WITH_KEY).0);
    assert!(!meet(&both, Dialect::Final, OTHER, WITH_KEY).0);
    std::fs::remove_file(&file).expect("ours");
    let (status, text) = refused(&["-server", "1"], &both);
    assert_eq!(status, 2);
    assert!(text.starts_with(&format!("mpjdev impi-server: IMPI_AUTH_KEY_FILE: {name}: ")), "{text}");
}

/// Runs a server that fails before it listens.
fn refused(args: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
    let output = command(args, variables).output().expect("it runs");
    assert_eq!(output.stdout, b"");
    (output.status.code().expect("no signal"), String::from_utf8(output.stderr).expect("UTF-8"))
}

#[test]
fn other_machines_need_a_key() {
    let every = ["-server", "1", "--host", "0.0.0.0"];
    for variables in [&[][..], &[("IMPI_AUTH_NONE", "1")]] {
        let (status, text) = refused(&every, variables);
        assert_eq!(status, 2);
        assert!(text.contains("so a key is needed: put the same number into IMPI_AUTH_KEY"), "{text}");
    }
    let (status, text) = refused(&every, &[("IMPI_AUTH_KEY", "s3cret")]);
    assert!(status == 2 && text.contains("IMPI_AUTH_KEY holds no key") && !text.contains("s3cret"), "{text}");
    let key = ("IMPI_AUTH_KEY", "42");
    for (variables, warns) in [(&[key][..], false), (&[key, ("IMPI_AUTH_NONE", "")], true)] {
        let server = Process::start_with(&every, variables);
        assert!(!server.address.ip().is_unspecified(), "{}", server.address);
        let local = SocketAddr::from(([127, 0, 0, 1], server.address.port())).to_string();
        let joined = join(&local, Settings { auth: WITH_KEY, ..settings(0) }, soon()).expect("it joins");
        joined.connection.finish(soon()).expect("it takes it");
        let (status, text) = server.ended();
        assert_eq!((status, text.contains("warning: IMPI_AUTH_NONE is set")), (0, warns), "{text}");
    }
}

/// Proves that the server ignores unknown methods: it chooses the known one, or refuses the connection with
/// one line.
#[test]
fn unknown_methods_are_ignored() {
    let server = Process::start_with(&["-server", "1"], &[("IMPI_AUTH_KEY", "42")]);
    let offer = |mask: u32| {
        let mut client = server.connect();
        client.send(&message(b"AUTH", &mask.to_be_bytes()));
        client
    };
    let mut client = offer(0xffff_0001);
    client.until_closed();
    let mut site = offer(0xffff_ffff);
    assert_eq!(site.receive(8), [0, 0, 0, 1, 0, 0, 0, 8]);
    site.send(&[&42u64.to_be_bytes()[..], &message(b"IMPI", &[0; 4]), &message(b"DONE", &[])].concat());
    site.receive(12 + 8);
    site.send(&message(b"FINI", &[]));
    let why = "it offers authentication methods 0xffff0001, none of which is enabled here";
    let text = format!("mpjdev impi-server: refused {}: {why}\n", client.address());
    assert_eq!(server.ended(), (0, text));
}

/// Proves that a site sends no key to a server that chooses a method that was not offered.
#[test]
fn site_refuses_a_method_that_it_did_not_offer() {
    for (auth, which) in [(NO_KEY, 1i32), (WITH_KEY, 0), (BOTH, 2), (BOTH, 16), (BOTH, 31), (BOTH, -1)] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let site = std::thread::spawn(move || join(&address, Settings { auth, ..settings(0) }, soon()));
        let (mut stream, _) = listener.accept().expect("it connects");
        let mut offer = [0; 12];
        stream.read_exact(&mut offer).expect("it speaks first");
        assert_eq!(offer[..], message(b"AUTH", &auth.mask().to_be_bytes()));
        stream.write_all(&[which.to_be_bytes(), [0, 0, 0, 8]].concat()).expect("it listens");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("it closes");
        assert_eq!(rest, b"", "{auth:?}, {which}");
        let error = site.join().expect("no panic").expect_err("refused").to_string();
        let mask = auth.mask();
        let text = "the startup server asks for authentication method";
        assert_eq!(error, format!("{text} {which}; this client offers mask {mask:#x}"));
    }
}

#[test]
fn site_without_a_method_sends_nothing() {
    let server = Process::start(&["-server", "1"]);
    let nothing = Settings { auth: Auth::default(), ..settings(0) };
    let error = join(&server.address.to_string(), nothing, soon()).expect_err("no method");
    assert!(matches!(error, JoinError::Settings(SettingsError::NoAuth)), "{error}");
}
