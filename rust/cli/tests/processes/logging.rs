//! Events of a job on standard error.

use crate::{Ended, ended, launcher, own};

/// Two ranks over connections that send messages of all sizes.
fn ring(log: Option<&str>) -> Ended {
    let mut command = launcher(2, &["--transport", "tcp"]);
    match log {
        Some(value) => command.env(mpjdev_logging::VARIABLE, value),
        None => command.env_remove(mpjdev_logging::VARIABLE),
    };
    ended(command.arg(own()).arg("ring").output().expect("it starts"))
}

fn events_name_start_connections_and_end_of_a_job() {
    let (status, out, err) = ring(Some("debug"));
    assert_eq!((status, out.lines().count()), (0, 2), "{err}");
    let events = [
        " mpjrun mpjdev::job: monitor is started ",
        " monitor mpjdev::job: job starts ranks=2",
        " monitor mpjdev::job: program of a rank is started member=1 ",
        " monitor mpjdev::job: all ranks have joined ranks=2",
        " rank 0 mpjdev::rank: launcher has described the job ",
        " mpjdev::mesh: mesh is complete own=1 ",
        " rank 0 mpjdev::tcp: channel is open peers=[1] foreign=false",
        " rank 1 mpjdev::tcp: channel is open peers=[0] foreign=false",
        " mpjdev::rendezvous: send is started peer=",
        " rank 0 mpjdev::rank: rank has finished",
        " monitor mpjdev::job: job is over status=0",
    ];
    for event in events {
        assert!(err.lines().any(|line| line.contains(event)), "{event:?} is missing: {err}");
    }
}

fn levels_and_targets_select_events() {
    let (status, _, err) = ring(Some("warn,mpjdev::tcp=info,mpjdev::job=info"));
    assert_eq!(status, 0, "{err}");
    assert!(err.lines().any(|line| line.contains("INFO  monitor mpjdev::job: job is over")), "{err}");
    assert!(!err.contains("DEBUG") && !err.contains("mpjdev::rank"), "{err}");
}

fn job_without_the_variable_writes_no_event() {
    let (status, _, err) = ring(None);
    assert_eq!((status, err.as_str()), (0, ""));
}

fn invalid_log_value_is_one_line_and_the_job_runs() {
    let (status, out, err) = ring(Some("debgu"));
    let line = "mpjdev: MPJDEV_LOG: \"debgu\" is not a level; levels are error, warn, info, debug, off; nothing is logged\n";
    assert_eq!((status, out.lines().count(), err.as_str()), (0, 2, line));
}

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("events_name_start_connections_and_end_of_a_job", events_name_start_connections_and_end_of_a_job),
    ("levels_and_targets_select_events", levels_and_targets_select_events),
    ("job_without_the_variable_writes_no_event", job_without_the_variable_writes_no_event),
    ("invalid_log_value_is_one_line_and_the_job_runs", invalid_log_value_is_one_line_and_the_job_runs),
];
