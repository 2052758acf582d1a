//! Tests of the command `mpjdev inspect --impi`.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::support::{octets, path, read};

fn run(args: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev"));
    command.arg("inspect").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    // The command may end without reading.
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

/// Proves the exit statuses: sound, with warnings, damaged, unreadable, wrong usage.
#[test]
fn exit_statuses_name_the_outcome() {
    let hello = golden("impi-hello.hex");
    let (status, out, err) = run(&["--impi", &hello], b"");
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.starts_with("packets     final dialect\n  1   at 0, line 3 "), "{out}");
    let (status, out, _) = run(&["--impi", &golden("impi-fields.hex")], b"");
    assert!(status == 1 && out.ends_with("2 packets, 2 warnings\n"), "{out}");
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

/// Proves the effect of each option: part, dialect, form of input, format, terms. The old --hiwater has none.
#[test]
fn options_select_parts_and_forms() {
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
    let (status, out, _) = run(&["--impi", "--ackmark=10", "--hiwater=9", "--maxdatalen=3", &many], b"");
    assert!(status == 1 && out.contains("# acknowledges 10 packets\n"), "{out}");
    assert!(out.contains("! len 4 is above maxdatalen, 3\n"), "{out}");
    let (_, out, _) = run(&["--impi", "--all", &many], b"");
    assert!(out.contains(" seqnum=1 count=0 dtype=0  # short message of 4 octets"), "{out}");
}

/// Proves that the help lists the keys of the JSON.
#[test]
fn help_names_every_key_of_the_json() {
    let (status, out, _) = run(&["--help"], b"");
    assert_eq!(status, 0);
    let keys = "dialect items commands packets warnings damages error number part offset line \
                from to type fields ignored meaning data len first text message stream";
    for key in keys.split(' ') {
        assert!(out.contains(&format!("\"{key}\"")), "{key} is not in\n{out}");
    }
}

/// Proves that the memory of a dissection does not grow with the number of its entries.
#[cfg(target_os = "linux")]
#[test]
fn many_entries_take_little_memory() {
    const COMMANDS: usize = 1 << 19;
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -v 131072; exec \"$0\" inspect --impi -", env!("CARGO_BIN_EXE_mpjdev")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(&b"DONE\0\0\0\0".repeat(COMMANDS)).expect("it reads");
    drop(input);
    let (status, out, err) = finished(child.wait_with_output().expect("it ends"));
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert!(out.ends_with("in all      524288 commands, 0 warnings\n"));
}
