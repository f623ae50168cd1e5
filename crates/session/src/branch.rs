//! From the root to a leaf.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_prompt::{AgentMessage, Body};
use serde_json::Value;

use crate::record::Record;
use crate::request::RequestRecord;
use crate::session::{Session, SessionError};

/// The conversation that ends at one entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Branch {
    /// The messages, oldest first. What a compaction replaced is its summary, under the compaction's id.
    pub messages: Vec<AgentMessage>,
    /// The provider and the model that were last chosen or asked.
    pub model: Option<(Arc<str>, Arc<str>)>,
    /// The level of thinking that was last chosen.
    pub thinking: Option<Arc<str>>,
    /// The layout of the last turn.
    pub layout: Option<Arc<str>>,
    /// What the layouts remembered, oldest first: each says what changed. A compaction makes all before it void.
    pub memories: Vec<Value>,
    /// The last state of each extension, by its name for it.
    pub custom: BTreeMap<Arc<str>, Value>,
    /// The requests that were made for it, oldest first.
    pub requests: Vec<Arc<RequestRecord>>,
    /// The entry it ends at, which the next one follows; none in an empty session.
    pub leaf: Option<Arc<str>>,
}

impl Session {
    /// The branch that ends at the entry `leaf`, or at the last entry of the file.
    pub fn branch(&self, leaf: Option<&str>) -> Result<Branch, SessionError> {
        let Some(leaf) = self.find_leaf(leaf)? else { return Ok(Branch::default()) };
        Ok(self.walk(&self.path(leaf), leaf))
    }

    /// The entry of this id, or the last that another may follow.
    pub(crate) fn find_leaf(&self, id: Option<&str>) -> Result<Option<usize>, SessionError> {
        let Some(id) = id else { return Ok(self.leaf) };
        match self.index.get(id) {
            Some(&at) if self.entries[at].as_partial().is_some() => Ok(self.parents[at]),
            Some(&at) => Ok(Some(at)),
            None => Err(SessionError::NoSuchEntry { name: self.file.clone(), id: id.into() }),
        }
    }

    /// `path` ascends, since every parent is an earlier entry.
    fn walk(&self, path: &[usize], leaf: usize) -> Branch {
        let mut branch = Branch { leaf: Some(self.entries[leaf].id.clone()), ..Branch::default() };
        // With each message the entry it comes from; a summary comes before them all.
        let mut messages: Vec<(Option<usize>, AgentMessage)> = Vec::new();
        let mut remembered: Vec<&Value> = Vec::new();
        for &at in path {
            let entry = &self.entries[at];
            match &entry.record {
                Record::Message(message) => messages.push((Some(at), (**message).clone())),
                Record::ModelChange { provider, model } => {
                    branch.model = Some((provider.clone(), model.clone()));
                }
                Record::ThinkingChange { level } => branch.thinking = Some(level.clone()),
                Record::Compaction { summary, first_kept, .. } => {
                    let Some(kept) = self.kept_from(first_kept.as_deref(), at, path) else { continue };
                    messages.retain(|(from, _)| *from >= Some(kept));
                    let body = Body::CompactionSummary { summary: summary.clone() };
                    let mut message = AgentMessage::new(&*entry.id, body);
                    message.time = entry.time;
                    messages.insert(0, (None, message));
                    remembered.clear();
                }
                Record::Memory { memory } => remembered.push(memory),
                Record::Custom { custom_type, data } => {
                    branch.custom.insert(custom_type.clone(), data.clone());
                }
                Record::Request(request) => {
                    // Whom a turn was really asked of counts, whoever chose it: a command, a flag or a setting.
                    if &*request.purpose == "turn" {
                        branch.model = Some((request.provider.clone(), request.model.clone()));
                        branch.layout = Some(request.layout.clone());
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

    /// The first entry that the compaction at `at` keeps. None where it names one that is not above it: then nothing
    /// is replaced, because to send too much is better than to lose what was meant to stay.
    fn kept_from(&self, first_kept: Option<&str>, at: usize, path: &[usize]) -> Option<usize> {
        let Some(id) = first_kept else { return Some(at) };
        let kept = *self.index.get(id)?;
        (kept < at && path.binary_search(&kept).is_ok()).then_some(kept)
    }
}

#[cfg(test)]
mod tests;
