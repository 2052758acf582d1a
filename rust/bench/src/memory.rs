//! Memory of a job's processes, from proc(5).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Memory of all ranks of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobMemory {
    /// Number of rank processes.
    pub ranks: u32,
    /// Octets of the memfds that they share.
    pub shared: u64,
    /// Octets of private memory of all ranks.
    pub private: u64,
}

/// Memory of the ranks among the descendants of a process.
///
/// # Errors
/// /proc cannot be read.
pub fn memory_below(process: u32) -> io::Result<JobMemory> {
    let mut memory = JobMemory::default();
    let mut files = BTreeMap::new();
    for process in descendants(process)? {
        let read = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
        let smaps = read("smaps");
        let found = shared_files(&smaps);
        if found.is_empty() {
            continue;
        }
        memory.ranks += 1;
        memory.private += number_after(&read("status"), "RssAnon:").unwrap_or(0) * KIB;
        for file in found {
            // Allocated octets of the file. Without the right to read map_files: the process's share (Pss).
            let whole = fs::metadata(format!("/proc/{process}/map_files/{}", file.addresses));
            let entry = files.entry(file.inode).or_insert(0);
            *entry = match whole {
                Ok(whole) => whole.blocks() * BLOCK,
                Err(_) => *entry + file.part,
            };
        }
    }
    memory.shared = files.values().sum();
    Ok(memory)
}

/// Private octets of all descendants of a process.
///
/// # Errors
/// /proc cannot be read.
pub fn private_below(process: u32) -> io::Result<u64> {
    let private = |process| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        number_after(&status, "RssAnon:").unwrap_or(0) * KIB
    };
    Ok(descendants(process)?.into_iter().map(private).sum())
}

const KIB: u64 = 1024;
/// stat(2): the unit of st_blocks.
const BLOCK: u64 = 512;

/// A mapping of a file that ranks share.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    addresses: String,
    inode: u64,
    /// Octets, divided by the number of processes that map them.
    part: u64,
}

/// The mappings of shared memory in a text of proc(5), smaps.
fn shared_files(smaps: &str) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    let mut is_ours = false;
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let addresses = words.next().unwrap_or_default();
        // A mapping begins with its addresses, its properties with a name and a colon.
        if !addresses.ends_with(':') {
            is_ours = line.contains("/memfd:mpjdev-");
            if is_ours {
                let inode = words.nth(3).and_then(|inode| inode.parse().ok()).unwrap_or(0);
                found.push(Mapping { addresses: addresses.to_owned(), inode, part: 0 });
            }
        } else if is_ours
            && let Some(part) = number_after(line, "Pss:")
            && let Some(mapping) = found.last_mut()
        {
            mapping.part += part * KIB;
        }
    }
    found
}

/// The number in the line with this prefix.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// All descendants of a process.
///
/// # Errors
/// /proc cannot be read.
pub fn descendants(process: u32) -> io::Result<BTreeSet<u32>> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that has ended meanwhile has no parent.
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(number);
        }
    }
    let mut found = BTreeSet::new();
    let mut next = vec![process];
    while let Some(process) = next.pop() {
        let below = children.remove(&process).unwrap_or_default();
        found.extend(&below);
        next.extend(below);
    }
    Ok(found)
}

/// The parent in a line of proc(5), stat; the name before it may have spaces and brackets.
fn parent(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_is_parsed_behind_any_process_name() {
        assert_eq!(parent("7 (a) b (c) S 42 7 7 0"), Some(42));
        assert_eq!(parent(""), None);
    }

    #[test]
    fn memory_counts_the_files_of_ranks_only() {
        let smaps = "\
7f00-7f10 rw-s 00000000 00:01 17     /memfd:mpjdev-rank-0 (deleted)
Size:                 64 kB
Pss:                   8 kB
7f20-7f30 rw-p 00000000 00:00 0
Pss:                 100 kB
7f40-7f50 r--s 00000000 00:01 18     /memfd:mpjdev-job (deleted)
Pss:                   2 kB
";
        let mapping =
            |addresses: &str, inode, kib| Mapping { addresses: addresses.into(), inode, part: kib * KIB };
        assert_eq!(shared_files(smaps), [mapping("7f00-7f10", 17, 8), mapping("7f40-7f50", 18, 2)]);
    }

    #[test]
    fn process_is_a_descendant_of_its_parent() {
        let own = std::process::id();
        let parent = parent(&fs::read_to_string("/proc/self/stat").expect("proc")).expect("a parent");
        assert!(descendants(parent).expect("proc").contains(&own));
    }
}
