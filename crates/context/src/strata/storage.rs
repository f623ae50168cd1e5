//! How sessions store the state of `strata`: whole after a fold, then what each request added.

use hardpan_prompt::Hash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Strata;
use super::lifetimes::LongLived;
use super::state::{
    EffortChange, Frontier, GarbageAccount, ItemUpdate, SentTail, StrataState, ToolChangeSet,
};
use crate::LayoutState;
use crate::layout_state::{StateChange, StateStorage};

/// The fields of `strata` in an additions record.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StrataAdditions {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    updates: Vec<ItemUpdate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frontier: Option<Frontier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<Hash>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tails: Vec<SentTail>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    effort_changes: Vec<EffortChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_changes: Vec<ToolChangeSet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    long_lived: Option<LongLived>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<GarbageAccount>,
}

impl StateStorage for Strata {
    fn state_change(&self, before: &LayoutState, after: &LayoutState) -> StateChange {
        if after.strata == before.strata {
            return StateChange::Nothing;
        }
        let added = additions_between(&before.strata, &after.strata);
        added.map_or(StateChange::Rewritten, |added| StateChange::added(&added))
    }

    fn apply_additions(&self, state: &mut LayoutState, added: &Value) -> Result<(), serde_json::Error> {
        let StrataAdditions {
            updates,
            frontier,
            tail,
            tails,
            effort_changes,
            tool_changes,
            long_lived,
            account,
        } = StrataAdditions::deserialize(added)?;
        let strata = &mut state.strata;
        strata.updates.extend(updates);
        strata.frontier = frontier.or(strata.frontier);
        strata.tail_hash = tail.or(strata.tail_hash);
        strata.tails.extend(tails);
        strata.effort_changes.extend(effort_changes);
        strata.tool_changes.extend(tool_changes);
        strata.long_lived = long_lived.unwrap_or(strata.long_lived);
        strata.account = account.unwrap_or_else(|| std::mem::take(&mut strata.account));
        Ok(())
    }
}

/// What was added; `None` if something else changed too.
fn additions_between(before: &StrataState, after: &StrataState) -> Option<StrataAdditions> {
    // Every field is named, so that a new one forces a decision here.
    let StrataState {
        base,
        has_base,
        updates,
        stubs,
        frontier,
        tail_hash,
        tails,
        first_effort,
        effort_changes,
        declared_tools,
        tool_changes,
        long_lived,
        folds,
        bases,
        account,
    } = after;
    let same_base = *has_base == before.has_base
        && (*folds, *bases) == (before.folds, before.bases)
        && *first_effort == before.first_effort
        && *declared_tools == before.declared_tools
        && *base == before.base;
    // A removal cannot be expressed as an addition.
    let nothing_removed = (frontier.is_some() || before.frontier.is_none())
        && (tail_hash.is_some() || before.tail_hash.is_none());
    if !same_base || *stubs != before.stubs || !nothing_removed {
        return None;
    }
    Some(StrataAdditions {
        updates: updates.strip_prefix(&*before.updates)?.to_vec(),
        frontier: frontier.filter(|_| *frontier != before.frontier),
        tail: tail_hash.filter(|_| *tail_hash != before.tail_hash),
        tails: tails.strip_prefix(&*before.tails)?.to_vec(),
        effort_changes: effort_changes.strip_prefix(&*before.effort_changes)?.to_vec(),
        tool_changes: tool_changes.strip_prefix(&*before.tool_changes)?.to_vec(),
        long_lived: Some(*long_lived).filter(|_| *long_lived != before.long_lived),
        account: Some(account.clone()).filter(|account| *account != before.account),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hardpan_prompt::{ItemKind, Text};
    use serde_json::json;

    use super::*;
    use crate::layout_state::LayoutStateLog;
    use crate::strata::state::{BaseGroup, BaseItem, UpdateForm};

    fn laid(body: &str) -> LayoutState {
        let placed =
            BaseItem { key: "file:a".into(), title: None, kind: ItemKind::File, body: Text::new(body) };
        let mut state = LayoutState::default();
        state.strata.base = Arc::new(vec![BaseGroup { name: "calm".into(), items: vec![placed] }]);
        state.strata.has_base = true;
        state
    }

    fn update(text: &str) -> ItemUpdate {
        ItemUpdate {
            key: "file:a".into(),
            kind: ItemKind::File,
            anchor: "m1".into(),
            form: UpdateForm::Body,
            text: Text::new(text),
            body: Some(Text::new(text)),
        }
    }

    #[test]
    fn what_was_added_is_stored_without_what_was_there() {
        let mut log = LayoutStateLog::default();
        let base = log.commit(laid("a long file")).unwrap();
        let mut after = log.current().clone();
        after.strata.updates.push(update("new"));
        after.strata.frontier = Some(Frontier { blocks: 3, hash: Hash::of(b"x") });
        let added = log.commit(after.clone()).unwrap();
        let expected = json!({"added": {
            "updates": [{"key": "file:a", "kind": "file", "anchor": "m1", "form": "body", "text": "new", "body": "new"}],
            "frontier": {"blocks": 3, "hash": Hash::of(b"x")},
        }});
        assert_eq!(added, expected);
        assert_eq!(*LayoutStateLog::from_records([base, added]).current(), after);
    }

    #[test]
    fn a_fold_is_stored_whole_and_an_unchanged_state_not_at_all() {
        let mut log = LayoutStateLog::default();
        let first = log.commit(laid("one")).unwrap();
        let mut folded = laid("two");
        folded.strata.folds = 1;
        let whole = log.commit(folded.clone()).unwrap();
        assert_eq!(whole, json!({ "whole": folded }));
        assert_eq!(*LayoutStateLog::from_records([first, whole]).current(), folded);
        assert_eq!(log.commit(folded), None);
    }

    #[test]
    fn a_frontier_that_is_gone_is_stored_as_a_whole() {
        let mut with_frontier = laid("one");
        with_frontier.strata.frontier = Some(Frontier { blocks: 3, hash: Hash::of(b"x") });
        let mut log = LayoutStateLog::default();
        log.commit(with_frontier);
        assert_eq!(log.commit(laid("one")), Some(json!({ "whole": laid("one") })));
    }
}
