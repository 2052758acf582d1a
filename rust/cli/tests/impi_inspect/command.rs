//! The binary as a user runs it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::support::{octets, path, read};

fn run(args: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev"));
    command.arg("inspect").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    // It may end without reading.
    let _ = child.stdin.take().expect("piped").write_all(input);
    finished(child.wait_with_output().expect("it ends"))
}

fn finished(output: Output) -> (i32, String, String) {
    let text = |octets| String::from_utf8(octets).expect("UTF-8");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

fn golden(name: &str) -> String {
    path(name).to_str().expect("UTF-8").to_owned()
}

/// Proves the exit statuses: sound, against the protocol, damaged, not to be read, wrong usage.
#[test]
fn exit_statuses_say_how_it_was() {
    let hello = golden("impi-hello.hex");
    let (status, out, err) = run(&["--impi", &hello], b"");
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.starts_with("packets     final dialect\n  1   at 0, line 3 "), "{out}");
    let (status, out, _) = run(&["--impi", &golden("impi-cancel.hex")], b"");
    assert!(status == 1 && out.ends_with("4 packets, 1 warning\n"), "{out}");
    let (status, out, _) = run(&["--impi", &golden("impi-damaged-type-8.hex")], b"");
    assert!(
        status == 1 && out.contains("damaged     at 0, line 3, host 0 -> host 1: packet type 8 is unknown"),
        "{out}"
    );
    let (status, out, err) = run(&["--impi", "-"], b"not hex");
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(err.starts_with("mpjdev: standard input: line 1, column 1: 'n' is not"), "{err}");
    let (status, _, err) = run(&["--impi", "/no/such/file"], b"");
    assert!(status == 2 && err.starts_with("mpjdev: /no/such/file: "), "{err}");
    let (status, _, err) = run(&["--impi", "--format", "hex", &hello], b"");
    assert_eq!((status, err.as_str()), (2, "mpjdev: --impi has the formats text and json\n"));
    let (status, _, err) = run(&["--dialect", "draft", &hello], b"");
    assert!(status == 2 && err.contains("--impi"), "{err}");
    let (status, _, err) = run(&["--impi=other", &hello], b"");
    assert!(status == 2 && err.contains("startup, packets"), "{err}");
}

/// Proves that options reach what they are for: part, dialect, form of input, format, marks.
#[test]
fn options_reach_what_they_are_for() {
    let capture = golden("impi-captures/flow.txt");
    let (status, out, _) = run(&["--impi=packets", &capture], b"");
    assert!(status == 0 && out.ends_with("in all      30 packets, 0 warnings\n"), "{out}");
    let (status, out, _) = run(&["--impi=startup", &capture], b"");
    assert!(status == 0 && out.ends_with("in all      70 commands, 0 warnings\n"), "{out}");
    let (status, out, _) = run(&["--impi", "--dialect=draft", &golden("impi-startup/draft.hex")], b"");
    assert!(status == 0 && out.starts_with("startup     draft dialect\n"), "{out}");
    let (status, out, _) = run(&["--impi", "-"], &octets("impi-hello.hex"));
    assert!(status == 0 && out.contains("\n  4   at 384       Fini"), "{out}");
    let (status, _, err) = run(&["--impi", "--input", "hex", "-"], &octets("impi-hello.hex"));
    assert!(status == 2 && err.contains("is not a hexadecimal digit"), "{err}");
    let (_, raw, _) = run(&["--impi", "--input", "raw", "-"], read("impi-hello.hex").as_bytes());
    assert!(raw.contains("damaged     at 0: packet type"), "{raw}");
    let (status, out, _) = run(&["--impi", "--format=json", &capture], b"");
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((status, json["packets"].as_u64()), (0, Some(30)));
    let many = golden("impi-many.hex");
    let (status, out, _) = run(&["--impi", "--ackmark=10", "--hiwater=9", "--maxdatalen=4", &many], b"");
    assert!(status == 1 && out.contains("10 packets without a ProtoAck, hiwater is 9"), "{out}");
    let (_, out, _) = run(&["--impi", "--all", &many], b"");
    assert!(out.contains(" seqnum=1 count=0 dtype=0  # short message of 4 octets"), "{out}");
}

/// Proves that help says what the JSON holds.
#[test]
fn help_names_every_key_of_the_json() {
    let (status, out, _) = run(&["--help"], b"");
    assert_eq!(status, 0);
    let keys = "dialect items commands packets warnings damages unmatched incomplete cancels error number part offset line \
                from to type fields ignored meaning data len first text message stream job";
    for key in keys.split(' ') {
        assert!(out.contains(&format!("\"{key}\"")), "{key} is not in\n{out}");
    }
}

/// Proves that a message of hundreds of mebioctets is explained in little memory, as it comes.
#[cfg(target_os = "linux")]
#[test]
fn a_long_recording_takes_little_memory() {
    const LEN: u32 = 256 << 20;
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -v 131072; exec \"$0\" inspect --impi -", env!("CARGO_BIN_EXE_mpjdev")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let header = &crate::support::stream(&[crate::support::with_data(
        crate::support::down(mpjdev_proto::impi::packet::PacketType::DataSync),
        1,
        1,
    )])[..128];
    let mut header = header.to_vec();
    header[4..8].copy_from_slice(&LEN.to_be_bytes());
    header[72..80].copy_from_slice(&u64::from(LEN).to_be_bytes());
    let mut input = child.stdin.take().expect("piped");
    input.write_all(&header).expect("it reads");
    let piece = vec![b'm'; 1 << 20];
    (0..LEN >> 20).for_each(|_| input.write_all(&piece).expect("it reads"));
    drop(input);
    let (status, out, err) = finished(child.wait_with_output().expect("it ends"));
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("short synchronous message of 268435456 octets"), "{out}");
}
