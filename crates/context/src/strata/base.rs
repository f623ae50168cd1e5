//! [`lay_base`] lays BASE from the current items; [`apply_fold`] carries out a fold.

use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_prompt::{Item, ItemKind, MessageId, Text, Volatility};
use rustc_hash::FxHashSet;

use super::garbage::FoldPlan;
use super::shown_copies::CopyPlace;
use super::state::{BaseGroup, BaseItem, ItemUpdate, StrataState, UpdateForm};
use crate::history::ConvertedMessage;
use crate::layout::LayoutInput;

/// Lays BASE from the current bodies of the `live` items, except those that messages of the
/// conversation show.
pub fn lay_base(strata: &mut StrataState, live: &[&Item], history: &[Arc<ConvertedMessage>]) {
    let in_base: BTreeSet<&str> =
        strata.base.iter().flat_map(|group| &group.items).map(|placed| &*placed.key).collect();
    let telling = history.iter().filter(|converted| converted.has_text());
    let sent: FxHashSet<&MessageId> = telling.flat_map(|converted| &converted.ids).collect();
    let shows = |message: &MessageId| sent.contains(message) && !strata.is_taken_out(message);
    let is_shown = |item: &Item| !in_base.contains(&*item.key) && item.shown_by.as_ref().is_some_and(shows);
    let placed: Vec<&Item> = live.iter().copied().filter(|item| !is_shown(item)).collect();
    let keys: BTreeSet<&str> = placed.iter().map(|item| &*item.key).collect();
    let is_live = |key: &str| live.iter().any(|item| *item.key == *key);
    // What is in BASE need not be told; what is gone need not be said to be gone.
    strata.updates.retain(|update| !keys.contains(&*update.key) && is_live(&update.key));
    strata.base = Arc::new(group_items(placed));
    strata.has_base = true;
}

/// Carries out a fold: notes what becomes a line, which updates go, and where bodies take the place of
/// their parts.
pub fn apply_fold(input: &LayoutInput<'_>, strata: &mut StrataState, plan: FoldPlan, live: &[&Item]) {
    let stubbed = plan.stubbed();
    let is_dropped = |index: usize, update: &ItemUpdate| {
        let tells = matches!(update.form, UpdateForm::ShownByMessage | UpdateForm::InResult);
        plan.dropped_updates.contains(&index) || (tells && stubbed.contains(&update.anchor))
    };
    let mut kept: Vec<(usize, ItemUpdate)> = std::mem::take(&mut strata.updates)
        .into_iter()
        .enumerate()
        .filter(|(index, update)| !is_dropped(*index, update))
        .collect();
    for (key, host) in &plan.bodies {
        let Some(item) = live.iter().find(|item| item.key == *key) else { continue };
        let body = Some(item.body.clone());
        match host {
            CopyPlace::Message(anchor) => {
                kept.retain(|(_, update)| {
                    update.key != *key || update.anchor != *anchor || !update.text.is_empty()
                });
                let (key, kind, anchor) = (item.key.clone(), item.kind, anchor.clone());
                let (form, text) = (UpdateForm::InResult, Text::default());
                kept.push((usize::MAX, ItemUpdate { key, kind, anchor, form, text, body }));
            }
            CopyPlace::Update(index) => {
                if let Some((_, update)) = kept.iter_mut().find(|(at, _)| at == index) {
                    let text = super::updates::render_body(input, item);
                    (update.form, update.text, update.body) = (UpdateForm::Body, text, body);
                }
            }
            CopyPlace::Base => {}
        }
    }
    strata.updates = kept.into_iter().map(|(_, update)| update).collect();
    for (key, last) in &plan.paged_out {
        let (Some(item), CopyPlace::Message(anchor)) = (live.iter().find(|item| item.key == *key), last)
        else {
            continue;
        };
        let (key, kind, anchor) = (item.key.clone(), item.kind, anchor.clone());
        strata.updates.retain(|update| update.key != key);
        let (form, text, body) = (UpdateForm::PagedOut, Text::default(), Some(item.body.clone()));
        strata.updates.push(ItemUpdate { key, kind, anchor, form, text, body });
    }
    let mut known: BTreeSet<MessageId> = strata.stubs.iter().map(|stub| stub.message.clone()).collect();
    strata.stubs.extend(plan.stubs.into_iter().filter(|stub| known.insert(stub.message.clone())));
}

/// Groups items by volatility, the least volatile first; within a group by kind and key, never by
/// time, so that the order is stable.
fn group_items(mut items: Vec<&Item>) -> Vec<BaseGroup> {
    items.sort_by(|a, b| {
        (a.volatility, kind_order(a.kind), &a.key).cmp(&(b.volatility, kind_order(b.kind), &b.key))
    });
    let mut groups: Vec<BaseGroup> = Vec::new();
    for item in items {
        let name = group_name(item.volatility);
        if groups.last().is_none_or(|group| *group.name != *name) {
            groups.push(BaseGroup { name: Arc::from(name), items: Vec::new() });
        }
        let title = super::distinct_title(item).cloned();
        let placed = BaseItem { key: item.key.clone(), title, kind: item.kind, body: item.body.clone() };
        groups.last_mut().into_iter().for_each(|group| group.items.push(placed.clone()));
    }
    groups
}

fn group_name(volatility: Volatility) -> &'static str {
    match volatility {
        Volatility::Static => "still",
        Volatility::Slow => "calm",
        Volatility::Active | Volatility::Tail => "lively",
    }
}

/// The order of kinds within a group: the legend before the entries it explains, and the general
/// before the particular.
fn kind_order(kind: ItemKind) -> u8 {
    match kind {
        ItemKind::System | ItemKind::Tool => 0,
        ItemKind::Page => 1,
        ItemKind::Tree => 2,
        ItemKind::Legend => 3,
        ItemKind::Symbols => 4,
        ItemKind::File => 5,
        ItemKind::Panel => 6,
        ItemKind::History => 7,
    }
}
