//! `mpjdev-bench` as a user runs it, with the shortest measurements. The tests do not assert speed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mpjdev_bench::contestant::{Contestant, Folder, RunningJob, Tools};
use mpjdev_bench::protocol::{Case, RunCommand};
use mpjdev_bench::startup;
use serde_json::Value;

fn run(args: &[&str]) -> (i32, String, String) {
    run_with(args, &[])
}

fn run_with(args: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev-bench"));
    command.args(args).envs(variables.iter().copied()).stdin(Stdio::null());
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

/// Proves that both transports are measured for each size, and that the JSON has the results.
#[test]
fn every_size_is_measured_over_every_transport() {
    let rows = rows(&["pingpong", "--sizes", "8,64k"]);
    let seen: Vec<_> = rows.iter().map(|r| (r["case"].as_str(), r["octets"].as_u64())).collect();
    let expected =
        ["arrays", "direct", "buffers"].map(|case| [8, 65_536].map(|octets| (Some(case), Some(octets))));
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

#[test]
fn budget_has_a_cost_for_each_kind_of_instruction() {
    let (status, out, err) = run(&["budget", "--json"]);
    assert_eq!((status, err.as_str()), (0, ""));
    let budget: Value = serde_json::from_str(&out).expect("JSON");
    for kind in ["handle", "mutex", "spin_lock", "update", "fence", "exchange"] {
        assert!(budget["costs"][kind].as_f64().is_some_and(|nanos| nanos > 0.0), "{kind}: {out}");
    }
    let saved = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("budget.json");
    let saved = saved.to_str().expect("UTF-8");
    let (status, out, _) = run(&["budget", "--save", saved]);
    assert!(status == 0 && out.contains("record in the queue"), "{out}");
    let (status, page, err) = run(&["report", saved]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(page.contains("| send: record in the queue |") && page.contains("baseline"), "{page}");
}

/// Proves that the other commands work, also with more ranks than processors.
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

/// Proves that each trip beside busy threads is timed, with mean and median.
#[test]
fn trips_beside_a_busy_thread_have_mean_and_median() {
    let rows = rows(&["pingpong", "--busy", "1", "--sizes", "8,64k", "--transport", "shm"]);
    let seen: Vec<_> = rows.iter().map(|r| (r["case"].as_str(), r["octets"].as_u64())).collect();
    assert_eq!(seen, [8, 65_536].map(|octets| (Some("timed"), Some(octets))));
    for contestant in rows.iter().map(|row| &row["contestants"][0]) {
        let is_positive = |key: &str| contestant[key].as_f64().is_some_and(|nanos| nanos > 0.0);
        assert!(is_positive("median") && is_positive("extra"), "{contestant}");
    }
}

fn names(row: &Value) -> Vec<&str> {
    let contestants = row["contestants"].as_array().expect("a list");
    contestants.iter().map(|c| c["name"].as_str().expect("a name")).collect()
}

/// Proves that plain sockets take part beside ranks over TCP, and that these ranks are measured or reported
/// as absent.
#[test]
fn tcp_ranks_are_compared_with_plain_sockets() {
    for (what, sizes, count) in [("pingpong", "8,1m", 6), ("bandwidth", "64k", 1), ("rate", "8", 4)] {
        let args = [what, "--sizes", sizes, "--transport", "tcp", "--time", "0", "--no-peer", "--json"];
        let (status, out, err) = run(&args);
        let whole: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("no JSON: {err}"));
        let rows = whole["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), count, "{out}");
        let absent = &whole["absent"][0]["name"];
        match status {
            0 => assert!(rows.iter().all(|row| names(row) == ["Rust tcp", "plain TCP sockets"]), "{out}"),
            _ => assert!(rows.iter().all(|row| names(row) == ["plain TCP sockets"]), "{out}"),
        }
        assert_eq!(
            (status, absent.as_str()),
            if absent.is_null() { (0, None) } else { (1, Some("Rust tcp")) }
        );
    }
}

/// Proves that plain sockets take part beside ranks over UDP, and that the counters of these ranks are the
/// sums over the measured turns.
#[test]
fn udp_ranks_report_their_counters() {
    for (what, sizes, count) in [("pingpong", "8,64k", 6), ("bandwidth", "64k", 1)] {
        let rows = rows(&[what, "--sizes", sizes, "--transport", "udp"]);
        assert_eq!(rows.len(), count);
        for row in &rows {
            assert_eq!(names(row), ["Rust udp", "plain UDP sockets"]);
            let counters = |at: usize| &row["contestants"][at]["counters"];
            let number = |name: &str| counters(0)[name].as_u64().unwrap_or_else(|| panic!("{name}: {row}"));
            let answers = if what == "pingpong" { 0 } else { number("messages") / 64 };
            assert_eq!(number("messages_sent"), number("messages") + answers, "{row}");
            // A message that one rank sends before the other begins to count is only in messages_sent. That
            // of the barrier behind each turn may arrive before the other has stopped, and is only in
            // messages_received.
            let received = number("messages_received");
            let turns = row["contestants"][0]["turns"].as_u64().expect("a number");
            assert!((1..=number("messages_sent") + turns).contains(&received), "{row}");
            assert!(number("send_calls") > 0 && number("receive_calls") > 0, "{row}");
            assert!(number("round_trip_ns") > 0 && number("data_sent") > 0, "{row}");
            assert!(counters(1).is_null(), "{row}");
        }
    }
    let args = ["rate", "--sizes", "8", "--time", "0", "--no-peer", "--transport", "udp"];
    let (status, out, err) = run(&args);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.contains("pure acks") && out.contains("calls to send"), "{out}");
}

/// Proves that the impairment applies to all datagrams, that all messages arrive, and that text and JSON
/// report the counts.
#[test]
fn udp_ranks_survive_an_impaired_network() {
    let bad = "loss=5%,dup=5%,reorder=4/20%";
    let args = ["rate", "--transport", "udp", "--sizes", "8,32k", "--time", "0", "--impair", bad, "-n", "3"];
    let (status, out, err) = run(&[&args[..], &["--seed", "7", "--json"]].concat());
    assert_eq!(status, 0, "{err}");
    assert!(err.lines().all(|line| line.starts_with("mpjdev-bench: ")) && err.contains("of 32 KiB"), "{err}");
    let whole: Value = serde_json::from_str(&out).expect("JSON");
    let network = &whole["network"];
    assert_eq!((network["impairment"].as_str(), network["seed"].as_u64()), (Some(bad), Some(7)));
    assert_eq!(network["is_inter_node"], false);
    for fate in ["sent", "delivered", "lost", "duplicated", "reordered"] {
        assert!(network[fate].as_u64() > Some(0), "{fate}: {network}");
    }
    let rows = whole["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{out}");
    let sum = |name: &str| -> u64 {
        let numbers = rows.iter().map(|row| row["contestants"][0]["counters"][name].as_u64());
        numbers.map(|number| number.expect("a number")).sum()
    };
    assert!(rows.iter().all(|row| names(row) == ["Rust udp"] && row["case"] == "rate-arrays"), "{out}");
    assert!(sum("retransmitted") > 0 && sum("duplicates") > 0 && sum("kept") > 0, "{out}");
}

/// Proves that a path with a rate is inter-node, and that the text has its counts.
#[test]
fn slow_network_is_sent_to_as_inter_node() {
    let slow = ["--impair", "delay=1ms,rate=100mbit", "--link-rate", "100mbit"];
    let args = ["pingpong", "--transport", "udp", "--sizes", "8k", "--time", "0"];
    let (status, out, err) = run(&[&args[..], &slow].concat());
    assert_eq!(status, 0, "{err}");
    assert!(out.contains("rate=100000000bit each way (seed 1), sent as between machines"), "{out}");
    assert!(out.contains(" 0 lost, 0 duplicated") && out.contains("pure acks"), "{out}");
}

/// Proves that Open MPI runs over the transports of the ranks, and that its names state them.
#[test]
fn open_mpi_takes_the_transports_that_ranks_take() {
    for (transport, expected) in [("tcp", &["tcp"][..]), ("local,tcp", &["shm", "tcp"])] {
        let args =
            ["rate", "--sizes", "8", "--time", "0", "--json", "--peer", "openmpi", "--transport", transport];
        let (status, out, err) = run(&args);
        if status == 2 && err.contains("apt-get install openmpi-bin") {
            eprintln!("not measured: {err}");
            return;
        }
        let whole: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("no JSON: {err}"));
        let names = names(&whole["rows"][0]);
        let theirs = names.iter().filter(|name| name.starts_with("C Open MPI "));
        let over: Vec<_> = theirs.filter_map(|name| name.rsplit(' ').next()).collect();
        assert_eq!(over, expected, "{names:?}");
    }
}

/// Proves that ranks run under the launcher of each installed MPI, beside C over the same MPI.
#[test]
fn mpi_ranks_are_compared_with_c_over_the_same_library() {
    for (peer, name) in [("openmpi", "Open MPI"), ("mpich", "MPICH")] {
        let args = ["pingpong", "--sizes", "8,64k", "--time", "0", "--json", "--peer", peer];
        let (status, out, err) = run(&[&args[..], &["--transport", "mpi"]].concat());
        if status == 2 && err.contains("apt-get install") {
            println!("SKIPPED {name}: {err}");
            continue;
        }
        assert_eq!((status, err.as_str()), (0, ""));
        let whole: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("no JSON: {err}"));
        let rows = whole["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), 6, "{out}");
        for row in rows {
            let names = names(row);
            assert_eq!(names[0], format!("Rust {name}"));
            assert!(names[1].starts_with(&format!("C {name} ")) && names[1].ends_with(" mpi"), "{names:?}");
        }
    }
    let (status, _, err) = run(&["pingpong", "--transport", "mpi", "--no-peer", "--time", "0"]);
    assert!(status == 2 && err.contains("ranks over an MPI need an installed MPI"), "{err}");
}

/// Proves that a contestant that cannot be started is named, and that the others are measured.
#[test]
fn missing_contestant_is_named_and_the_others_are_measured() {
    let args = ["rate", "--sizes", "8", "--time", "0", "--no-peer", "--transport", "local", "--java"];
    let nowhere = [("PATH", "/no/such/folder"), ("JAVA_HOME", "/no/such/folder")];
    let args = [&args[..], &["--class-path", env!("CARGO_TARGET_TMPDIR")]].concat();
    let (status, out, err) = run_with(&args, &nowhere);
    assert!(status == 1 && err.contains("java: "), "{err}");
    assert!(out.lines().next().is_some_and(|head| head.contains("Rust local  Java local")), "{out}");
    let (_, out, _) = run_with(&[&args[..], &["--json"]].concat(), &nowhere);
    let whole: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(names(&whole["rows"][0]), ["Rust local"]);
    assert_eq!(whole["absent"][0]["name"], "Java local");
}

/// Proves that clients start up at the server of this program, and that a missing server is named.
#[test]
fn startup_of_clients_is_measured_or_the_missing_server_is_named() {
    let own = Path::new(env!("CARGO_BIN_EXE_mpjdev-bench"));
    let help = Command::new(own).args(["impi-server", "--help"]).output().expect("it runs");
    let taken = startup::measure(&mut startup::server(own, 4), 4);
    match (help.status.success(), taken) {
        (true, Ok(taken)) => assert!(taken.all >= taken.beyond, "{taken:?}"),
        (false, Err(error)) => assert!(error.to_string().contains("it printed no address"), "{error}"),
        (is_there, taken) => panic!("server: {is_there}, {taken:?}"),
    }
}

/// Proves that the text is a table, and that JSON and SVG are written to files.
#[test]
fn pingpong_prints_a_table_and_saves_json_and_svg() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (json, svg) = (folder.join("bench.json"), folder.join("bench.svg"));
    let mut args = vec!["pingpong", "--sizes", "8,1k", "--time", "0", "--no-peer", "--transport", "local"];
    args.extend(["--save", json.to_str().expect("UTF-8"), "--svg", svg.to_str().expect("UTF-8")]);
    let (status, out, err) = run(&args);
    assert_eq!((status, err.as_str()), (0, ""));
    let saved: Value = serde_json::from_slice(&std::fs::read(&json).expect("a file")).expect("JSON");
    assert_eq!(saved["rows"].as_array().map(Vec::len), Some(6));
    let picture = std::fs::read_to_string(&svg).expect("a file");
    assert!(is_well_formed(&picture), "{picture}");
    assert_eq!(picture.matches("<circle").count(), (3 + 2) * 2, "bandwidth of copied messages only");
    assert!(
        out.lines().next().is_some_and(|head| head.contains("Rust local") && head.contains("bare line")),
        "{out}"
    );
    assert!(out.lines().any(|row| row.starts_with("buffer to buffer") && row.contains(" 1 KiB ")), "{out}");
}

