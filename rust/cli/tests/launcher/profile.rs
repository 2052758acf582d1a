//! Tests of `mpjrun --profile` with shell scripts that write what a rank would: the files, and their way from
//! other hosts. Tests with real ranks are in Java.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::job::Job;
use crate::{Folder, lines};

/// A rank that has sent 2048 octets to rank 0. Its profile has many blanks. The rename makes the file appear
/// whole: a rank of another site may be killed while it writes the same file.
const RANK: &str = r#"
blanks=$(head -c ${BLANKS:-1} /dev/zero | tr '\0' ' ')
cat > $MPJDEV_PROFILE/$$.new <<END
{"version":1,"rank":$MPJDEV_WORLD_RANK,"ranks":$MPJDEV_WORLD_SIZE,"host":"one",$blanks"process":1,"begun_ns":0,\
"elapsed_ns":5,"threads":1,"thread_ns":5,"calls_ns":1,"calls":[],"peers":[{"peer":0,"messages_sent":1,\
"sent":2048,"messages_received":0,"received":0}],"sizes":[],"longest":[]}
END
mv $MPJDEV_PROFILE/$$.new $MPJDEV_PROFILE/rank-$MPJDEV_WORLD_RANK.json
echo $MPJDEV_PROFILE"#;

/// A folder with the scripts `rank` and `shell`, which runs the command for another host here.
fn with_scripts(name: &str) -> Folder {
    let folder = Folder::new(name);
    for (name, script) in [("rank", RANK), ("shell", "host=$1; shift; exec sh -c \"$*\"")] {
        fs::write(folder.path(name), format!("#!/bin/sh\n{script}\n")).expect("a script");
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    folder
}

#[test]
fn profiles_become_a_table_and_files() {
    let folder = with_scripts("profile");
    let (profile, rank) = (folder.path("new/profile"), folder.path("rank"));
    let (status, out, err) = Job::new(&["-n", "2", "--profile", &profile, &rank]).run();
    assert_eq!((status, lines(&out)), (0, vec![&*profile, &*profile]), "{err}");
    assert!(err.contains("mpjrun: profile of 2 of 2 ranks, 5 ns") && err.contains("2.0 KiB"), "{err}");
    assert!(err.contains(&format!("page: {profile}/profile.html")), "{err}");

    // A second job replaces the files of the first one, and other files stay.
    fs::write(Path::new(&profile).join("notes"), "x").expect("a file");
    let script = format!("[ $MPJDEV_RANK = 1 ] || exec {rank}");
    let (status, _, err) = Job::new(&["-n", "2", "--profile", &profile, "sh", "-c", &script]).run();
    assert!(
        err.contains("profile of 1 of 2 ranks") && err.contains("no profile of rank 1:"),
        "{status} {err}"
    );
    assert!(!Path::new(&profile).join("rank-1.json").exists() && Path::new(&profile).join("notes").exists());
}

#[test]
fn table_that_cannot_be_printed_is_a_failure() {
    let folder = with_scripts("profile-output");
    let (profile, rank) = (folder.path("profile"), folder.path("rank"));
    let (status, _, err) = Job::new(&["-n", "1", "--profile", &profile, &rank]).run();
    assert_eq!(status, 0, "{err}");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev"));
    let output = command.args(["profile", &profile]).stdout(full).output().expect("it runs");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(1), ""));
}

#[test]
fn job_of_sites_has_one_profile() {
    let folder = with_scripts("profile-sites");
    let (profile, rank) = (folder.path("profile"), folder.path("rank"));
    // The ranks of sites learn their numbers from init, which these never call.
    let script = format!("MPJDEV_WORLD_SIZE=1 MPJDEV_WORLD_RANK=0 exec {rank}");
    let words = ["--sites", "2", "-n", "1", "--profile", &profile, "--trace", "sh", "-c", &script];
    let (_, _, err) = Job::new(&words).run();
    let reports = err.matches("profile of 1 of 1 ranks").count();
    assert_eq!(reports, 1, "{err}");
}

