//! The definitions of a file in the order in which the map shows them.

use std::collections::HashMap;

use super::{Outline, Reach};
use crate::names::WordHash;

/// A definition that the map shows, and how deep it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its place in the outline.
    pub(crate) definition: u32,
    /// The row of what holds it.
    pub(crate) parent: Option<u32>,
    pub(crate) depth: u16,
}

impl Outline {
    /// The definitions that others can see, each once, members below what holds them, in the order of the file.
    pub(crate) fn rows(&self) -> Box<[Row]> {
        let top = self.definitions.len();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); top + 1];
        let mut seen: HashMap<(usize, &str, &str, &str), u32, WordHash> = HashMap::default();
        // A type in parts (partial classes, classes opened again, namespaces) is shown where its first part stands.
        let mut first: Vec<usize> = (0..=top).collect();
        for (at, definition) in (0_u32..).zip(&self.definitions) {
            let parent = first[definition.parent.map_or(top, |parent| parent as usize)];
            // A property is read and set, and a field may be set twice, but each is one.
            let signature = if definition.kind.is_callable() { &*definition.signature } else { "" };
            let key = (parent, definition.kind.letter(), &*definition.name, signature);
            if definition.reach == Reach::Shared {
                let part = *seen.entry(key).or_insert(at);
                first[at as usize] = part as usize;
                if part == at {
                    children[parent].push(at);
                }
            }
        }
        let mut rows: Vec<Row> = Vec::with_capacity(top);
        let row = |definition, parent, depth| Row { definition, parent, depth };
        let mut next: Vec<Row> = children[top].iter().rev().map(|at| row(*at, None, 0)).collect();
        while let Some(shown) = next.pop() {
            let parent = u32::try_from(rows.len()).ok();
            rows.push(shown);
            let inside = std::mem::take(&mut children[shown.definition as usize]);
            next.extend(inside.into_iter().rev().map(|at| row(at, parent, shown.depth.saturating_add(1))));
        }
        rows.into()
    }

    /// The name of a definition with those of what holds it: `RetryPolicy.next_delay`.
    pub(crate) fn full_name(&self, at: u32) -> String {
        let mut names = Vec::new();
        let mut next = Some(at);
        // No chain is longer than the list: a stored outline may hold a circle.
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
