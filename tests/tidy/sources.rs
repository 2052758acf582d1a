//! Rules for the contents of files.

use crate::text::has_word;
use crate::tree::{Source, java_sources, none, product_sources, read, root, rust_sources, sources};

/// Lines of code outside tests in which one of these stands.
fn lines_with(sources: &[Source], needles: &[&str]) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources {
        for (number, line) in source.code() {
            if let Some(needle) = needles.iter().find(|needle| line.contains(**needle)) {
                findings.push(format!("{}:{number}: {needle}", source.path));
            }
        }
    }
    findings
}

/// They turn octets and numbers into octets, numbers and errors; transports and engines read the clock.
#[test]
fn pure_crates_have_no_clock_no_thread_and_no_files() {
    let needles = [
        "Instant::now",
        "SystemTime",
        "std::time",
        "std::thread",
        "std::net",
        "std::fs",
        "std::io",
        "std::env",
        "std::process",
        "Mutex",
        "RwLock",
        "Condvar",
        "RandomState",
        "println!",
    ];
    for name in ["buffer", "datatype", "group", "reduction", "schedule", "proto"] {
        let folder = format!("rust/{name}/src");
        let sources = sources(&folder, ".rs");
        assert!(!sources.is_empty(), "{folder} has no sources");
        none(lines_with(&sources, &needles), "not in a pure crate");
    }
}

/// ARCHITECTURE.md, the table: proto may use buffer::layout.
#[test]
fn proto_uses_nothing_of_buffer_but_its_layout() {
    let mut findings = Vec::new();
    for source in sources("rust/proto/src", ".rs") {
        for (number, line) in source.code() {
            let others = line
                .match_indices("mpjdev_buffer")
                .filter(|(at, name)| !line[at + name.len()..].starts_with("::layout"));
            findings.extend(others.map(|_| format!("{}:{number}: {}", source.path, line.trim())));
        }
    }
    none(findings, "proto uses more than buffer::layout");
}

/// Clocks are read by the transports, the engines, the start of a job, the lines of events, the launcher, the
/// startup server, profiles, benchmarks and tests.
#[test]
fn clocks_are_read_above_the_pure_crates_alone() {
    let all = sources("rust", ".rs");
    let others: Vec<Source> = all
        .into_iter()
        .filter(|s| {
            let folders = [
                "rust/transport/",
                "rust/engine/",
                "rust/bootstrap/",
                "rust/logging/",
                "rust/bench/",
                "rust/cli/src/job/",
                "rust/cli/src/hosts/",
                "rust/cli/src/impi/",
                "rust/profile/src/session.rs",
                "rust/testing/src/cluster.rs",
                "rust/sys/src/ticks.rs",
            ];
            !folders.iter().any(|folder| s.path.starts_with(folder))
        })
        .filter(|s| !s.path.contains("/tests/") && !s.path.contains("/benches/"))
        .collect();
    none(lines_with(&others, &["Instant::now", "SystemTime::now"]), "a clock is read where none may be");
}

#[test]
fn unsafe_code_is_forbidden_where_it_has_no_business() {
    let forbids = |file: &str| read(&root().join(file)).contains("#![forbid(unsafe_code)]");
    for name in [
        "buffer",
        "datatype",
        "group",
        "reduction",
        "schedule",
        "proto",
        "logging",
        "transport",
        "engine",
        "bootstrap",
        "cli",
        "bench",
        "fuzz",
        "sim",
        "testing",
        "unet",
    ] {
        let file = format!("rust/{name}/src/lib.rs");
        assert!(forbids(&file), "{file} does not forbid unsafe code");
    }
    for file in
        ["rust/cli/src/main.rs", "rust/bench/src/main.rs", "tests/tidy/main.rs", "tests/conformance/main.rs"]
    {
        assert!(forbids(file), "{file} does not forbid unsafe code");
    }
    let jni = read(&root().join("rust/jni/src/lib.rs"));
    assert!(jni.contains("#![deny(unsafe_code)]"), "rust/jni/src/lib.rs does not deny unsafe code");
}

