//! [`store_imported_session`]: a conversation that another agent recorded, stored as one of ours.

use std::path::{Path, PathBuf};

use hardpan_session::{Entry, LogError, Record, SessionLog, SessionStore};
use hardpan_workspace::find_project_root;
use serde_json::Value;

use crate::session_folder::{header, path_for};

/// The type of the entry that says where a session came from.
const IMPORTED_ENTRY: &str = "hardpan:imported";

/// A session that was stored.
#[derive(Clone, Debug)]
pub struct ImportedSession {
    /// Its id, by which it can be continued.
    pub id: String,
    /// Its file.
    pub path: PathBuf,
}

/// Stores entries as a session of `folder`, with `origin`, which says where they came from. Nothing in
/// them is opened, run or pinned: paths in them are text.
pub fn store_imported_session(
    store: &SessionStore,
    folder: &Path,
    entries: Vec<Entry>,
    origin: Value,
) -> Result<ImportedSession, LogError> {
    let header = header(folder);
    let (id, path) = (header.id.to_string(), path_for(store, folder, &header));
    let last = entries.last().map(|entry| entry.id.clone());
    let log = SessionLog::create(&path, header)?;
    for entry in entries {
        drop(log.append(entry));
    }
    let record = Record::Custom { custom_type: IMPORTED_ENTRY.into(), data: origin };
    log.append(Entry::new("origin", last.as_deref(), None, record)).wait()?;
    Ok(ImportedSession { id, path })
}

/// Whether a conversation that began in `began_in` belongs to the project of `folder`.
pub fn began_here(began_in: &Path, folder: &Path) -> bool {
    let root = find_project_root(folder);
    began_in.starts_with(&root) && find_project_root(began_in) == root
}
