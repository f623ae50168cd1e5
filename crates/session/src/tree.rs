//! The session as a whole: its tree of entries, leaves, labels and requests, and copies of its
//! branches.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::entry::{Entry, Header};
use crate::record::Record;
use crate::request::RequestRecord;
use crate::session::{Session, SessionError};

/// Which entry follows which, for a view of the tree. Numbers are indices into
/// [`Session::entries`]; partial records, and later entries that reuse an id, are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryTree {
    /// Entries without a parent.
    pub roots: Vec<usize>,
    /// For each entry the entries that follow it, in file order.
    pub children: Vec<Vec<usize>>,
}

/// A branch copied out as a new session: what [`crate::SessionLog::create`] and its appends need.
#[derive(Clone, Debug, PartialEq)]
pub struct Fork {
    /// Header of the new session; its `forked_from` names the original.
    pub header: Header,
    /// The entries of the branch, with their old ids.
    pub entries: Vec<Entry>,
}

impl Session {
    /// Builds the tree of all entries.
    pub fn tree(&self) -> EntryTree {
        let mut tree = EntryTree { roots: Vec::new(), children: vec![Vec::new(); self.entries.len()] };
        for at in (0..self.entries.len()).filter(|&at| self.is_in_tree(at)) {
            match self.parents[at] {
                Some(parent) => tree.children[parent].push(at),
                None => tree.roots.push(at),
            }
        }
        tree
    }

    /// The last entry of every branch, in file order.
    pub fn leaves(&self) -> Vec<&Entry> {
        let children = self.tree().children;
        let is_leaf = |&at: &usize| children[at].is_empty() && self.is_in_tree(at);
        (0..self.entries.len()).filter(is_leaf).map(|at| &self.entries[at]).collect()
    }

    fn is_in_tree(&self, at: usize) -> bool {
        let entry = &self.entries[at];
        entry.as_partial().is_none() && self.by_id.get(&entry.id) == Some(&at)
    }

    /// The entry the next one follows unless another branch is chosen; `None` in an empty session.
    pub fn leaf(&self) -> Option<&Entry> {
        self.leaf.map(|at| &self.entries[at])
    }

    /// Finds an entry by its id.
    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.by_id.get(id).map(|&at| &self.entries[at])
    }

    /// The entries from the root to `leaf`, or to the last leaf if that is `None`.
    pub fn path_to(&self, leaf: Option<&str>) -> Result<Vec<&Entry>, SessionError> {
        let path = self.find_leaf(leaf)?.map_or_else(Vec::new, |leaf| self.path_indices(leaf));
        Ok(path.into_iter().map(|at| &self.entries[at]).collect())
    }

    /// The last name the session was given, on any branch.
    pub fn name(&self) -> Option<&str> {
        self.entries.iter().rev().find_map(|entry| match &entry.record {
            Record::Name { name } => Some(&**name),
            _ => None,
        })
    }

    /// Current labels, by the id of the labelled entry.
    pub fn labels(&self) -> BTreeMap<&str, &str> {
        let mut labels = BTreeMap::new();
        for entry in &self.entries {
            match &entry.record {
                Record::Label { target, label: Some(label) } => _ = labels.insert(&**target, &**label),
                Record::Label { target, label: None } => _ = labels.remove(&**target),
                _ => {}
            }
        }
        labels
    }

    /// Every request made in the session, on any branch: what the session was billed for.
    pub fn requests(&self) -> impl Iterator<Item = &Arc<RequestRecord>> {
        self.entries.iter().filter_map(|entry| match &entry.record {
            Record::Request(request) => Some(request),
            _ => None,
        })
    }

    /// Copies the branch that ends at `leaf` (or at the last leaf) into a new session. The header's
    /// `forked_from` will name this session and that entry.
    pub fn fork(&self, leaf: Option<&str>, mut header: Header) -> Result<Fork, SessionError> {
        let path = self.find_leaf(leaf)?.map_or_else(Vec::new, |leaf| self.path_indices(leaf));
        let entries: Vec<Entry> = path.iter().map(|&at| self.with_actual_parent(&self.entries[at])).collect();
        let from = json!({"session": &*self.header.id, "entry": entries.last().map(|entry| &*entry.id)});
        header.extra.insert("forked_from".into(), from);
        Ok(Fork { header, entries })
    }

    /// The entry with the parent it really has in this tree. The file may name another one, if a
    /// line was lost; a copy must not repeat that name.
    pub(crate) fn with_actual_parent(&self, entry: &Entry) -> Entry {
        let mut entry = entry.clone();
        let parent = self.by_id.get(&entry.id).and_then(|&at| self.parents[at]);
        let parent = parent.map(|parent| self.entries[parent].id.clone());
        if entry.parent != parent {
            if let Record::Other { line } = &mut entry.record
                && let Ok(Value::Object(mut fields)) = serde_json::from_str(line)
            {
                fields.insert("parent".into(), parent.as_deref().into());
                *line = Value::Object(fields).to_string().into();
            }
            entry.parent = parent;
        }
        entry
    }
}

#[cfg(test)]
mod tests;
