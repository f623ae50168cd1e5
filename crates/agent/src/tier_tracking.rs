//! Tracking which context is stable: the initial tiers, and the counting after each answer.

use hardpan_context::{
    LayoutName, LayoutState, Snapshot, StabilityTracker, SymbolMapFile, TierChange, cache_target_tokens,
    record_response,
};
use hardpan_prompt::ItemKind;

use crate::agent::{Agent, ModelSelection, lock};
use crate::run::RunState;
use crate::turn::LastRequest;

impl Agent {
    /// Before the first request of the `tiers` layout: places the symbol map in tiers, keeping
    /// files that refer to each other together.
    pub(crate) async fn place_initial_tiers(
        &self,
        run_state: &RunState,
        selection: &ModelSelection,
        snapshot: &mut Snapshot,
    ) {
        let is_first = selection.layout == LayoutName::Tiers && snapshot.layout_state.tiers.is_empty();
        if !is_first || snapshot.items_of(ItemKind::Symbols).next().is_none() {
            return;
        }
        let context_source = self.inner.setup.context_source.clone();
        // Without couplings the whole map starts in one tier and moves from there.
        let Ok(coupling) = tokio::task::spawn_blocking(move || context_source.coupling()).await else {
            return;
        };
        let mapped = |item: &hardpan_prompt::Item| SymbolMapFile {
            path: item.name().into(),
            tokens: selection.target.factor.scale(run_state.render_cache.counter.count(&item.body)),
            references: coupling.references.get(item.name()).copied().unwrap_or(0.0),
        };
        let files: Vec<SymbolMapFile> = snapshot.items_of(ItemKind::Symbols).map(mapped).collect();
        let target = cache_target_tokens(&selection.target);
        snapshot.layout_state.tiers = StabilityTracker::initial(&files, &coupling.clusters, target);
    }

    /// After a complete answer: counts one more unchanged response for every item that did not
    /// change, which may move it to another tier.
    pub(crate) fn count_unchanged_response(&self, last_request: &LastRequest) {
        let mut conversation = lock(&self.inner.conversation);
        let (memory, tier_moves) = record_response(
            &conversation.memory,
            &last_request.snapshot,
            &last_request.assembled,
            &last_request.target,
        );
        (conversation.memory, conversation.tier_moves) = (memory, tier_moves);
    }

    /// What the layouts remember: the state that the next request is built with.
    pub fn layout_state(&self) -> LayoutState {
        lock(&self.inner.conversation).memory.clone()
    }

    /// Which items changed their tier after the last answer, and why. Always empty in layouts other
    /// than `tiers`.
    pub fn tier_moves(&self) -> Vec<TierChange> {
        lock(&self.inner.conversation).tier_moves.clone()
    }
}
