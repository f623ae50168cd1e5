//! [`LayoutState`]: what the layouts carry over from one request to the next.
//!
//! Assembly is a pure function, so a layout cannot keep state of its own. It reads the state of
//! the previous request from the snapshot and returns the next one, which the agent commits once
//! the provider has begun to answer. The JSON form (the snapshot's `memory`) is stored in sessions,
//! as what each request changed: [`LayoutStateLog`].

mod log; // LayoutStateLog: the state, and what a session file has of it
mod storage; // StateStorage: how a layout's part of the state is stored

use std::sync::Arc;

use hardpan_prompt::{AgentMessage, Item, MessageId, Tool};
use serde::{Deserialize, Serialize};

use crate::LayoutName;
use crate::declared_tools::DeclaredTools;
use crate::panels::{self, DetachLimits, FrozenHistory, PanelsState};
use crate::run_context::RunContext;
use crate::strata::StrataState;
use crate::tiers::StabilityTracker;

pub use log::LayoutStateLog;
pub use storage::{StateChange, StateStorage};

/// The state of all layouts. Each layout reads and changes its own part alone; to everyone else it
/// is opaque.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LayoutState {
    /// `panels`: detached conversation, and the panels of the last request.
    #[serde(skip_serializing_if = "PanelsState::is_empty")]
    pub(crate) panels: PanelsState,
    /// `strata`: BASE, and what the model has been told since it was laid.
    #[serde(skip_serializing_if = "StrataState::is_empty")]
    pub(crate) strata: StrataState,
    /// `tiers`: how long each file, symbol entry and exchange has been unchanged.
    #[serde(skip_serializing_if = "StabilityTracker::is_empty")]
    pub(crate) tiers: StabilityTracker,
    /// `tiers`: what stands before the conversation within a run.
    #[serde(skip_serializing_if = "RunContext::is_empty")]
    pub(crate) tiers_run: RunContext,
    /// `panels`, `tiers` and `inline`: the tools that requests declare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) declared_tools: Option<DeclaredTools>,
    /// `tiers`: how many empty tiers its requests have skipped since the session began.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) empty_tiers: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl LayoutState {
    /// True before the first request: there is nothing to store.
    pub fn is_empty(&self) -> bool {
        *self == LayoutState::default()
    }

    /// The items that the model has been told of, with the bodies that it was told last. Only `strata`
    /// remembers them.
    pub fn told_items(&self) -> Vec<Item> {
        self.strata.told_items()
    }

    /// The parts of the conversation that were moved into history panels. Only `panels` does that.
    pub fn frozen_histories(&self) -> &[Arc<FrozenHistory>] {
        &self.panels.histories
    }

    /// Limits with which the next request freezes these messages up to the turn of `last`, or all of them.
    /// None if there is nothing to freeze.
    pub fn freeze_limits(&self, messages: &[AgentMessage], last: Option<&MessageId>) -> Option<DetachLimits> {
        panels::freeze_limits(messages, &self.panels.histories, last)
    }

    /// The tools that requests in this layout declare, without the layout's own; none before the first.
    pub fn declared_tools(&self, layout: LayoutName) -> Option<&[Tool]> {
        layout.layout().declared_tools(self)
    }

    /// Lets the next request declare the tools as they are, in every layout, although nothing of it can
    /// be read from the cache then.
    pub fn forget_declared_tools(&mut self) {
        self.strata.declared_tools = None;
        self.declared_tools = None;
    }

    /// The state after a compaction: empty, but for what is about the session and not about its
    /// messages.
    pub fn after_compaction(&self) -> LayoutState {
        let mut fresh = LayoutState::default();
        LayoutName::ALL.iter().for_each(|name| name.layout().keep_after_compaction(self, &mut fresh));
        fresh
    }
}