/// Whether every element has its end tag in the right order.
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

/// Proves that a page is made from a file of figures, and that other files are refused by name.
#[test]
fn report_writes_a_page_of_what_figures_saved() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (saved, other) = (folder.join("shm.json"), folder.join("no-figures.json"));
    let figure =
        r#"{"title": "8 B", "asked": {"most": 1.3}, "measured": 1.2, "verdict": "reached", "mode": "fast"}"#;
    std::fs::write(&saved, format!("{{\"rows\": [], \"figures\": [{figure}]}}")).expect("a file");
    std::fs::write(&other, "{\"rows\": []}").expect("a file");
    let name = |file: &Path| file.to_str().expect("UTF-8").to_owned();
    let (status, out, err) = run(&["report", &name(&saved)]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.contains("\n## shm\n") && out.contains("| 8 B | at most 1.30 | 1.20 |"), "{out}");
    for (file, why) in [(name(&other), "no results"), ("/no/such.json".into(), "No such file")] {
        let (status, out, err) = run(&["report", &name(&saved), &file]);
        assert_eq!((status, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(&file) && err.contains(why), "{err}");
    }
}

/// Proves that the chart of a series is written beside the page, and that a missing folder is named.
#[test]
fn report_draws_the_chart_of_a_series_into_the_folder() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("charts");
    std::fs::create_dir_all(&folder).expect("a folder");
    let saved = folder.join("series.json");
    let row = r#"{"case": "direct", "octets": 8, "ranks": 2, "mode": "fast", "line": 30.0, "others": 0.0,
        "contestants": [{"name": "Java shm", "median": 331.0, "best": 320.0, "extra": 0.0, "turns": 9}]}"#;
    std::fs::write(&saved, format!("{{\"rows\": [{row}], \"cliffs\": []}}")).expect("a file");
    let name = |file: &Path| file.to_str().expect("UTF-8").to_owned();
    let (status, out, err) = run(&["report", &name(&saved), "--folder", &name(&folder)]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.contains("](unknown-series.svg)\n"), "{out}");
    let chart = std::fs::read_to_string(folder.join("unknown-series.svg")).expect("a chart");
    assert!(is_well_formed(&chart), "{chart}");
    let (status, out, err) = run(&["report", &name(&saved), "--folder", &name(&folder.join("none"))]);
    assert!((status, out.as_str()) == (2, "") && err.contains("see --folder"), "{err}");
}

