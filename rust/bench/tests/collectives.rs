//! `mpjdev-bench collectives` as a user runs it, with the shortest measurements. The tests do not assert
//! speed.
//! `BenchTest` in Java runs it with ranks in Java.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

fn run(args: &[&str], path: Option<&str>) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev-bench"));
    command.arg("collectives").args(args).envs(path.map(|path| ("PATH", path))).stdin(Stdio::null());
    command.env_remove("MPJ_HOME");
    let output = command.output().expect("it runs");
    let text = |octets| String::from_utf8(octets).expect("UTF-8");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

/// A class path that exists and has no Java program.
const NO_CLASSES: &str = env!("CARGO_TARGET_TMPDIR");

/// Proves that C under each installed MPI makes every call, also with more ranks than processors, and that
/// ranks in Java that cannot be started are named.
#[test]
fn c_programs_are_measured_where_java_is_missing() {
    let svg = PathBuf::from(NO_CLASSES).join("collectives.svg");
    let svg = svg.to_str().expect("UTF-8");
    let rows = "barrier,of 8 b,of 128 doubles,of 1 kib";
    let args =
        ["--class-path", NO_CLASSES, "--time", "0", "--ranks", "2,3", "--rows", rows, "--json", "--svg", svg];
    let (status, out, err) = run(&args, None);
    if err.contains("Open MPI is not installed") && err.contains("MPICH is not installed") {
        println!("SKIPPED C programs: {err}");
        return;
    }
    assert_eq!(status, 1, "{err}");
    let whole: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("no JSON: {err}"));
    assert_eq!(whole["absent"][0]["name"], "Java shm", "{out}");
    let rows = whole["rows"].as_array().expect("rows");
    let figures = whole["figures"].as_array().expect("figures");
    let titles: Vec<&str> = figures.iter().filter_map(|figure| figure["title"].as_str()).collect();
    assert_eq!((rows.len(), titles.len()), (2 * 10, 2 * 10), "{titles:?}");
    assert!(titles.contains(&"3 ranks, Reduce_scatter of 1 KiB a rank"), "{titles:?}");
    for row in rows {
        let contestants = row["contestants"].as_array().expect("a list");
        assert!(!contestants.is_empty(), "{row}");
        assert!(contestants.iter().all(|one| one["median"].as_f64() > Some(0.0)), "{row}");
    }
    let picture = std::fs::read_to_string(svg).expect("a picture");
    assert!(picture.starts_with("<svg ") && picture.contains("Reduce_scatter"), "{picture}");
}

/// Proves that ranks in Rust make every call, also with more ranks than processors.
#[test]
fn ranks_in_rust_are_measured_beside_the_others() {
    let rows = "barrier,of 8 b,of 128 doubles,of 1 kib,of 256 kib";
    let args =
        ["--class-path", NO_CLASSES, "--time", "0", "--ranks", "2,3", "--rows", rows, "--no-peer", "--json"];
    let (status, out, err) = run(&args, None);
    assert_eq!(status, 1, "{err}");
    let whole: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("no JSON: {err}"));
    let rows = whole["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2 * 17, "{out}");
    for row in rows {
        let contestants = row["contestants"].as_array().expect("a list");
        assert_eq!((contestants.len(), &contestants[0]["name"]), (1, &"Rust shm".into()), "{row}");
        assert!(contestants[0]["median"].as_f64() > Some(0.0), "{row}");
    }
    let figures = whole["figures"].as_array().expect("figures");
    assert!(figures.iter().all(|figure| figure["ours"].is_null()), "{out}");
}

/// Proves that the text has the limit of MPJ Express and says how it takes part.
#[test]
fn row_of_an_absent_mpj_express_names_the_option() {
    let args = ["--class-path", NO_CLASSES, "--time", "0", "--rows", "MPJ Express", "--no-peer"];
    let (status, out, err) = run(&args, None);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.contains(">= 10.0") && out.contains("not measured"), "{out}");
    assert!(
        out.contains("MPJ Express is absent: no installation is named: --mpj-express or MPJ_HOME"),
        "{out}"
    );
}

/// Proves that a home folder of MPJ Express that was named must have its files.
#[test]
fn missing_files_of_mpj_express_are_named() {
    let args = ["--class-path", NO_CLASSES, "--rows", "Express", "--no-peer", "--mpj-express", NO_CLASSES];
    let (status, out, err) = run(&args, None);
    assert_eq!((status, out.as_str()), (2, ""), "{err}");
    assert!(
        err.contains("--mpj-express: ") && err.contains("has no lib/starter.jar and no lib/mpj.jar"),
        "{err}"
    );
}

/// Proves that wrong arguments are refused with a sentence, and that the help names the method.
#[test]
fn wrong_arguments_are_refused_by_name() {
    let java = ["--class-path", NO_CLASSES];
    for (args, word) in [
        (&["--ranks", "1"][..], "2..=64"),
        (&["--ranks", "2,x"], "invalid"),
        (&["--jobs", "0"], "1..=99"),
        (&["--time", "never"], "not a number of seconds"),
        (&["--rows", "bcats", "--no-peer"], "no row has one of the names [\"bcats\"]"),
        (&["--transport", "mpi"], "rows of their own"),
        (&["--peer", "aeron"], "no collective calls"),
        (&["--peer", "mpich", "--no-peer"], "--no-peer"),
    ] {
        let (status, out, err) = run(&[args, &java].concat(), None);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(word), "{args:?}: {err}");
    }
    let (status, _, err) = run(&["--class-path", "/no/such.jar"], None);
    assert!(status == 2 && err.contains("/no/such.jar"), "{err}");
    let (status, out, _) = run(&["--help"], None);
    assert!(status == 0 && out.contains("the mean over the ranks of the median over the calls"), "{out}");
}

/// Proves that a C program that was asked for must be installed.
#[test]
fn missing_c_program_error_names_its_package() {
    let args = ["--class-path", NO_CLASSES, "--peer", "mpich", "--rows", "barrier"];
    let (status, _, err) = run(&args, Some("/no/such/folder"));
    assert!(status == 2 && err.contains("apt-get install mpich"), "{err}");
}
