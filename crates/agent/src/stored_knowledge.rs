//! What tool results tell about files, as session entries store it: [`ResultData`], and
//! [`rebuild_knowledge`] for a session that is opened.

use std::collections::BTreeSet;

use hardpan_context::knowledge::{FileKnowledge, FileObservation, LineRanges, ObservationKind};
use hardpan_prompt::{Hash, MessageBody, MessageId, MessageState};
use hardpan_session::{DETAILS_FIELD, Entry, Record};
use serde::Deserialize;

use crate::edit_blocks::{BLOCKS_ENTRY, StoredBlocks};

/// The field of a tool result's entry.
const FILE_OBSERVATIONS: &str = "file_observations";

/// What a session stores beside a tool result and never sends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultData {
    /// What call and result tell the model about files.
    pub file_observations: Vec<FileObservation>,
}

impl ResultData {
    /// Puts the data into the entry of its result.
    pub(crate) fn store_in(self, entry: &mut Entry) {
        let ResultData { file_observations } = self;
        let observations = (!file_observations.is_empty())
            .then(|| serde_json::to_value(file_observations).unwrap_or_default());
        entry.extra.extend(observations.map(|observations| (FILE_OBSERVATIONS.to_owned(), observations)));
    }
}

/// What an entry tells about files.
pub(crate) fn observations_of(entry: &Entry) -> Vec<FileObservation> {
    match entry.extra.get(FILE_OBSERVATIONS) {
        // What another version wrote and this one cannot read tells nothing.
        Some(stored) => Vec::deserialize(stored).unwrap_or_default(),
        None => match &entry.record {
            Record::Custom { custom_type, data } if **custom_type == *BLOCKS_ENTRY => {
                StoredBlocks::deserialize(data).map(|stored| stored.file_observations).unwrap_or_default()
            }
            _ => observations_from_details(entry).into_iter().collect(),
        },
    }
}

/// What an entry tells about files that was written before entries said so: from the details of the
/// tools that there were.
fn observations_from_details(entry: &Entry) -> Option<FileObservation> {
    let Record::Message(message) = &entry.record else { return None };
    let MessageBody::ToolResult { tool_name: Some(tool), is_error: false, .. } = &*message.body else {
        return None;
    };
    let details = entry.extra.get(DETAILS_FIELD)?;
    let path = details["path"].as_str()?.into();
    let kind = match &**tool {
        "read" => ObservationKind::Shown,
        "write" => ObservationKind::Written,
        "edit" => ObservationKind::Edited,
        _ => return None,
    };
    let shown = <(u64, u64)>::deserialize(&details["shown"]).ok();
    let shown = shown.map(|(first, last)| LineRanges::span(first, last)).unwrap_or_default();
    let hash = Hash::deserialize(&details["hash"]).ok();
    let lines = details["lines"].as_u64().filter(|_| hash.is_some());
    Some(FileObservation { path, kind, hash, lines, shown, text: None })
}

/// What the model knows of files after the entries of a branch, in order: the same as in the process
/// that wrote them.
pub(crate) fn rebuild_knowledge(path: &[&Entry]) -> FileKnowledge {
    let mut knowledge = FileKnowledge::default();
    let mut begin = 0;
    let hidden = hidden_messages(path);
    let shows = |message: &MessageId| !hidden.contains(&*message.0);
    for (at, entry) in path.iter().enumerate() {
        match &entry.record {
            Record::Message(message) if shows(&message.id) => {
                for observation in observations_of(entry) {
                    knowledge.record(&message.id, observation);
                }
            }
            Record::Custom { custom_type, data } if **custom_type == *BLOCKS_ENTRY => {
                if let Ok(stored) = StoredBlocks::deserialize(data)
                    && shows(&stored.message)
                {
                    for observation in stored.file_observations {
                        knowledge.record(&stored.message, observation);
                    }
                }
            }
            Record::Compaction { first_kept, .. } => {
                let kept = match first_kept {
                    Some(id) => path[..at].iter().position(|entry| entry.id == *id),
                    None => Some(at),
                };
                // A compaction that names no earlier entry replaces nothing.
                let Some(kept) = kept else { continue };
                begin = begin.max(kept);
                knowledge.retain_messages(&message_ids(&path[begin..at]));
            }
            _ => {}
        }
    }
    knowledge
}

/// The messages whose text requests no longer show, at the end of a path.
fn hidden_messages<'a>(path: &[&'a Entry]) -> BTreeSet<&'a str> {
    let mut hidden = BTreeSet::new();
    for entry in path {
        match &entry.record {
            Record::MessageState { target, state: MessageState::Whole, .. } => _ = hidden.remove(&**target),
            Record::MessageState { target, .. } => _ = hidden.insert(&**target),
            _ => {}
        }
    }
    hidden
}

fn message_ids<'a>(entries: &[&'a Entry]) -> BTreeSet<&'a MessageId> {
    let id = |entry: &&'a Entry| match &entry.record {
        Record::Message(message) => Some(&message.id),
        _ => None,
    };
    entries.iter().filter_map(id).collect()
}

/// The files that the messages of a branch showed, and those that they changed. A file that was
/// changed counts as changed only.
pub(crate) fn files_read_and_changed<'a>(
    observations: impl Iterator<Item = &'a FileObservation>,
) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut read, mut changed) = (BTreeSet::new(), BTreeSet::new());
    for observation in observations {
        match observation.kind {
            ObservationKind::Written | ObservationKind::Edited => {
                changed.insert(observation.path.to_string())
            }
            ObservationKind::Shown | ObservationKind::Diffed | ObservationKind::Confirmed => {
                read.insert(observation.path.to_string())
            }
        };
    }
    read.retain(|path| !changed.contains(path));
    (read, changed)
}

#[cfg(test)]
mod tests;
