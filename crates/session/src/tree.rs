//! The session as a whole: its tree, its leaves, its labels, its bill, and copies of its branches.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::entry::{Entry, Header};
use crate::record::Record;
use crate::request::RequestRecord;
use crate::session::{Session, SessionError};

/// Who follows whom, for a view of the tree. Numbers are places in [`Session::entries`]; pieces of answers, and second
/// entries of one id, are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The entries that follow none.
    pub roots: Vec<usize>,
    /// For each entry those that follow it, in the order of the file.
    pub children: Vec<Vec<usize>>,
}

/// A branch as a session of its own: what [`crate::Log::create`] and its appends need.
#[derive(Clone, Debug, PartialEq)]
pub struct Fork {
    /// The new session's first line, which tells where it comes from.
    pub header: Header,
    /// The entries of the branch, under their old ids.
    pub entries: Vec<Entry>,
}

impl Session {
    /// The tree of its entries.
    pub fn tree(&self) -> Tree {
        let mut tree = Tree { roots: Vec::new(), children: vec![Vec::new(); self.entries.len()] };
        for at in (0..self.entries.len()).filter(|&at| self.is_in_tree(at)) {
            match self.parents[at] {
                Some(parent) => tree.children[parent].push(at),
                None => tree.roots.push(at),
            }
        }
        tree
    }

    /// The ends of all branches, in the order of the file.
    pub fn leaves(&self) -> Vec<&Entry> {
        let children = self.tree().children;
        let is_leaf = |&at: &usize| children[at].is_empty() && self.is_in_tree(at);
        (0..self.entries.len()).filter(is_leaf).map(|at| &self.entries[at]).collect()
    }

    fn is_in_tree(&self, at: usize) -> bool {
        let entry = &self.entries[at];
        entry.as_partial().is_none() && self.index.get(&entry.id) == Some(&at)
    }

    /// The entry that the next one follows unless another branch is chosen.
    pub fn leaf(&self) -> Option<&Entry> {
        self.leaf.map(|at| &self.entries[at])
    }

    /// The entry of this id.
    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.index.get(id).map(|&at| &self.entries[at])
    }

    /// The entries from the root to the leaf, or to the last entry of the file.
    pub fn path_to(&self, leaf: Option<&str>) -> Result<Vec<&Entry>, SessionError> {
        let path = self.find_leaf(leaf)?.map_or_else(Vec::new, |leaf| self.path(leaf));
        Ok(path.into_iter().map(|at| &self.entries[at]).collect())
    }

    /// The name that the session was given last, on whatever branch.
    pub fn name(&self) -> Option<&str> {
        self.entries.iter().rev().find_map(|entry| match &entry.record {
            Record::Name { name } => Some(&**name),
            _ => None,
        })
    }

    /// The labels by the entries that have them.
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

    /// Every request that was made, on whatever branch: the bill.
    pub fn requests(&self) -> impl Iterator<Item = &Arc<RequestRecord>> {
        self.entries.iter().filter_map(|entry| match &entry.record {
            Record::Request(request) => Some(request),
            _ => None,
        })
    }

    /// The branch that ends at `leaf`, or at the last entry, for a session of its own. The header's `forked_from` then
    /// names this session and that entry.
    pub fn fork(&self, leaf: Option<&str>, mut header: Header) -> Result<Fork, SessionError> {
        let path = self.find_leaf(leaf)?.map_or_else(Vec::new, |leaf| self.path(leaf));
        let entries: Vec<Entry> = path.iter().map(|&at| self.rooted(&self.entries[at])).collect();
        let from = json!({"session": &*self.header.id, "entry": entries.last().map(|entry| &*entry.id)});
        header.extra.insert("forked_from".into(), from);
        Ok(Fork { header, entries })
    }

    /// The entry with the parent that it has here. In the file that may be another, where a line was lost: in a copy
    /// nothing would tell.
    pub(crate) fn rooted(&self, entry: &Entry) -> Entry {
        let mut entry = entry.clone();
        let parent = self.index.get(&entry.id).and_then(|&at| self.parents[at]);
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