/// Two rooms of the boundary, and the leaf; nowhere else, tests included.
#[test]
fn unsafe_code_stands_in_the_leaf_and_in_two_rooms_of_the_boundary() {
    let may = |path: &str| {
        ["rust/sys/", "rust/bench/baseline/", "rust/jni/src/array/", "rust/jni/src/boundary/"]
            .iter()
            .any(|folder| path.starts_with(folder))
            || ["rust/jni/src/boundary.rs", "rust/jni/src/array.rs"].contains(&path)
    };
    let mut findings = Vec::new();
    for source in
        rust_sources().iter().filter(|source| !may(&source.path) && !source.path.starts_with("tests/tidy"))
    {
        for (number, line) in (1..).zip(source.text.lines()) {
            let code = line.split("//").next().unwrap_or(line);
            if has_word(code, "unsafe") {
                findings.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    none(findings, "unsafe code outside its rooms");
}

/// The JVM uses SIGSEGV, SIGBUS, SIGFPE and SIGILL itself; what is loaded into it has no business with
/// signals at all.
#[test]
fn no_signal_handler_is_installed_in_a_process_that_is_not_ours() {
    let needles = ["sigaction", "sigaltstack", "signal_hook", "libc::signal"];
    for name in [
        "buffer",
        "datatype",
        "group",
        "reduction",
        "schedule",
        "proto",
        "sys",
        "logging",
        "transport",
        "engine",
        "bootstrap",
        "jni",
    ] {
        let folder = format!("rust/{name}/src");
        // It gives back what an MPI has taken, and has no handler of its own.
        let gives_back = |source: &&Source| source.path == "rust/sys/src/mpi/signals.rs";
        let sources: Vec<Source> =
            sources(&folder, ".rs").into_iter().filter(|source| !gives_back(&source)).collect();
        none(lines_with(&sources, &needles), "a signal handler");
    }
}

/// A test that is switched off and code that is yet to come are neither.
#[test]
fn nothing_is_left_undone_or_switched_off() {
    // Put together here, so that this file does not find itself.
    let undone = ["todo", "unimplemented"].map(|name| format!("{name}!("));
    let ignored = ["ignore]", "ignore ="].map(|rest| format!("#[{rest}"));
    let disabled = ["Disabled", "Ignore"].map(|name| format!("@{name}"));
    let mut findings = Vec::new();
    for source in rust_sources().iter().chain(java_sources()) {
        for (number, line) in (1..).zip(source.text.lines()) {
            let needles = undone.iter().chain(&ignored).chain(&disabled);
            findings.extend(
                needles
                    .filter(|n| line.contains(n.as_str()))
                    .map(|n| format!("{}:{number}: {n}", source.path)),
            );
        }
    }
    none(findings, "left undone or switched off");
}

/// `mpjdev` is one face on `mpjdev.core`, others may follow: the core must not know any.
#[test]
fn the_java_core_knows_no_face() {
    let core = sources("java/src/core", ".java");
    assert!(!core.is_empty(), "the core has no sources");
    let mut findings = Vec::new();
    for source in &core {
        for (number, line) in source.code() {
            let uses = line.match_indices("mpjdev.").filter(|(at, name)| {
                let own = !line[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '.' || c == '"');
                let rest = &line[at + name.len()..];
                own && !rest.starts_with("core") && rest.starts_with(|c: char| c.is_uppercase() || c == '*')
            });
            findings.extend(uses.map(|_| format!("{}:{number}: {}", source.path, line.trim())));
        }
    }
    none(findings, "mpjdev.core uses a class of mpjdev");
}

/// Programs that import `mpjbuf.*` and `mpjdev.*` of another implementation must find no class of ours there.
#[test]
fn package_mpi_uses_the_core_alone() {
    let mut findings = Vec::new();
    let is_plain = |source: &&Source| {
        source.path.starts_with("java/src/mpi/") && !source.path.starts_with("java/src/mpi/compat/")
    };
    for source in product_sources().filter(is_plain) {
        for (number, line) in source.code() {
            let import = line.strip_prefix("import ").map(|name| name.trim_start_matches("static "));
            if import.is_some_and(|name| name.starts_with("mpjdev.") && !name.starts_with("mpjdev.core.")) {
                findings.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    none(findings, "mpi uses a class of mpjdev");
}

/// The natives live in the core; a face only calls them.
#[test]
fn native_methods_are_declared_in_the_java_core_alone() {
    let mut findings = Vec::new();
    for source in product_sources().filter(|source| !source.path.starts_with("java/src/core/")) {
        for (number, line) in source.code() {
            let comment = line.trim_start().starts_with('*') || line.trim_start().starts_with("/*");
            if !comment && has_word(line, "native") && line.trim_end().ends_with(';') {
                findings.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    none(findings, "a native method outside mpjdev.core");
}

/// The public face is one package; another class of it is a design decision. The benchmarks have a jar of
/// their own.
#[test]
fn java_classes_of_the_library_belong_to_the_package_of_their_folder() {
    let packages = [
        ("java/src/core/java/", "mpjdev.core"),
        ("java/src/main/java/", "mpjdev"),
        ("java/src/mpi/java/", "mpi"),
        ("java/src/mpi/plain/java/", "mpi"),
        ("java/src/mpi/compat/java/mpi/", "mpi"),
        ("java/src/mpi/compat/java/mpjbuf/", "mpjbuf"),
        ("java/src/mpi/compat/java/mpjdev/", "mpjdev"),
        ("java/src/mpi/compat/java/xdev/", "xdev"),
    ];
    let mut findings = Vec::new();
    for source in product_sources() {
        let package = source.text.lines().find_map(|line| line.strip_prefix("package "));
        let package = package.map(|package| package.trim_end_matches(';'));
        let may = packages.iter().find(|(folder, _)| source.path.starts_with(folder));
        if package.is_none() || package != may.map(|(_, package)| *package) {
            findings.push(format!("{}: package {package:?}", source.path));
        }
    }
    none(findings, "a class in a package that its folder does not hold");
}