/// Proves that wrong usage is named, with status 2 and nothing on standard output.
#[test]
fn wrong_usage_is_named_with_status_2() {
    for (args, word) in [
        (&["speed"][..], "'speed'"),
        (&["pingpung"], "'pingpong'"),
        (&[], "pingpong"),
        (&["rate", "--transport", "atm"], "local, shm, tcp, udp"),
        (&["rate", "--sizes", "7"], "a multiple of 8"),
        (&["rate", "--sizes", "x"], "not a number of octets"),
        (&["rate", "--time=-1"], "not a number of seconds"),
        (&["rate", "-n", "1"], "2..=256"),
        (&["rate", "--peer", "lam"], "openmpi"),
        (&["rate", "--peer", "mpich", "--no-peer"], "--no-peer"),
        (&["rate", "--impair", "loss=1%"], "with --transport udp"),
        (&["rate", "--impair", "loss=1%", "--transport", "udp,tcp"], "with --transport udp"),
        (&["ring", "--busy", "1"], "requires pingpong"),
        (&["pingpong", "--busy", "0"], "1..=64"),
        (&["ring", "--impair", "loss=1%", "--transport", "udp"], "with --transport udp"),
        (&["rate", "--impair", "loss=1%", "--transport", "udp", "-n", "17"], "16 ranks at most"),
        (&["rate", "--impair", "loss=x", "--transport", "udp"], "a chance up to 100%"),
        (&["rate", "--impair", "loss=1%", "--transport", "udp", "--java"], "--java"),
        (&["rate", "--transport", "udp", "--seed", "2"], "--impair"),
        (&["rate", "--transport", "udp", "--link-rate", "1gbit"], "--impair"),
        (&["report"], "<FILE>"),
        (&["series", "-n", "3"], "series measures two ranks"),
        (&["series", "--class-path", "/no/such.jar"], "--class-path"),
        (&["figures", "-n", "4"], "their own ranks"),
        (&["rate", "--jobs", "5"], "requires figures"),
        (&["figures", "--jobs", "0"], "1..=99"),
        (&["figures", "--transport", "local"], "shm, tcp, udp and mpi"),
        (&["figures", "--class-path", "/no/such.jar"], "--class-path"),
        (&["rate", "--java", "--class-path", "/no/such.jar"], "/no/such.jar"),
    ] {
        let (status, out, err) = run(args);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(word), "{args:?}: {err}");
    }
}

