//! `mpjdev bench` as a user runs it, as short as it goes. How fast anything is proves nothing here.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

fn run(args: &[&str]) -> (i32, String, String) {
    run_with(args, &[])
}

fn run_with(args: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev"));
    command.arg("bench").args(args).envs(variables.iter().copied()).stdin(Stdio::null());
    let output = command.output().expect("it runs");
    let text = |octets| String::from_utf8(octets).expect("UTF-8");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

fn rows(args: &[&str]) -> Vec<Value> {
    let short = ["--time", "0", "--no-peer", "--json"];
    let (status, out, err) = run(&[args, &short].concat());
    assert_eq!((status, err.as_str()), (0, ""), "{args:?}");
    let whole: Value = serde_json::from_str(&out).expect("JSON");
    whole["rows"].as_array().expect("rows").clone()
}

/// Proves that both transports are measured for each size, and that what was measured can be read by a program.
#[test]
fn every_size_is_measured_over_every_transport() {
    let rows = rows(&["pingpong", "--sizes", "8,64k"]);
    let seen: Vec<_> = rows.iter().map(|r| (r["case"].as_str(), r["octets"].as_u64())).collect();
    let expected = ["arrays", "buffers"].map(|case| [8, 65_536].map(|octets| (Some(case), Some(octets))));
    assert_eq!(seen, expected.concat());
    for row in &rows {
        let names: Vec<_> =
            row["contestants"].as_array().expect("a list").iter().map(|c| &c["name"]).collect();
        assert_eq!(names, ["Rust local", "Rust shm"]);
        for contestant in row["contestants"].as_array().expect("a list") {
            assert!(contestant["median"].as_f64().is_some_and(|nanos| nanos > 0.0), "{contestant}");
            assert!(contestant["turns"].as_u64().is_some_and(|turns| turns >= 3), "{contestant}");
        }
    }
}

/// Proves that the other kinds of traffic go through with more ranks than processors.
#[test]
fn all_kinds_of_traffic_are_measured() {
    for what in ["bandwidth", "rate"] {
        assert!(!rows(&[what, "--sizes", "8", "--transport", "shm"]).is_empty(), "{what}");
    }
    for what in ["ring", "alltoall"] {
        let rows = rows(&[what, "--sizes", "8", "-n", "5", "--transport", "shm"]);
        assert_eq!(rows[0]["ranks"], 5, "{what}");
    }
}

/// Proves that people get a table, and both get files where they ask for them.
#[test]
fn people_get_a_table_and_a_picture() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (json, svg) = (folder.join("bench.json"), folder.join("bench.svg"));
    let mut args = vec!["pingpong", "--sizes", "8,1k", "--time", "0", "--no-peer", "--transport", "local"];
    args.extend(["--save", json.to_str().expect("UTF-8"), "--svg", svg.to_str().expect("UTF-8")]);
    let (status, out, err) = run(&args);
    assert_eq!((status, err.as_str()), (0, ""));
    let saved: Value = serde_json::from_slice(&std::fs::read(&json).expect("a file")).expect("JSON");
    assert_eq!(saved["rows"].as_array().map(Vec::len), Some(4));
    let picture = std::fs::read_to_string(&svg).expect("a file");
    assert!(is_well_formed(&picture), "{picture}");
    assert_eq!(picture.matches("<circle").count(), 2 * 2 + 2);
    assert!(
        out.lines().next().is_some_and(|head| head.contains("Rust local") && head.contains("bare line")),
        "{out}"
    );
    assert!(out.lines().any(|row| row.starts_with("buffer to buffer") && row.contains(" 1 KiB ")), "{out}");
}

/// Whether every element is ended, in the order of their beginnings.
fn is_well_formed(xml: &str) -> bool {
    let mut open = Vec::new();
    for tag in xml.split('<').skip(1) {
        let Some((tag, _)) = tag.split_once('>') else { return false };
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        if tag.starts_with('/') {
            if open.pop() != Some(name) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    open.is_empty() && xml.starts_with("<svg ")
}

/// Proves that wrong usage is named, with status 2 and nothing on standard output.
#[test]
fn wrong_usage_is_named_with_status_2() {
    for (args, word) in [
        (&["speed"][..], "pingpong"),
        (&[], "WHAT"),
        (&["rate", "--transport", "tcp"], "local, shm"),
        (&["rate", "--sizes", "7"], "a multiple of 8"),
        (&["rate", "--sizes", "x"], "not a number of octets"),
        (&["rate", "--time=-1"], "not a number of seconds"),
        (&["rate", "-n", "1"], "2..=256"),
        (&["rate", "--peer", "lam"], "openmpi"),
        (&["rate", "--peer", "mpich", "--no-peer"], "--no-peer"),
        (&["figures", "-n", "4"], "of their own"),
        (&["figures", "--class-path", "/no/such.jar"], "--class-path"),
        (&["rate", "--java", "--class-path", "/no/such.jar"], "/no/such.jar"),
    ] {
        let (status, out, err) = run(args);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(word), "{args:?}: {err}");
    }
}

/// Proves that a peer that was asked for by name and is not there is not passed over, and is if nobody asked.
#[test]
fn a_peer_that_is_not_installed_is_said_with_how_to_install_it() {
    // A PATH on which no MPI is.
    let path = [("PATH", "/no/such/folder")];
    let short = ["rate", "--sizes", "8", "--time", "0", "--transport", "local"];
    let (status, _, err) = run_with(&[&short[..], &["--peer", "openmpi"]].concat(), &path);
    assert!(status == 2 && err.contains("apt-get install openmpi-bin"), "{err}");
    let (status, out, err) = run_with(&short, &path);
    assert!(status == 0 && err.contains("Open MPI is not") && err.contains("MPICH is not"), "{err}");
    assert!(out.contains("M/s"), "{out}");
}

/// Proves that a rank does not start ranks, and that nothing is left in the folder for temporary files.
#[test]
fn it_is_no_rank_and_leaves_nothing_behind() {
    let (status, _, err) = run_with(&["rate"], &[("MPJDEV_CONTROL", "3")]);
    assert!(status == 2 && err.contains("rank of a job"), "{err}");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench");
    std::fs::create_dir_all(&folder).expect("a folder");
    let variables = [("TMPDIR", folder.to_str().expect("UTF-8"))];
    let args = ["rate", "--sizes", "8", "--time", "0", "--no-peer", "--transport", "shm"];
    let (status, _, err) = run_with(&args, &variables);
    assert_eq!(status, 0, "{err}");
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 0);
}

/// Proves that a rank without anybody to follow says so and ends.
#[test]
fn a_rank_needs_a_launcher_and_orders() {
    let own = env!("CARGO_BIN_EXE_mpjdev");
    for args in [&["/no/such/socket"][..], &["/no/such/socket", "--threads", "2"]] {
        let output = Command::new(own).arg("bench-rank").args(args).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(err.contains("no launcher") || err.contains("the socket of the orders"), "{err}");
    }
}
