//! [`count`]: how many sessions other agents have left on this machine, by a bounded look.

use crate::audit::{SessionPlace, session_places};

/// The most entries of folders that are looked at.
const MAX_ENTRIES: usize = 20_000;
/// How deep sessions lie in an agent's folder.
const MAX_DEPTH: usize = 5;

/// The sessions of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSessions {
    /// As people know it.
    pub name: &'static str,
    pub count: usize,
    /// There are more, which were not looked at.
    pub is_cut: bool,
}

/// The agents with sessions on this machine. No file is opened.
pub fn count() -> Vec<AgentSessions> {
    let mut left = MAX_ENTRIES;
    let places = session_places().into_iter().filter(|place| !place.is_own);
    let counted = places.map(|SessionPlace { name, folder, .. }| {
        let count = count_below(&folder, MAX_DEPTH, &mut left);
        AgentSessions { name, count, is_cut: left == 0 }
    });
    counted.filter(|agent| agent.count > 0).collect()
}

fn count_below(folder: &std::path::Path, depth: usize, left: &mut usize) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let mut count = 0;
    for entry in entries.flatten() {
        if *left == 0 {
            break;
        }
        *left -= 1;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => count += count_below(&entry.path(), depth - 1, left),
            Ok(kind) if kind.is_file() && entry.path().extension().is_some_and(|end| end == "jsonl") => {
                count += 1;
            }
            _ => {}
        }
    }
    count
}
