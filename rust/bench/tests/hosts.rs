//! `mpjdev-bench hosts` as a user runs it, with few jobs. The test does not assert speed. It is skipped
//! without the right to make network namespaces, and without sshd or Open MPI.

use std::process::{Command, Stdio};

use serde_json::Value;

#[test]
fn starts_on_hosts_are_measured_beside_open_mpi() {
    let json = concat!(env!("CARGO_TARGET_TMPDIR"), "/hosts.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev-bench"));
    command.args(["hosts", "--hosts", "2", "-n", "1", "--jobs", "1", "--local", "3", "--json", json]);
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let err = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) {
        println!("SKIPPED starts_on_hosts_are_measured_beside_open_mpi: {}", err.trim());
        return;
    }
    assert!(output.status.success(), "{err}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("| 2 hosts x 1 ranks |") && text.contains("| 3 local shells x 1 rank |"), "{text}");
    let measured: Value = serde_json::from_slice(&std::fs::read(json).expect("a file")).expect("JSON");
    let row = &measured["rows"][0];
    assert!(row["ours"][0].as_f64() > Some(0.0) && row["theirs"][0].as_f64() > Some(0.0), "{row}");
    assert_eq!(measured["rows"][1]["theirs"].as_array().map(Vec::len), Some(0), "{measured}");
}
