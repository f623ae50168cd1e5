//! One trait for the four ways of ordering a prompt.

use std::fmt;
use std::str::FromStr;

use hardpan_models::{Markers, Model, Protocol, Schemas, Wire, did_you_mean, nearest};
use hardpan_prompt::{Factor, LeftOut, Measured, Place, Prompt, Thinking, Tool, ToolBlock};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Memo, Memory, Snapshot, Texts};

/// Whom a request is for.
#[derive(Clone, Debug)]
pub struct Target {
    /// The provider's id.
    pub provider: String,
    /// How the provider is spoken to, for this model.
    pub wire: Wire,
    /// The model.
    pub model: Model,
    /// The most tokens of answer.
    pub max_tokens: u32,
    /// How many of the model's tokens one counted token stands for, as far as it is known.
    pub factor: Factor,
}

impl Target {
    /// Whether breakpoints mean something to the provider.
    pub fn has_markers(&self) -> bool {
        self.wire.markers != Markers::None
    }

    /// Whether the provider speaks Anthropic's protocol.
    pub fn is_anthropic(&self) -> bool {
        self.wire.protocol == Protocol::Anthropic
    }

    /// The most tokens of input.
    pub fn max_input_tokens(&self) -> u32 {
        self.model.max_input_tokens(self.max_tokens)
    }
}

/// What a layout works from.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// What there is.
    pub snapshot: &'a Snapshot,
    /// Whom it is for.
    pub target: &'a Target,
    /// The texts that a model reads.
    pub texts: &'a Texts,
    /// What has been rendered already.
    pub memo: &'a Memo,
}

impl Input<'_> {
    /// The tokens of a prompt, in the target's own.
    pub(crate) fn measure(&self, prompt: &Prompt) -> Measured {
        self.memo.counter.measure(prompt).scaled(&self.target.factor)
    }

    /// A prompt with everything but content.
    pub(crate) fn blank(&self) -> Prompt {
        let plugin = &self.target.wire.web_search_plugin;
        let web_search = self.snapshot.web_search.filter(|_| plugin.is_some());
        let mut left_out = self.snapshot.unavailable.clone();
        if web_search.is_none() && self.snapshot.web_search.is_some() {
            left_out.push(LeftOut::new("web_search", "this provider has no plugin for it"));
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

    /// The declared tools, as blocks, in the form that the provider asks for: what a layout measures is what is sent.
    pub(crate) fn tools(&self, place: Place, own: Option<Tool>) -> Vec<ToolBlock> {
        let declared = self.snapshot.active_tools().iter();
        // A layout's own tool comes first, so that it never moves when tools are added.
        let own_name = own.as_ref().map(|tool| tool.name.clone());
        let others = declared.filter(|tool| Some(&tool.name) != own_name.as_ref()).cloned();
        let formed = |tool: Tool| match self.target.wire.schemas {
            Schemas::AsDeclared => tool,
            Schemas::AllRequired => crate::all_required(&tool),
        };
        own.into_iter()
            .chain(others)
            .map(|tool| ToolBlock { place, tool: formed(tool), breakpoint: None })
            .collect()
    }
}

/// A finished prompt, and what to remember once it has been sent.
#[derive(Clone, Debug)]
pub struct Arrangement {
    /// The request.
    pub prompt: Prompt,
    /// The memory to commit when the provider has begun to answer.
    pub memory: Memory,
    /// Its tokens, where the layout had to measure it.
    pub measured: Option<Measured>,
}

/// A way of ordering a prompt.
pub trait Layout {
    /// Which one it is.
    fn name(&self) -> LayoutName;
    /// Orders everything into a request. Pure: the same input gives the same bytes.
    fn arrange(&self, input: &Input<'_>) -> Arrangement;
}

/// The four layouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayoutName {
    /// The default: a log-structured prompt.
    #[default]
    Strata,
    /// Panels as tool-call pairs, oldest first (seed a).
    Panels,
    /// Stability tiers with a breakpoint each (seeds b and c).
    Tiers,
    /// Context right before the last user message (seed e).
    Inline,
}

impl LayoutName {
    /// Every layout, the default first.
    pub const ALL: [LayoutName; 4] =
        [LayoutName::Strata, LayoutName::Panels, LayoutName::Tiers, LayoutName::Inline];

    /// The layout of this name.
    pub fn layout(self) -> &'static dyn Layout {
        match self {
            LayoutName::Strata => &crate::strata::Strata,
            LayoutName::Panels => &crate::panels::Panels,
            LayoutName::Tiers => &crate::tiers::Tiers,
            LayoutName::Inline => &crate::inline::Inline,
        }
    }

    /// Its name in settings.
    pub fn word(self) -> &'static str {
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
        f.pad(self.word())
    }
}

/// A layout that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown layout \"{name}\"{}; known are strata, panels, tiers and inline", did_you_mean(nearest))]
pub struct UnknownLayout {
    /// The name that was given.
    pub name: String,
    /// What was probably meant.
    pub nearest: Vec<String>,
}

impl FromStr for LayoutName {
    type Err = UnknownLayout;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        LayoutName::ALL.into_iter().find(|layout| layout.word() == name).ok_or_else(|| {
            let known = LayoutName::ALL.iter().map(|layout| layout.word());
            UnknownLayout { name: name.to_owned(), nearest: nearest(name, known) }
        })
    }
}
