//! The profile of a job, made from the files of its ranks: a table, `profile.json`, a page and a timeline.

pub mod folder;
pub mod job_profile;
pub mod page;
pub mod table;
pub mod trace;
pub mod units;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use folder::{FolderError, at};
use job_profile::JobProfile;
use trace::Timeline;

/// The names of the files that a report writes.
pub const JSON: &str = "profile.json";
/// The page.
pub const PAGE: &str = "profile.html";
/// The timeline.
pub const TIMELINE: &str = "trace.json";

/// Reads the files of the ranks in a folder, writes the files of the job beside them, and returns the table.
///
/// # Errors
/// No rank has written a file, one is not valid, or the system refuses.
pub fn report(folder: &Path) -> Result<String, FolderError> {
    let mut job = JobProfile::default();
    let mut timeline: Option<Timeline> = None;
    folder::read(folder, |mut profile| {
        if !profile.events.is_empty() || profile.events_lost > 0 {
            let timeline = match &mut timeline {
                Some(timeline) => timeline,
                none => none.insert(Timeline::create(&folder.join(TIMELINE))?),
            };
            timeline.add(&profile)?;
            profile.events = Vec::new();
        }
        job.add(profile)
    })?;
    timeline.map(Timeline::finish).transpose()?;
    if job.ranks.is_empty() {
        return Err(FolderError::Empty { folder: folder.to_owned() });
    }
    job.finish();
    write(
        &folder.join(JSON),
        &serde_json::to_vec(&job).map_err(|error| at(&folder.join(JSON))(error.into()))?,
    )?;
    write(&folder.join(PAGE), page::page(&job).as_bytes())?;
    Ok(table::table(&job, folder))
}

fn write(path: &Path, octets: &[u8]) -> Result<(), FolderError> {
    let file = File::create(path).map_err(at(path))?;
    let mut file = BufWriter::new(file);
    file.write_all(octets).and_then(|()| file.flush()).map_err(at(path))
}
