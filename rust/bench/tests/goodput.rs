//! Goodput between network namespaces. Without the right to make namespaces, and outside soak runs, the test
//! is skipped.

use std::process::{Command, Stdio};

/// Exit status, standard output, standard error.
fn bench(words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev-bench"));
    let output = command.args(words).stdin(Stdio::null()).output().expect("it starts");
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn goodput_is_measured_by_all_machines_in_one_run() {
    // Fifteen pairs of processes, one after the other, take half a minute.
    if std::env::var_os("MPJDEV_SOAK").is_none() {
        println!("SKIPPED goodput_is_measured_by_all_machines_in_one_run: it runs in soak");
        return;
    }
    let words = ["goodput", "--time", "0.1", "--impair", "delay=1ms,rate=50mbit", "--by", "relay", "--json"];
    let (status, said, why) = bench(&words);
    if status == 2 {
        println!("SKIPPED goodput_is_measured_by_all_machines_in_one_run: {}", why.trim());
        return;
    }
    assert_eq!(status, 0, "{why}");
    let measured: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let list = |name: &str| measured[name].as_array().expect("a list").clone();
    let (streams, messages) = (list("streams"), list("messages"));
    // One network, since there is no loss to be left out, and two machines, one of them in two ways, with and
    // without loss.
    assert_eq!((streams.len(), messages.len()), (1, 6), "{said}");
    let is_positive = |value: &serde_json::Value| value.as_f64().is_some_and(|value| value > 0.0);
    let all = ["tcp", "ours", "tcp_beside", "ours_beside", "fairness", "private", "private_share"];
    assert!(all.iter().all(|name| is_positive(&streams[0][name])), "{said}");
    assert!(messages.iter().all(|row| is_positive(&row["round_trip_us"])), "{said}");
    // The last one has no value if no packet was lost, by chance.
    let figures = list("figures");
    let is_measured = |figure: &serde_json::Value| !figure["measured"].is_null();
    assert!(figures.len() == 7 && figures[..6].iter().all(is_measured), "{said}");
}

#[test]
fn goodput_refuses_options_of_other_measurements() {
    for words in [&["goodput", "--sizes", "8"][..], &["goodput", "--java"], &["rate", "--by", "relay"]] {
        let (status, said, why) = bench(words);
        assert_eq!((status, said.as_str()), (2, ""), "{words:?}: {why}");
        assert!(why.contains("goodput"), "{words:?}: {why}");
    }
    let (status, _, why) = bench(&["goodput", "--impair", "loss=many"]);
    assert!(status == 2 && why.contains("loss=many"), "{why}");
}