/// Proves that a peer that is requested by name must be installed, and that a default peer may be missing.
#[test]
fn missing_peer_error_names_its_package() {
    // A PATH without an MPI.
    let path = [("PATH", "/no/such/folder")];
    let short = ["rate", "--sizes", "8", "--time", "0", "--transport", "local"];
    let (status, _, err) = run_with(&[&short[..], &["--peer", "openmpi"]].concat(), &path);
    assert!(status == 2 && err.contains("apt-get install openmpi-bin"), "{err}");
    let (status, out, err) = run_with(&short, &path);
    assert!(status == 0 && err.contains("Open MPI is not") && err.contains("MPICH is not"), "{err}");
    assert!(out.contains("/s"), "{out}");
}

/// Proves that a compiler of an MPI without its headers counts as missing, with a hint on the package.
#[test]
fn compiler_without_headers_is_missing_with_the_package_named() {
    let folder = Folder::new().expect("a folder");
    let scripts = [
        ("mpirun.openmpi", "echo 'mpirun (Open MPI) 4.1.4'"),
        ("mpicc.openmpi", "[ \"$1\" = -show ] || { echo 'fatal error: mpi.h: No such file' >&2; exit 1; }"),
    ];
    for (name, body) in scripts {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").expect("a PATH"));
    let args = ["pingpong", "--sizes", "8", "--time", "0", "--peer", "openmpi", "--transport", "shm"];
    let (status, _, err) = run_with(&args, &[("PATH", &path)]);
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("apt-get install openmpi-bin libopenmpi-dev") && err.contains("mpi.h"), "{err}");
}

