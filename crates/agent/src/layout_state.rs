//! The layout's state between requests: preparing it, recording answers in it, and what it tells
//! faces. The state itself is the layout's own business.

use hardpan_context::{Breakdown, LayoutInput, LayoutState, SessionFigure, Snapshot, TierChange};

use crate::agent::{Agent, lock};
use crate::last_request::LastRequest;
use crate::model_selection::ModelSelection;
use crate::run::RunState;

impl Agent {
    /// Before a request: finds out how files refer to each other, where the layout needs that to
    /// begin.
    pub(crate) async fn prepare_layout_state(
        &self,
        run_state: &RunState,
        selection: &ModelSelection,
        snapshot: &mut Snapshot,
    ) {
        let layout = selection.layout.layout();
        if !layout.needs_coupling(snapshot) {
            return;
        }
        let context_source = self.inner.setup.context_source.clone();
        // Without the coupling the layout begins without an order, and finds one.
        let Ok(coupling) = tokio::task::spawn_blocking(move || context_source.coupling()).await else {
            return;
        };
        let input = LayoutInput {
            snapshot,
            target: &selection.target,
            texts: &self.inner.setup.texts,
            render_cache: &run_state.render_cache,
        };
        snapshot.layout_state = layout.initial_state(&input, &coupling);
    }

    /// Records a complete answer in the layout's state, which may move items.
    pub(crate) fn record_response(&self, last_request: &LastRequest) {
        let LastRequest { assembled, snapshot, target, .. } = last_request;
        let mut conversation = lock(&self.inner.conversation);
        let layout = assembled.layout.layout();
        conversation.tier_moves =
            layout.record_response(conversation.memory.current_mut(), snapshot, assembled, target);
    }

    /// What the layouts remember: the state that the next request is built with.
    pub fn layout_state(&self) -> LayoutState {
        lock(&self.inner.conversation).memory.current().clone()
    }

    /// Which items changed their tier after the last answer, and why. Always empty in layouts other
    /// than `tiers`.
    pub fn tier_moves(&self) -> Vec<TierChange> {
        lock(&self.inner.conversation).tier_moves.clone()
    }

    /// The figures of the layout's own that the HUD shows beside a breakdown.
    pub fn layout_figures(&self, breakdown: &Breakdown) -> Vec<SessionFigure> {
        let conversation = lock(&self.inner.conversation);
        breakdown.layout.layout().session_figures(breakdown, conversation.memory.current())
    }
}
