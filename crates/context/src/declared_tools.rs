//! [`DeclaredTools`]: the tools that the requests of a conversation declare.
//!
//! The declarations are the first thing a provider caches, so another list would lose the cache of
//! everything. They stay what they were when they were declared, as long as the beginning of the prompt
//! can be read from the cache: a tool that is off is refused, and a new one waits. Where the beginning is
//! written anew anyway, the tools are declared as they are.

use std::sync::Arc;

use hardpan_prompt::{Hash, Region, Segment, Tool, ToolBlock};
use serde::{Deserialize, Serialize};

use crate::layout::{Layout, LayoutInput};
use crate::snapshot::AgentMode;
use crate::{FoldReason, LifetimeSetting, system};

/// The tools that requests declare until the beginning of the prompt is written anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredTools {
    /// The tools, in order, without the layout's own.
    pub tools: Arc<Vec<Tool>>,
    /// Identifies what else begins the prompt: layout, model, system prompt.
    pub prefix: Hash,
}

/// The beginning of a prompt: the tools, and the system prompt, which mentions them.
pub struct PromptHead {
    /// The layout's own tool, then the declared ones.
    pub tools: Vec<ToolBlock>,
    /// The system prompt.
    pub system: Vec<Segment>,
}

/// Where a layout declares tools.
pub struct ToolPlace<'a> {
    /// The layout that declares them.
    pub layout: &'a dyn Layout,
    /// The region of the blocks.
    pub region: Region,
    /// The tool that the layout itself pretends to call, if it has one.
    pub own: Option<Tool>,
    /// What shares the first cache entry with tools and system prompt: where it changes, all of it is
    /// written anew.
    pub beside: &'a [Segment],
}

impl ToolPlace<'_> {
    /// The tools that a request declares and the system prompt that goes with them: those of `declared`
    /// while these can be read from the cache, else those of the snapshot, which become the declared
    /// ones.
    pub fn begin_prompt(&self, input: &LayoutInput<'_>, declared: &mut Option<DeclaredTools>) -> PromptHead {
        if let Some(former) = declared.as_ref().filter(|_| !self.is_written_anew(input)) {
            let head = self.head(input, &former.tools);
            if self.prefix(input, &head) == former.prefix {
                return head;
            }
        }
        let tools = input.snapshot.active_tools();
        let head = self.head(input, tools);
        let prefix = self.prefix(input, &head);
        let same = declared.as_ref().map(|former| former.tools.clone()).filter(|former| **former == *tools);
        let tools = same.unwrap_or_else(|| Arc::new(tools.to_vec()));
        *declared = Some(DeclaredTools { tools, prefix });
        head
    }

    fn head(&self, input: &LayoutInput<'_>, tools: &[Tool]) -> PromptHead {
        PromptHead {
            tools: input.blocks_of_tools(tools, self.region, self.own.clone()),
            system: system::segments_with_tools(input, self.layout, tools),
        }
    }

    fn prefix(&self, input: &LayoutInput<'_>, head: &PromptHead) -> Hash {
        let has_tools = input.snapshot.agent_mode == AgentMode::On;
        let own = self.layout.own_tool().unwrap_or_default();
        let model = (&input.target.provider, &input.target.model.id);
        let request = format!("{own} {} {has_tools} {model:?}", self.region.name());
        let texts = head.system.iter().chain(self.beside).map(|segment| segment.text.hash());
        Hash::chain([Hash::of(request.as_bytes())].into_iter().chain(texts))
    }

    /// Whether nothing of the request can be read from the cache, or nothing need be, whatever it begins
    /// with.
    fn is_written_anew(&self, input: &LayoutInput<'_>) -> bool {
        let snapshot = input.snapshot;
        match snapshot.fold {
            _ if snapshot.stands_alone => true,
            // A layout that folds knows what is left, and where it folds.
            _ if self.layout.folds() => false,
            Some(FoldReason::CacheLost) => !costs_reasoning(input),
            // With any other setting the beginning may have been cached for an hour, and only layouts
            // that fold know whether it was: not to lose it, the tools wait for the hour.
            Some(FoldReason::ShortCacheLost) => {
                snapshot.cache_lifetime == LifetimeSetting::FiveMinutes && !costs_reasoning(input)
            }
            Some(FoldReason::Requested | FoldReason::WindowFull) => true,
            Some(FoldReason::RentPaid) | None => false,
        }
    }
}

/// Whether other tools would cost the reasoning of the turn in progress, which is bound to them.
pub fn costs_reasoning(input: &LayoutInput<'_>) -> bool {
    input.target.model.binding.is_bound() && input.snapshot.new_input().is_none()
}