/// Proves that a requested Aeron must be installed, and that it takes part only where it can.
#[test]
fn unavailable_aeron_error_names_its_remedy() {
    let class_path = env!("CARGO_TARGET_TMPDIR");
    for (args, word) in [
        (&["rate", "--transport", "shm"][..], "./gradlew installBench"),
        (&["ring", "--transport", "shm"], "for two ranks"),
        (&["rate", "--transport", "tcp"], "over local, shm and udp"),
    ] {
        let (status, out, err) = run(&[args, &["--peer", "aeron", "--class-path", class_path]].concat());
        assert!((status, out.as_str()) == (2, "") && err.contains(word), "{args:?}: {err}");
    }
}

/// Proves that plain UDP sockets execute commands as processes and lose no datagram.
#[test]
fn plain_datagrams_are_a_contestant() {
    let own = PathBuf::from(env!("CARGO_BIN_EXE_mpjdev-bench"));
    let folder = Folder::new().expect("a folder");
    let launcher = own.clone();
    let tools = Tools {
        folder,
        own,
        launcher,
        java: "java".into(),
        class_path: "".into(),
        aeron: None,
        baseline: None,
    };
    let mut job = RunningJob::start(&Contestant::Datagrams, 3, &tools).expect("it starts");
    assert_eq!(job.name(), "plain UDP sockets");
    for (case, octets) in [(Case::Buffers, 8), (Case::Arrays, 1 << 16), (Case::RateBuffers, 1 << 12)] {
        let answer = job.run(RunCommand { case, octets, times: 3 }).expect("an answer");
        assert!(answer.nanos > 0.0, "{case}");
    }
    job.end().expect("all its ranks exit with status 0");
}

/// Proves that a rank does not start ranks, and that no file remains in the temporary folder.
#[test]
fn benchmark_refuses_to_be_a_rank_and_leaves_no_files() {
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

/// Proves that a rank without a launcher or a command socket fails with a reason.
#[test]
fn rank_without_launcher_or_orders_fails() {
    let own = env!("CARGO_BIN_EXE_mpjdev-bench");
    let plain = [&["--sockets", "2"][..], &["--datagrams", "2"], &["--rank", "2"], &["--rank", "2", "--udp"]];
    for option in [&[][..], &["--threads", "2"]].into_iter().chain(plain) {
        let args = [&["/no/such/socket"], option].concat();
        let output = Command::new(own).arg("rank").args(args).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(err.contains("no launcher") || err.contains("the command socket"), "{err}");
    }
}

/// Proves that an unknown transport is refused.
#[test]
fn rank_with_an_unknown_transport_fails() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev-bench"));
    let output = command.args(["rank", "/no/such/socket"]).env("MPJDEV_TRANSPORT", "mpii").output();
    let output = output.expect("it runs");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && err.contains("MPJDEV_TRANSPORT is \"mpii\", which no launcher sets"),
        "{err}"
    );
}
