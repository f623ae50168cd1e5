//! The definitions of a file in the order in which the map shows them.

#![expect(clippy::disallowed_types, reason = "rows are looked up, never iterated")]

use std::collections::HashMap;

use super::{Outline, Visibility};
use crate::name_table::WordHash;

/// A definition that the map shows, with its nesting depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutlineRow {
    /// Index of the definition in the outline.
    pub(crate) definition: u32,
    /// Row of the enclosing definition.
    pub(crate) parent: Option<u32>,
    pub(crate) depth: u16,
}

impl Outline {
    /// The definitions that other files can use, each once, members below their types, in file
    /// order.
    pub(crate) fn rows(&self) -> Box<[OutlineRow]> {
        let top = self.definitions.len();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); top + 1];
        let mut seen: HashMap<(usize, &str, &str, &str), u32, WordHash> = HashMap::default();
        // A type in several parts (partial classes, reopened classes, namespaces) is shown where
        // its first part is.
        let mut first: Vec<usize> = (0..=top).collect();
        for (at, definition) in (0_u32..).zip(&self.definitions) {
            let parent = first[definition.parent.map_or(top, |parent| parent as usize)];
            // A property with getter and setter, or a field that is set twice, is shown once.
            let signature = if definition.kind.is_callable() { &*definition.signature } else { "" };
            let key = (parent, definition.kind.letter(), &*definition.name, signature);
            if definition.visibility == Visibility::Shared {
                let part = *seen.entry(key).or_insert(at);
                first[at as usize] = part as usize;
                if part == at {
                    children[parent].push(at);
                }
            }
        }
        let mut rows: Vec<OutlineRow> = Vec::with_capacity(top);
        let row = |definition, parent, depth| OutlineRow { definition, parent, depth };
        let mut next: Vec<OutlineRow> = children[top].iter().rev().map(|at| row(*at, None, 0)).collect();
        while let Some(shown) = next.pop() {
            let parent = u32::try_from(rows.len()).ok();
            rows.push(shown);
            let inside = std::mem::take(&mut children[shown.definition as usize]);
            next.extend(inside.into_iter().rev().map(|at| row(at, parent, shown.depth.saturating_add(1))));
        }
        rows.into()
    }

    /// The name of a definition with its parents: `RetryPolicy.next_delay`.
    pub(crate) fn full_name(&self, at: u32) -> String {
        let mut names = Vec::new();
        let mut next = Some(at);
        // No chain is longer than the list; a damaged cache may contain a cycle.
        while let Some(definition) = next
            .and_then(|at| self.definitions.get(at as usize))
            .filter(|_| names.len() <= self.definitions.len())
        {
            names.push(&*definition.name);
            next = definition.parent;
        }
        names.reverse();
        names.join(".")
    }
}
