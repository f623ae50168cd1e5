//! What the breakdown shows of panels: whether each was a cache hit, what it has cost so far, and
//! how long the live conversation is.

use hardpan_prompt::{Source, TokenCounter};

use super::detach;
use super::state::PanelsState;
use crate::Snapshot;
use crate::breakdown::ContentDetails;

/// The tokens of the conversation without its frozen part.
pub fn conversation_tokens(snapshot: &Snapshot, panels: &PanelsState, counter: &TokenCounter) -> usize {
    let frozen = |id| panels.histories.iter().any(|history| history.messages.contains(id));
    let live = snapshot.messages.iter().filter(|message| !frozen(&message.id));
    live.filter(|message| detach::is_active(message))
        .map(|message| detach::estimate_tokens(message, counter))
        .sum()
}

/// Whether a panel was a hit in the request between the two states, and what it has cost so far.
pub fn content_details(source: &Source, before: &PanelsState, after: &PanelsState) -> ContentDetails {
    let Source::Item { key, .. } = source else { return ContentDetails::default() };
    let find = |panels: &PanelsState| {
        panels.shown.iter().find(|shown| shown.key == *key).map(|shown| (shown.hits, shown.cost))
    };
    let Some((hits, cost)) = find(after) else { return ContentDetails::default() };
    let hits_before = find(before).map_or(0, |(hits, _)| hits);
    ContentDetails { hit: Some(hits > hits_before), cost: Some(cost), ..ContentDetails::default() }
}
