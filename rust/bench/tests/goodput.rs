//! Goodput between network namespaces. The test is skipped outside soak runs, and without the right to make
//! namespaces.

use std::process::{Command, Stdio};

/// Exit status, standard output, standard error.
fn bench(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev-bench"));
    let output = command.args(args).stdin(Stdio::null()).output().expect("it starts");
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn goodput_is_measured_for_all_protocols_in_one_run() {
    // Fifteen pairs of processes run one after the other, which takes half a minute.
    if std::env::var_os("MPJDEV_SOAK").is_none() {
        println!("SKIPPED goodput_is_measured_for_all_protocols_in_one_run: it runs in soak");
        return;
    }
    let args = ["goodput", "--time", "0.1", "--impair", "delay=1ms,rate=50mbit", "--by", "relay", "--json"];
    let (status, out, why) = bench(&args);
    if status == 2 {
        println!("SKIPPED goodput_is_measured_for_all_protocols_in_one_run: {}", why.trim());
        return;
    }
    assert_eq!(status, 0, "{why}");
    let measured: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let list = |name: &str| measured[name].as_array().expect("a list").clone();
    let (streams, messages) = (list("streams"), list("messages"));
    // One network, since the impairment has no loss to leave out. Three protocols, each with and without
    // loss.
    assert_eq!((streams.len(), messages.len()), (1, 6), "{out}");
    let is_positive = |value: &serde_json::Value| value.as_f64().is_some_and(|value| value > 0.0);
    let all = ["tcp", "ours", "tcp_beside", "ours_beside", "fairness", "private", "private_share"];
    assert!(all.iter().all(|name| is_positive(&streams[0][name])), "{out}");
    assert!(messages.iter().all(|row| is_positive(&row["round_trip_us"])), "{out}");
    // The last figure has no value if by chance no packet was lost.
    let figures = list("figures");
    let is_measured = |figure: &serde_json::Value| !figure["measured"].is_null();
    assert!(figures.len() == 7 && figures[..6].iter().all(is_measured), "{out}");
}

#[test]
fn goodput_refuses_options_of_other_measurements() {
    for args in [&["goodput", "--sizes", "8"][..], &["goodput", "--java"], &["rate", "--by", "relay"]] {
        let (status, out, why) = bench(args);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}: {why}");
        assert!(why.contains("goodput"), "{args:?}: {why}");
    }
    let (status, _, why) = bench(&["goodput", "--impair", "loss=many"]);
    assert!(status == 2 && why.contains("loss=many"), "{why}");
}
