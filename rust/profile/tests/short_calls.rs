//! The times of short calls, of which only some are timed.

use std::time::{Duration, Instant};
use std::{env, fs};

use mpjdev_profile::{Call, RankProfile, Span, sent, start_in, take_time, write};

/// Calls, of which one in a hundred waits.
const CALLS: u32 = 1000;
const WAIT: Duration = Duration::from_micros(500);

/// The calls of a rank. This process has no other.
fn run_rank() {
    for number in 1..=CALLS {
        let span = Span::begin(Call::Send);
        sent(1, || 16);
        if number % 100 == 0 {
            take_time();
            let begun = Instant::now();
            while begun.elapsed() < WAIT {
                std::hint::spin_loop();
            }
        }
        span.end();
    }
    write().expect("a file");
}

#[test]
fn slow_waits_among_short_calls_are_all_timed() {
    let folder = env::temp_dir().join(format!("mpjdev-short-calls-{}", std::process::id()));
    fs::create_dir(&folder).expect("a new folder");
    start_in(folder.clone(), (0, 2), 0);
    run_rank();
    let text = fs::read_to_string(folder.join("rank-0.json"));
    fs::remove_dir_all(&folder).expect("removed");
    let profile: RankProfile = serde_json::from_str(&text.expect("a file")).expect("a profile");

    let [count] = &profile.calls[..] else { panic!("{:?}", profile.calls) };
    assert_eq!((&*count.call, count.peer, count.count), ("Send", Some(1), u64::from(CALLS)));
    // The rate of the ticks is exact to some percent in a process that runs this short.
    let least = WAIT.as_nanos() as u64 * 9 / 10;
    assert_eq!(profile.longest.len(), 10);
    assert!(profile.longest.iter().all(|call| call.ns >= least), "{:?}", profile.longest);
    assert!(count.ns >= 10 * least && count.ns <= 2 * profile.elapsed_ns, "{count:?} {profile:?}");
}
