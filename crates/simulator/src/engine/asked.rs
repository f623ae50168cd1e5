//! A request that may be answered, and how its cache sees it.

use hardpan_economy::cache::{self, Implicit, Moment, Salts};
use hardpan_models::{Markers, Model, Protocol, ReasoningField, Wire};
use hardpan_prompt::{Hash, Measured, Prompt, Thinking};
use hardpan_providers::decode::Decoded;

use crate::choice::Choice;
use crate::wire::UsageForm;

/// A request that may be answered.
pub(super) struct Asked {
    pub protocol: Protocol,
    pub decoded: Decoded,
    pub model: Model,
    pub wire: Wire,
    pub choice: Choice,
    pub measured: Measured,
    pub organisation: Hash,
}

impl Asked {
    /// Whether reasoning is part of the answer.
    pub fn thinks(&self) -> bool {
        match self.protocol {
            Protocol::Anthropic => thinks(&self.decoded),
            Protocol::Openai => self.model.reasoning || self.wire.reasoning_field != ReasoningField::None,
        }
    }

    /// The request as its cache sees it, and the rules it is cached by.
    pub fn for_cache(&self, now: Moment) -> (cache::Rules, cache::Request) {
        let Decoded {
            prompt,
            tool_choice,
            parallel_tools,
            automatic_cache,
            explicit_only,
            effort,
            citations,
            ..
        } = &self.decoded;
        let mut rules = cache::Rules::of(&self.model, &self.wire);
        if *explicit_only {
            rules.implicit = Implicit::None;
        }
        if self.model.provider == "llamacpp" {
            rules = rules.with_slots(1); // the server's default
        }
        let mut sent = cache::Request::from_prompt(prompt, &self.measured, now);
        sent.salts = Salts {
            citations: *citations,
            tool_choice: tool_choice.as_ref().map(|choice| choice.as_str().into()),
            parallel_tools_off: *parallel_tools == Some(false),
            // Thinking as far as the model likes has no budget to tell it by: its own word stands beside the effort.
            effort: match (effort, self.decoded.adaptive_thinking) {
                (effort, true) => Some(format!("adaptive {}", effort.as_deref().unwrap_or_default()).into()),
                (Some(effort), false) => Some(effort.as_str().into()),
                (None, false) => None,
            },
            ..sent.salts
        };
        if let Some(lifetime) = automatic_cache {
            sent.mark_last(*lifetime);
        }
        (rules, sent)
    }

    pub fn usage_form(&self) -> UsageForm {
        match (self.wire.markers, self.model.provider.as_str()) {
            (Markers::PromptCacheBreakpoint | Markers::CacheControl, _) => UsageForm::ReadsAndWrites,
            (Markers::None, "deepseek") => UsageForm::HitsAndMisses,
            (Markers::None, _) => UsageForm::Reads,
        }
    }
}

/// Whether an Anthropic request turns thinking on.
pub(super) fn thinks(decoded: &Decoded) -> bool {
    let Prompt { thinking, .. } = &decoded.prompt;
    decoded.adaptive_thinking || *thinking != Thinking::Off
}
