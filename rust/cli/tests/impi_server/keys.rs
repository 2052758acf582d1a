//! Who may join, as the environment says.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;

use mpjdev_cli::impi::client::{JoinError, join};
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::{Auth, ClientError, Key, Settings, SettingsError};

use crate::process::{NO_KEY, Process, WITH_KEY, command, settings, soon};

const OTHER: Auth = Auth { none: false, key: Some(Key(43)) };
const BOTH: Auth = Auth { none: true, key: WITH_KEY.key };

/// Joins as the only client; the server's lines and whether it worked. A refused client is followed by one that is not.
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
fn the_environment_says_who_may_join() {
    const NONE: (&str, &str) = ("IMPI_AUTH_NONE", "");
    const KEY: (&str, &str) = ("IMPI_AUTH_KEY", "42");
    let nothing: &[(&str, &str)] = &[];
    // What is set, the right client, and which clients get in: without key, with it, with both, with another.
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
fn a_server_of_the_draft_wants_the_key_at_once() {
    let key = [("IMPI_AUTH_KEY", "42")];
    for (auth, may) in [(WITH_KEY, true), (OTHER, false), (NO_KEY, false)] {
        let (is_in, text) = meet(&key, Dialect::Draft, auth, WITH_KEY);
        assert_eq!((is_in, text.ends_with(": wrong key\n")), (may, !may), "{text}");
    }
    assert!(meet(&[], Dialect::Draft, OTHER, NO_KEY).0);
}

/// Proves that a site of the other dialect is told apart, and the server goes on.
#[test]
fn the_other_dialect_is_refused() {
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
fn the_key_may_be_in_a_file_which_wins() {
    let file = std::env::temp_dir().join(format!("mpjdev-impi-key-{}", std::process::id()));
    std::fs::write(&file, "42\n").expect("a file");
    let name = file.to_str().expect("UTF-8");
    let mode = |mode| std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("ours");
    mode(0o640);
    let (status, text) = refused(&["-server", "1"], &[("IMPI_AUTH_KEY_FILE", name)]);
    let open = format!("{name} is open to others (mode 0640), a key is not: chmod 600 {name}");
    assert_eq!((status, text), (2, format!("mpjdev impi-server: IMPI_AUTH_KEY_FILE: {open}\n")));
    mode(0o600);
    let both = [("IMPI_AUTH_KEY_FILE", name), ("IMPI_AUTH_KEY", "43")];
    assert!(meet(&both, Dialect::Final, WITH_KEY, WITH_KEY).0);
    assert!(!meet(&both, Dialect::Final, OTHER, WITH_KEY).0);
    std::fs::remove_file(&file).expect("ours");
    let (status, text) = refused(&["-server", "1"], &both);
    assert_eq!(status, 2);
    assert!(text.starts_with(&format!("mpjdev impi-server: IMPI_AUTH_KEY_FILE: {name}: ")), "{text}");
}

/// Runs a server that does not come to listen.
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
        assert_eq!((status, text.contains("warning: with IMPI_AUTH_NONE set")), (0, warns), "{text}");
    }
}

#[test]
fn a_site_without_a_method_does_not_talk() {
    let server = Process::start(&["-server", "1"]);
    let nothing = Settings { auth: Auth::default(), ..settings(0) };
    let error = join(&server.address.to_string(), nothing, soon()).expect_err("no method");
    assert!(matches!(error, JoinError::Settings(SettingsError::NoAuth)), "{error}");
}
