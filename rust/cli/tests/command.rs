//! Tests of the command: arguments, files, standard input, exit statuses.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)
}

fn mpjdev(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev"));
    command.args(args).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> (i32, String, String) {
    finished(mpjdev(args).output().expect("it runs"))
}

fn run_with_input(args: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut child = mpjdev(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    child.stdin.take().expect("piped").write_all(input).expect("it reads");
    finished(child.wait_with_output().expect("it ends"))
}

fn finished(output: Output) -> (i32, String, String) {
    let text = |octets| String::from_utf8(octets).expect("UTF-8");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

/// Proves the exit status and the JSON of a sound message, from a file of hex text.
#[test]
fn sound_message_exits_with_status_0() {
    let file = golden("example-le.hex");
    let (status, out, err) = run(&["inspect", "--format", "json", file.to_str().expect("UTF-8")]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert_eq!(
        out,
        "{\"encoding\":\"little\",\"primary_len\":48,\"sections\":[\
         {\"type\":\"int\",\"count\":3,\"values\":[1,2,-1]},\
         {\"type\":\"byte\",\"count\":5,\"values\":[10,11,12,13,14]},\
         {\"type\":\"object\",\"count\":2,\"values\":[]}],\"secondary_len\":12}\n"
    );
}

/// Proves the exit status of a damaged message in each format, and that each says where.
#[test]
fn damaged_message_exits_with_status_1() {
    let file = golden("damaged-count-negative-be.hex");
    for format in ["text", "json", "hex"] {
        let (status, out, err) = run(&["inspect", "--format", format, file.to_str().expect("UTF-8")]);
        assert_eq!((status, err.as_str()), (1, ""), "{format}");
        assert!(out.contains("28") && out.contains("element count -1 is negative"), "{format}: {out}");
    }
    let (status, out, _) = run_with_input(&["inspect", "-"], b"");
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("at offset 0: 0 octets, 16 needed"), "{out}");
}

/// Proves that standard input is read, and that `--input` decides its form.
#[test]
fn standard_input_is_read_as_raw_octets_or_hex() {
    let raw = [0u8; 16];
    for (args, input) in [
        (&["inspect", "-"][..], &raw[..]),
        (&["inspect", "--input", "raw", "-"], &raw),
        (&["inspect", "-"], b"0000000000000000 0000000000000000"),
        (&["inspect", "--input=hex", "-"], b"0000000000000000 0000000000000000"),
    ] {
        let (status, out, err) = run_with_input(args, input);
        assert_eq!((status, err.as_str()), (0, ""));
        assert!(out.starts_with("message     16 octets, big-endian\n"), "{out}");
    }
    let (status, out, _) = run_with_input(&["inspect", "--input", "raw", "-"], b"0000");
    assert_eq!(status, 1);
    assert!(out.starts_with("message     4 octets, byte order unknown\n"), "{out}");
    let (status, _, err) = run_with_input(&["inspect", "--input", "hex", "-"], &raw);
    assert_eq!(status, 2);
    assert!(err.contains("'\\0' is not a hexadecimal digit"), "{err}");
}

/// Proves that the dump is parsed as the same message.
#[test]
fn dump_is_valid_input() {
    let file = golden("objects-shared-be.hex");
    let (_, dump, _) = run(&["inspect", "--format=hex", file.to_str().expect("UTF-8")]);
    let (_, wanted, _) = run(&["inspect", "--format=json", file.to_str().expect("UTF-8")]);
    let (status, again, _) = run_with_input(&["inspect", "--format=json", "-"], dump.as_bytes());
    assert_eq!((status, again), (0, wanted));
}

/// Proves that an input that cannot be read is named, with status 2.
#[test]
fn unreadable_input_is_named_with_status_2() {
    let (status, out, err) = run(&["inspect", "/no/such/file"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(err.starts_with("mpjdev: /no/such/file: "), "{err}");
    let (status, _, err) = run(&["inspect", env!("CARGO_MANIFEST_DIR")]);
    assert_eq!(status, 2);
    assert!(err.contains(env!("CARGO_MANIFEST_DIR")), "{err}");
    let (status, _, err) = run_with_input(&["inspect", "-"], b"not hex at all");
    assert_eq!(status, 2);
    assert!(
        err.starts_with("mpjdev: standard input: line 1, column 1: 'n' is not a hexadecimal digit"),
        "{err}"
    );
    // A file of that name is not standard input.
    let (status, _, err) = run(&["inspect", "./-"]);
    assert_eq!(status, 2);
    assert!(err.starts_with("mpjdev: ./-: "), "{err}");
}

/// Proves that a closed output ends the command without an error.
#[test]
fn closed_pipe_ends_inspect_without_an_error() {
    let len: u32 = 1 << 20;
    let mut message = vec![0, 0, 0, 0];
    message.extend((8 + len).to_be_bytes());
    message.extend([0, 0, 0, 0]);
    message.extend(len.to_be_bytes());
    message.resize(message.len() + len as usize + 8, 0);
    for args in [
        &["inspect", "--all", "-"][..],
        &["inspect", "--format=json", "-"],
        &["inspect", "--format=hex", "-"],
    ] {
        let mut child = mpjdev(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        drop(child.stdout.take());
        child.stdin.take().expect("piped").write_all(&message).expect("it reads all first");
        assert_eq!(finished(child.wait_with_output().expect("it ends")), (0, String::new(), String::new()));
    }
}

/// Proves that help and version are printed, and that an unknown command is named with the known ones.
#[test]
fn help_version_and_unknown_commands_are_answered() {
    let (status, out, _) = run(&["--version"]);
    assert_eq!((status, out), (0, format!("mpjdev {}\n", env!("CARGO_PKG_VERSION"))));
    let (status, out, _) = run(&["--help"]);
    assert!(status == 0 && out.contains("inspect"), "{out}");
    let (status, out, _) = run(&["inspect", "--help"]);
    assert!(status == 0 && out.contains("--format") && out.contains("Exit status"), "{out}");
    let (status, out, err) = run(&["inspekt"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(err.contains("inspekt") && err.contains("'inspect'"), "{err}");
    let (status, _, err) = run(&["inspect", "--format", "xml", "-"]);
    assert!(status == 2 && err.contains("text, json, hex"), "{err}");
    let (status, _, err) = run(&[]);
    assert!(status == 2 && err.contains("inspect"), "{err}");
}

/// Proves that `bench` prints the name of the benchmark program, whatever its arguments.
#[test]
fn bench_names_its_program_with_status_2() {
    let line = "mpjdev: the benchmarks are the program mpjdev-bench (./gradlew installBench)\n";
    for args in [&["bench"][..], &["bench", "pingpong", "--java", "--sizes", "8"], &["bench", "--help"]] {
        assert_eq!(run(args), (2, String::new(), line.to_owned()), "{args:?}");
    }
}

/// Proves that `mpjrun` is `mpjdev run`, in any folder.
#[cfg(unix)]
#[test]
fn mpjrun_is_mpjdev_run() {
    use std::os::unix::process::CommandExt;
    for name in ["mpjrun", "/some/where/mpjrun"] {
        let output =
            mpjdev(&["-np", "2", "sh", "-c", "echo $MPJDEV_SIZE"]).arg0(name).output().expect("it runs");
        assert_eq!(finished(output), (0, "2\n2\n".to_owned(), String::new()));
    }
}