#[test]
fn job_without_profiles_says_why() {
    let folder = with_scripts("profile-none");
    let profile = folder.path("profile");
    let (status, _, err) = Job::new(&["-n", "2", "--profile", &profile, "true"]).run();
    assert_eq!(status, 0);
    assert!(
        err.starts_with("mpjrun: there is no profile: ") && err.contains("never called Comm.init"),
        "{err}"
    );
    let (status, _, err) =
        Job::new(&["-n", "1", "--profile", &profile, "sh", "-c", "echo x > $MPJDEV_PROFILE/rank-0.json"])
            .run();
    assert!(status == 0 && err.contains("rank-0.json, line 1: expected value"), "{err}");
}

#[test]
fn folder_that_cannot_be_used_is_refused_before_a_rank_starts() {
    let folder = with_scripts("profile-refused");
    let file = folder.path("rank");
    let (status, out, err) = Job::new(&["-n", "1", "--profile", &file, "echo", "started"]).run();
    assert_eq!((status, &*out), (2, ""));
    assert!(err.contains("this is a file; name a folder"), "{err}");
    let within = format!("{file}/profile");
    let (status, out, err) = Job::new(&["-n", "1", "--profile", &within, "echo", "started"]).run();
    assert_eq!((status, &*out), (2, ""));
    assert!(err.contains("Not a directory"), "{err}");
    fs::write(folder.path("trace.json"), "[\"mine\"]").expect("a file");
    let own = folder.path(".");
    let (status, out, err) = Job::new(&["-n", "1", "--profile", &own, "echo", "started"]).run();
    assert_eq!((status, &*out), (2, ""));
    assert!(err.contains("trace.json is not of a profile") && Path::new(&folder.path("trace.json")).exists());
    let (status, _, err) = Job::new(&["-n", "1", "--trace", "echo"]).run();
    assert!(status == 2 && err.contains("--profile"), "{err}");
    let (status, _, err) = Job::new(&["-n", "1", "--profile", &within, "--threads", "Main"]).run();
    assert!(status == 2 && err.contains("--threads"), "{err}");
}

#[test]
fn profiles_of_all_hosts_arrive_and_their_folders_are_removed() {
    let folder = with_scripts("profile-hosts");
    let (profile, rank, shell) = (folder.path("profile"), folder.path("rank"), folder.path("shell"));
    let hosts = ["--hosts", "a:2,b:1", "--launcher", &shell, "--profile", &profile];
    let (status, out, err) = Job::new(&[&hosts[..], &[&rank]].concat()).run();
    assert_eq!(status, 0, "{err}");
    assert!(err.contains("profile of 3 of 3 ranks") && err.contains("2.0 KiB"), "{err}");
    for file in ["host-0.json", "host-1.json", "profile.json", "profile.html"] {
        assert!(Path::new(&profile).join(file).exists(), "{file}: {err}");
    }
    let folders = lines(&out);
    assert_eq!(folders.len(), 3);
    assert!(folders.iter().all(|folder| *folder != profile && !Path::new(folder).exists()), "{folders:?}");
}

#[test]
fn profiles_that_are_longer_than_the_credit_arrive_whole() {
    let folder = with_scripts("profile-long");
    let (profile, rank, shell) = (folder.path("profile"), folder.path("rank"), folder.path("shell"));
    let hosts = ["--hosts", "a:2", "--launcher", &shell, "--profile", &profile, "-x", "BLANKS=1000000"];
    let (status, _, err) = Job::new(&[&hosts[..], &[&rank]].concat()).run();
    assert!(status == 0 && err.contains("profile of 2 of 2 ranks"), "{status}");
    let octets = fs::metadata(Path::new(&profile).join("host-0.json")).expect("a file").len();
    assert!(octets > 2_000_000, "{octets}");
}
