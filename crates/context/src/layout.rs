//! [`Layout`]: the trait behind the four ways of ordering a prompt, with its input and output.

use std::fmt;
use std::str::FromStr;

use hardpan_models::{
    MarkerFormat, Model, Protocol, ProviderProfile, ToolSchemaStyle, did_you_mean, nearest,
};
use hardpan_prompt::{
    Omission, OmissionKey, OmissionReason, Prompt, PromptTokens, Region, Thinking, TokenFactor, Tool,
    ToolBlock,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{LayoutState, PromptTexts, RenderCache, Snapshot};

/// The model a request is for, and how its provider is spoken to.
#[derive(Clone, Debug)]
pub struct Target {
    /// The provider's id in the catalogue: `anthropic`.
    pub provider: String,
    /// How the provider is spoken to, for this model.
    pub profile: ProviderProfile,
    /// The model's entry in the catalogue: window, prices, what it can do.
    pub model: Model,
    /// The limit for the answer, in tokens; thinking counts towards it.
    pub max_tokens: u32,
    /// What our token counts are multiplied by to estimate the model's own.
    pub factor: TokenFactor,
}

impl Target {
    /// Whether the provider understands cache breakpoints; if not, none are sent.
    pub fn has_markers(&self) -> bool {
        self.profile.markers != MarkerFormat::None
    }

    /// Whether the provider speaks Anthropic's protocol.
    pub fn is_anthropic(&self) -> bool {
        self.profile.protocol == Protocol::Anthropic
    }

    /// How many input tokens the window leaves once the answer has its room.
    pub fn max_input_tokens(&self) -> u32 {
        self.model.max_input_tokens(self.max_tokens)
    }
}

/// What a layout works from: the snapshot, and everything outside it that decides the bytes.
#[derive(Clone, Copy)]
pub struct LayoutInput<'a> {
    /// The context and the conversation.
    pub snapshot: &'a Snapshot,
    /// The model the prompt is for.
    pub target: &'a Target,
    /// The texts that a model reads.
    pub texts: &'a PromptTexts,
    /// Texts rendered for earlier requests. It saves work and never changes the result.
    pub render_cache: &'a RenderCache,
}

impl LayoutInput<'_> {
    /// Counts the tokens of a prompt, scaled to the target's tokenizer.
    pub(crate) fn measure_prompt(&self, prompt: &Prompt) -> PromptTokens {
        self.render_cache.counter.measure(prompt).scaled(&self.target.factor)
    }

    /// A prompt with its settings but without tools, system prompt and messages.
    pub(crate) fn empty_prompt(&self) -> Prompt {
        let plugin = &self.target.profile.web_search_plugin;
        let web_search = self.snapshot.web_search.filter(|_| plugin.is_some());
        let mut left_out = self.snapshot.unavailable.clone();
        if web_search.is_none() && self.snapshot.web_search.is_some() {
            let key = OmissionKey::Feature("web_search");
            left_out.push(Omission { key, reason: OmissionReason::NoSearchPlugin });
        }
        Prompt {
            model: self.target.model.id.as_str().into(),
            max_tokens: self.target.max_tokens,
            thinking: if self.target.model.reasoning { self.snapshot.thinking } else { Thinking::Off },
            web_search,
            left_out,
            ..Prompt::default()
        }
    }

    /// The tools as blocks, with schemas in the form the provider wants, so that a layout measures
    /// what is sent. `own` is the tool that the layout itself pretends to call, if it has one.
    pub(crate) fn tool_blocks(&self, region: Region, own: Option<Tool>) -> Vec<ToolBlock> {
        let declared = self.snapshot.active_tools().iter();
        // A layout's own tool comes first, so that it never moves when tools are added.
        let own_name = own.as_ref().map(|tool| tool.name.clone());
        let others = declared.filter(|tool| Some(&tool.name) != own_name.as_ref()).cloned();
        let formed = |tool: Tool| match self.target.profile.schemas {
            ToolSchemaStyle::AsDeclared => tool,
            ToolSchemaStyle::AllRequired => crate::require_all_properties(&tool),
        };
        own.into_iter()
            .chain(others)
            .map(|tool| ToolBlock { region, tool: formed(tool), breakpoint: None })
            .collect()
    }
}

/// What a layout returns: a finished prompt, and the state for the next request.
#[derive(Clone, Debug)]
pub struct Arrangement {
    /// The prompt, before it is adapted to what the model lacks.
    pub prompt: Prompt,
    /// The state to commit once the provider has begun to answer.
    pub layout_state: LayoutState,
    /// The prompt's token counts, where the layout had to measure it anyway.
    pub measured: Option<PromptTokens>,
}

/// A way of ordering a prompt.
///
/// To add one, implement this trait and register it in [`LayoutName`].
pub trait Layout {
    /// The name it is registered under.
    fn name(&self) -> LayoutName;
    /// Orders the snapshot into a prompt. Pure: the same input gives the same bytes.
    fn arrange(&self, input: &LayoutInput<'_>) -> Arrangement;
    /// The name of the tool that the layout declares and fills in by itself, if it has one. No other
    /// tool can have it.
    fn own_tool(&self) -> Option<&'static str> {
        None
    }
}

/// The name of a layout, as settings, sessions and `--layout` spell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayoutName {
    /// The default: a log-structured prompt of BASE, LOG and TAIL.
    #[default]
    Strata,
    /// Every item as a tool call and its result, the oldest change first.
    Panels,
    /// Stability tiers, with a breakpoint after each.
    Tiers,
    /// All context right before the last user message.
    Inline,
}

impl LayoutName {
    /// Every layout, the default first.
    pub const ALL: [LayoutName; 4] =
        [LayoutName::Strata, LayoutName::Panels, LayoutName::Tiers, LayoutName::Inline];

    /// The implementation registered under this name.
    pub fn layout(self) -> &'static dyn Layout {
        match self {
            LayoutName::Strata => &crate::strata::Strata,
            LayoutName::Panels => &crate::panels::Panels,
            LayoutName::Tiers => &crate::tiers::Tiers,
            LayoutName::Inline => &crate::inline::Inline,
        }
    }

    /// The name as settings spell it: `strata`.
    pub fn as_str(self) -> &'static str {
        match self {
            LayoutName::Strata => "strata",
            LayoutName::Panels => "panels",
            LayoutName::Tiers => "tiers",
            LayoutName::Inline => "inline",
        }
    }
}

impl fmt::Display for LayoutName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A layout name that nothing is registered under.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown layout \"{name}\"{}; use strata, panels, tiers or inline", did_you_mean(nearest))]
pub struct UnknownLayout {
    /// The name that was given.
    pub name: String,
    /// Known names that look similar, the nearest first.
    pub nearest: Vec<String>,
}

impl FromStr for LayoutName {
    type Err = UnknownLayout;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        LayoutName::ALL.into_iter().find(|layout| layout.as_str() == name).ok_or_else(|| {
            let known = LayoutName::ALL.iter().map(|layout| layout.as_str());
            UnknownLayout { name: name.to_owned(), nearest: nearest(name, known) }
        })
    }
}
