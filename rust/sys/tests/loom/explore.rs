//! Models in processes of their own.
//!
//! Each run of a model maps and unmaps the stacks of its threads. Models that run at the same time in one
//! process take twice the processor time of the same models in two processes.

use std::process::Command;

use loom::model::Builder;

/// Set in the process of a model. A test that is started with it runs its model itself.
const CHILD: &str = "MPJDEV_MODEL";

/// Explores the interleavings with at most this number of preemptions, or all of them.
pub(crate) fn explore(preemptions: impl Into<Option<usize>>, model: impl Fn() + Sync + Send + 'static) {
    if std::env::var_os(CHILD).is_none() {
        return run_child();
    }
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions.into().or(builder.preemption_bound);
    builder.max_branches = 10_000;
    builder.check(model);
}

/// Runs the calling test in a process of its own. Threads of tests have the names of the tests.
fn run_child() {
    let thread = std::thread::current();
    let test = thread.name().expect("the thread of a test");
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program).args([test, "--exact", "--nocapture"]).env(CHILD, "1").output();
    let output = output.expect("a process");
    let [text, errors] = [&output.stdout, &output.stderr].map(|octets| String::from_utf8_lossy(octets));
    assert!(output.status.success() && text.contains("1 passed"), "{text}{errors}");
}
