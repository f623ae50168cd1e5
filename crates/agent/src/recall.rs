//! The layouts' memory in the session file: what changed with each request, not all of it each time.
//!
//! BASE holds whole files. It is written when it was laid, and then only what was added: an update, the frontier. A memory
//! that is lost costs a fold, nothing else, so nobody waits for it to be durable.

use hardpan_context::{Frontier, FrozenHistory, Memory, PanelsMemory, ShownPanel, StrataMemory, Update};
use hardpan_prompt::Hash;
use serde::{Deserialize, Serialize};

/// What a request changed of the memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// All of it is new.
    Whole(Box<Memory>),
    /// Only this was added or replaced.
    Added(Box<Added>),
}

/// What was added to a memory, and the small things that change with each request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Added {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    updates: Vec<Update>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frontier: Option<Frontier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<Hash>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    histories: Vec<FrozenHistory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<Vec<ShownPanel>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    empty_tiers: Option<u32>,
}

impl Change {
    /// What leads from one memory to the next; none if nothing does.
    pub fn between(before: &Memory, after: &Memory) -> Option<Change> {
        if before == after {
            return None;
        }
        Some(added(before, after).map_or_else(
            || Change::Whole(Box::new(after.clone())),
            |added| Change::Added(Box::new(added)),
        ))
    }

    /// The memory after it.
    pub fn apply(self, memory: &mut Memory) {
        match self {
            Change::Whole(whole) => *memory = *whole,
            Change::Added(added) => {
                let Added { updates, frontier, tail, histories, shown, empty_tiers } = *added;
                memory.strata.updates.extend(updates);
                memory.strata.frontier = frontier.or(memory.strata.frontier);
                memory.strata.tail = tail.or(memory.strata.tail);
                memory.panels.histories.extend(histories);
                memory.panels.shown = shown.unwrap_or_else(|| std::mem::take(&mut memory.panels.shown));
                memory.empty_tiers = empty_tiers.unwrap_or(memory.empty_tiers);
            }
        }
    }
}

/// What was only added; none where something else changed, too.
fn added(before: &Memory, after: &Memory) -> Option<Added> {
    let StrataMemory { base, laid, updates, stubs, frontier, tail, folds } = &after.strata;
    let old = &before.strata;
    let same = *laid == old.laid && *folds == old.folds && *stubs == old.stubs && *base == old.base;
    let panels: &PanelsMemory = &after.panels;
    let added = Added {
        updates: rest(&old.updates, updates)?,
        frontier: frontier.filter(|_| *frontier != old.frontier),
        tail: tail.filter(|_| *tail != old.tail),
        histories: rest(&before.panels.histories, &panels.histories)?,
        shown: (panels.shown != before.panels.shown).then(|| panels.shown.clone()),
        empty_tiers: (after.empty_tiers != before.empty_tiers).then_some(after.empty_tiers),
    };
    // What was taken away cannot be told by what was added.
    let told = (frontier.is_some() || old.frontier.is_none()) && (tail.is_some() || old.tail.is_none());
    (same && told).then_some(added)
}

/// What `after` has more than `before`, if it begins with it.
fn rest<T: Clone + PartialEq>(before: &[T], after: &[T]) -> Option<Vec<T>> {
    after.strip_prefix(before).map(<[T]>::to_vec)
}

#[cfg(test)]
mod tests {
    use hardpan_context::{Group, Placed, UpdateForm};
    use hardpan_prompt::{Kind, Text};

    use super::*;

    fn laid(body: &str) -> Memory {
        let placed = Placed { key: "file:a".into(), title: None, kind: Kind::File, body: Text::new(body) };
        let mut memory = Memory::default();
        memory.strata.base = vec![Group { name: "calm".into(), items: vec![placed] }];
        memory.strata.laid = true;
        memory
    }

    fn update(text: &str) -> Update {
        Update {
            key: "file:a".into(),
            kind: Kind::File,
            anchor: "m1".into(),
            form: UpdateForm::Body,
            text: Text::new(text),
            body: Some(Text::new(text)),
        }
    }

    #[test]
    fn what_was_added_is_told_without_what_was_there() {
        let before = laid("a long file");
        let mut after = before.clone();
        after.strata.updates.push(update("new"));
        after.strata.frontier = Some(Frontier { blocks: 3, hash: Hash::of(b"x") });
        let change = Change::between(&before, &after).unwrap();
        let written = serde_json::to_string(&change).unwrap();
        assert!(written.contains("\"new\"") && !written.contains("a long file"), "{written}");
        let mut told = before;
        serde_json::from_str::<Change>(&written).unwrap().apply(&mut told);
        assert_eq!(told, after);
    }

    #[test]
    fn a_fold_is_told_as_a_whole_and_nothing_is_told_of_nothing() {
        let (before, mut after) = (laid("one"), laid("two"));
        after.strata.folds = 1;
        let change = Change::between(&before, &after).unwrap();
        assert!(matches!(change, Change::Whole(_)));
        let mut told = before.clone();
        change.apply(&mut told);
        assert_eq!(told, after);
        assert_eq!(Change::between(&before, &before.clone()), None);
    }
}
