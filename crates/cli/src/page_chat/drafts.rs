//! [`DraftFile`]: what is typed and not sent, stored so that a crash or a kill does not lose it.
//!
//! Each process has a file of its own, named after its folder. A process that starts in the same folder
//! takes what processes left behind that are gone.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, test_kill_process};

/// Longer drafts are not stored: writing them every second would be felt.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Where the draft of this process is stored.
pub struct DraftFile {
    folder: PathBuf,
    /// The beginning of the names of all drafts of this workspace.
    workspace: String,
}

impl DraftFile {
    /// The draft of a conversation in `workspace`, below the folder for state.
    pub fn new(state: &Path, workspace: &Path) -> Self {
        let mut hasher = DefaultHasher::new();
        workspace.hash(&mut hasher);
        DraftFile { folder: state.join("drafts"), workspace: format!("{:016x}-", hasher.finish()) }
    }

    fn path(&self, process: u32) -> PathBuf {
        self.folder.join(format!("{}{process}", self.workspace))
    }

    /// Stores the draft; an empty one is removed.
    pub fn store(&self, draft: &str) {
        let path = self.path(std::process::id());
        if draft.trim().is_empty() || draft.len() > MAX_BYTES {
            let _ = fs::remove_file(path);
            return;
        }
        // A draft that cannot be stored is not worth a word every second.
        let _ = hardpan_files::create_private_folder(&self.folder)
            .and_then(|()| hardpan_files::write_private_file(&path, draft.as_bytes()));
    }

    /// The newest draft that a process left which is gone. All of those are removed.
    pub fn take_left_behind(&self) -> Option<String> {
        let mut left: Vec<(std::time::SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder).ok()?.flatten() {
            let name = entry.file_name();
            let process = name.to_str().and_then(|name| name.strip_prefix(&self.workspace));
            let Some(process) = process.and_then(|process| process.parse::<i32>().ok()) else { continue };
            if !is_running(process)
                && let Ok(changed) = entry.metadata().and_then(|found| found.modified())
            {
                left.push((changed, entry.path()));
            }
        }
        left.sort();
        let newest = left.last().and_then(|(_, path)| fs::read_to_string(path).ok());
        left.iter().for_each(|(_, path)| drop(fs::remove_file(path)));
        newest.filter(|draft| !draft.trim().is_empty())
    }
}

/// Whether a process still works. One that has ended keeps its number until its parent has taken note.
fn is_running(process: i32) -> bool {
    let exists = Pid::from_raw(process).is_some_and(|process| test_kill_process(process).is_ok());
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The state stands behind the name, which is in brackets and may hold any.
    let has_ended = stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'));
    exists && !has_ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_comes_back_once_its_process_is_gone() {
        let state = tempfile::tempdir().expect("a folder");
        let draft = DraftFile::new(state.path(), Path::new("/work"));
        draft.store("my own");
        assert_eq!(draft.take_left_behind(), None, "this process is alive");
        // No process has this number: it is beyond the limit of the system.
        fs::write(draft.path(4_194_305), "half a thought").expect("a file");
        fs::write(DraftFile::new(state.path(), Path::new("/other")).path(4_194_305), "elsewhere")
            .expect("a file");
        assert_eq!(draft.take_left_behind().as_deref(), Some("half a thought"));
        assert_eq!(draft.take_left_behind(), None);
        draft.store("");
        assert!(!draft.path(std::process::id()).exists());
    }
}
