//! [`Branch`]: the conversation from the root of a session to one leaf.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_prompt::{AgentMessage, MessageBody};
use serde_json::Value;

use crate::record::Record;
use crate::request::RequestRecord;
use crate::session::{Session, SessionError};

/// The conversation that ends at one entry, with compactions applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Branch {
    /// The messages, oldest first. A compaction's summary stands in place of the messages it
    /// replaced, under the id of the compaction's entry.
    pub messages: Vec<AgentMessage>,
    /// Provider and model that were last chosen or last sent a turn.
    pub model: Option<(Arc<str>, Arc<str>)>,
    /// Reasoning effort that was last chosen.
    pub thinking: Option<Arc<str>>,
    /// Prompt layout of the last turn.
    pub layout: Option<Arc<str>>,
    /// The branch of git that was checked out.
    pub git_branch: Option<Arc<str>>,
    /// Changes of the layout's memory since the last compaction, oldest first; apply them in order.
    pub memories: Vec<Value>,
    /// Latest state of each extension, by `custom_type`.
    pub custom: BTreeMap<Arc<str>, Value>,
    /// The requests made on this branch, oldest first.
    pub requests: Vec<Arc<RequestRecord>>,
    /// Id of the entry it ends at, which the next entry follows; `None` in an empty session.
    pub leaf: Option<Arc<str>>,
}

/// The type of the custom record that says which layout a conversation uses, if none of its requests
/// does, because none was answered.
pub const LAYOUT_RECORD: &str = "hardpan.layout";

/// The type of the custom record that stands behind an entry to which the person has gone back, as
/// long as nothing else does: a session continues at its last entry.
pub const POSITION_RECORD: &str = "hardpan.position";

/// The type of the custom record that says which branch of git is checked out, by its name.
pub const GIT_BRANCH_RECORD: &str = "hardpan.git_branch";

impl Session {
    /// The branch that ends at the entry `leaf`, or at the last entry of the file.
    pub fn branch(&self, leaf: Option<&str>) -> Result<Branch, SessionError> {
        let Some(leaf) = self.find_leaf(leaf)? else { return Ok(Branch::default()) };
        Ok(self.collect_branch(&self.path_indices(leaf), leaf))
    }

    /// Index of the entry with this id, or of the last entry that another may follow. A partial
    /// record is no leaf: its parent is returned instead.
    pub(crate) fn find_leaf(&self, id: Option<&str>) -> Result<Option<usize>, SessionError> {
        let Some(id) = id else { return Ok(self.leaf) };
        match self.by_id.get(id) {
            Some(&at) if self.entries[at].as_partial().is_some() => Ok(self.parents[at]),
            Some(&at) => Ok(Some(at)),
            None => Err(SessionError::NoSuchEntry { name: self.file_name.clone(), id: id.into() }),
        }
    }

    /// Collects the branch along `path`, which ascends because every parent is an earlier entry.
    fn collect_branch(&self, path: &[usize], leaf: usize) -> Branch {
        let mut branch = Branch {
            leaf: Some(self.entries[leaf].id.clone()),
            git_branch: self.header.git_branch().map(Into::into),
            ..Branch::default()
        };
        // Each message with the index of its entry; `None` for a summary, which precedes them all.
        let mut messages: Vec<(Option<usize>, AgentMessage)> = Vec::new();
        let mut remembered: Vec<&Value> = Vec::new();
        for &at in path {
            let entry = &self.entries[at];
            match &entry.record {
                Record::Message(message) => messages.push((Some(at), entry.with_facts(message))),
                Record::ModelChange { provider, model } => {
                    branch.model = Some((provider.clone(), model.clone()));
                }
                Record::ThinkingChange { level } => branch.thinking = Some(level.clone()),
                Record::Compaction { summary, first_kept, .. } => {
                    let Some(kept) = self.first_kept_index(first_kept.as_deref(), at, path) else { continue };
                    messages.retain(|(from, _)| *from >= Some(kept));
                    let body = MessageBody::CompactionSummary { summary: summary.clone() };
                    let mut message = AgentMessage::new(&*entry.id, body);
                    message.time = entry.time;
                    messages.insert(0, (None, message));
                    remembered.clear();
                }
                Record::MessageState { target, state, tl_dr } => {
                    let mut messages = messages.iter_mut().rev().map(|(_, message)| message);
                    if let Some(message) = messages.find(|message| message.id.0 == *target) {
                        (message.state, message.tl_dr) = (*state, tl_dr.clone());
                    }
                }
                Record::Memory { memory } => remembered.push(memory),
                Record::Custom { custom_type, data } => {
                    match &**custom_type {
                        LAYOUT_RECORD => branch.layout = data.as_str().map(Into::into),
                        GIT_BRANCH_RECORD => branch.git_branch = data.as_str().map(Into::into),
                        _ => {}
                    }
                    branch.custom.insert(custom_type.clone(), data.clone());
                }
                Record::Request(request) => {
                    // The model that really answered counts, whoever chose it: a command, a flag or
                    // a setting.
                    if &*request.purpose == "turn" {
                        branch.model = Some((request.provider.clone(), request.model.clone()));
                        branch.layout = Some(request.layout.clone());
                    }
                    let answer = messages
                        .iter_mut()
                        .rev()
                        .map(|(_, message)| message)
                        .find(|message| Some(&message.id.0) == request.message.as_ref());
                    if let Some(answer) = answer {
                        answer.note(|facts| facts.usage = Some((request.usage, request.dollars)));
                    }
                    branch.requests.push(request.clone());
                }
                Record::Partial(_) | Record::Label { .. } | Record::Name { .. } | Record::Other { .. } => {}
            }
        }
        branch.memories = remembered.into_iter().cloned().collect();
        branch.messages = messages.into_iter().map(|(_, message)| message).collect();
        branch
    }

    /// Index of the first entry that the compaction at `at` keeps. `None` if it names an entry that
    /// is not above it: then nothing is replaced, because sending too much is better than losing
    /// what was meant to stay.
    fn first_kept_index(&self, first_kept: Option<&str>, at: usize, path: &[usize]) -> Option<usize> {
        let Some(id) = first_kept else { return Some(at) };
        let kept = *self.by_id.get(id)?;
        (kept < at && path.binary_search(&kept).is_ok()).then_some(kept)
    }
}

#[cfg(test)]
mod tests;
