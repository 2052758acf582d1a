//! Ranks that send each other datagrams.

use crate::{Ended, job, lines};

/// Runs a part as so many ranks over UDP.
fn over_datagrams(ranks: u32, options: &[&str], part: &str) -> Ended {
    job(ranks, &[&["--transport", "udp"], options].concat(), part)
}

fn messages_of_all_sizes_go_round_by_datagrams() {
    for ranks in [1, 2, 3, 8] {
        let (status, out, err) = over_datagrams(ranks, &[], "ring");
        assert_eq!(
            (status, out.lines().count() as u32, err.as_str()),
            (0, ranks, ""),
            "{ranks} ranks: {out}"
        );
    }
}

fn all_exchange_with_all_by_datagrams() {
    let (status, out, err) = over_datagrams(4, &[], "exchange");
    assert_eq!((status, lines(&out)), (0, vec!["done"; 4]), "{err}");
}

fn all_exchange_with_all_across_sites_by_datagrams() {
    let (status, out, err) = over_datagrams(2, &["--sites", "2"], "exchange");
    assert_eq!((status, lines(&out), err.as_str()), (0, vec!["done"; 4], ""));
}

fn ranks_may_finish_and_meet_again_and_again() {
    let (status, out, err) = over_datagrams(3, &[], "rounds");
    assert_eq!((status, lines(&out)), (0, vec!["done"; 3]), "{err}");
}

fn an_exit_without_finish_is_a_failure_over_datagrams_too() {
    let (status, _, err) = over_datagrams(2, &[], "leaves");
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("exited with status 0") && err.contains("without Comm.finish"), "{err}");
}

fn a_rate_is_one_of_datagrams() {
    let text = "mpjrun: --link-rate is for ranks that send datagrams: with --transport udp\n";
    assert_eq!(job(2, &["--link-rate", "1gbit"], "once"), (2, String::new(), text.to_owned()));
    let (status, _, err) = over_datagrams(2, &["--link-rate", "100"], "once");
    assert!(status == 2 && err.contains("not a rate such as 100mbit"), "{status}: {err}");
    let (status, out, err) = over_datagrams(2, &["--link-rate", "1gbit"], "exchange");
    assert_eq!((status, lines(&out), err.as_str()), (0, vec!["done"; 2], ""));
}

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("messages_of_all_sizes_go_round_by_datagrams", messages_of_all_sizes_go_round_by_datagrams),
    ("all_exchange_with_all_by_datagrams", all_exchange_with_all_by_datagrams),
    ("all_exchange_with_all_across_sites_by_datagrams", all_exchange_with_all_across_sites_by_datagrams),
    ("ranks_may_finish_and_meet_again_and_again", ranks_may_finish_and_meet_again_and_again),
    (
        "an_exit_without_finish_is_a_failure_over_datagrams_too",
        an_exit_without_finish_is_a_failure_over_datagrams_too,
    ),
    ("a_rate_is_one_of_datagrams", a_rate_is_one_of_datagrams),
];
