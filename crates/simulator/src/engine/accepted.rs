//! [`AcceptedRequest`]: a request that passed all checks, and the view that the cache has of it.

use std::collections::BTreeMap;

use hardpan_economy::cache::{self, CacheSettings, Moment};
use hardpan_models::{Model, ProviderProfile};
use hardpan_prompt::{Effort, Hash, Json, PromptTokens, TokenUsage};
use hardpan_providers::decode::DecodedRequest;

use crate::anthropic::ThinkingCacheScope;
use crate::anthropic::render::RenderedPrompt;
use crate::server_codec::Endpoint;
use crate::tool_choice::ToolChoice;

/// A request that passed all checks.
pub struct AcceptedRequest {
    pub decoded: DecodedRequest,
    pub model: Model,
    pub profile: ProviderProfile,
    pub choice: ToolChoice,
    /// What the model sees: counted, cached and billed.
    pub rendered: RenderedPrompt,
    /// The tokens of the rendered prompt.
    pub measured: PromptTokens,
    pub organisation: Hash,
    /// The tokens of the stored content that the request begins with. `None`: it names none.
    pub cached_tokens: Option<usize>,
    /// What the request addresses.
    pub endpoint: Endpoint,
    /// Whether it asks for a shorter form of its conversation, not for an answer.
    pub compacts: bool,
}

impl AcceptedRequest {
    /// What a request that begins with stored content is billed for. `None`: it does not.
    pub fn stored_content_amounts(&self) -> Option<TokenUsage> {
        let (total, cached) = (self.measured.total() as u64, self.cached_tokens? as u64);
        let cache_read = cached.min(total);
        Some(TokenUsage { input: total - cache_read, cache_read, ..TokenUsage::default() })
    }

    /// Whether all tools are defined by messages. The first of them changes what is before the
    /// system prompt, as the first deferred one does.
    fn begins_without_tools(&self) -> bool {
        let prompt = &self.rendered.prompt;
        prompt.tools.is_empty() && prompt.available_tools().iter().next().is_some()
    }

    /// The request in the form of the cache model, with the rules by which it is cached.
    pub fn cache_request(
        &self,
        now: Moment,
        thinking_cache: ThinkingCacheScope,
    ) -> (cache::CacheRules, cache::CacheRequest) {
        let DecodedRequest {
            tool_choice,
            parallel_tools,
            automatic_cache,
            explicit_only,
            citations,
            anthropic,
            other,
            ..
        } = &self.decoded;
        let mut rules = cache::CacheRules::for_model(&self.model, &self.profile);
        if self.model.provider == "llamacpp" {
            rules = rules.with_slots(1); // the server's default
        }
        let mut sent = cache::CacheRequest::from_prompt(&self.rendered.prompt, &self.measured, now);
        // A model's own effort is the same as none.
        let default_effort = self.model.thinking.default_effort.map(Effort::as_str);
        sent.settings = CacheSettings {
            effort: sent.settings.effort.filter(|effort| Some(&**effort) != default_effort),
            deferred_tools: !anthropic.deferred_tools.is_empty() || self.begins_without_tools(),
            speed: anthropic.speed.clone().filter(|speed| &**speed != "standard"),
            output_config: anthropic.output_config.values().map(Json::hash).collect(),
            citations: *citations,
            tool_choice: tool_choice.as_ref().map(|choice| choice.as_str().into()),
            parallel_tools_off: *parallel_tools == Some(false),
            cache_key: other.get("prompt_cache_key").map(|key| key.as_str().into()),
            output: output_settings(other).map(Into::into),
            ..sent.settings
        };
        sent.explicit_only = *explicit_only;
        if let Some(lifetime) = automatic_cache {
            sent.mark_last(*lifetime);
        }
        if thinking_cache == ThinkingCacheScope::Everything {
            rules.thinking = cache::Section::Tools;
        }
        (rules, sent)
    }
}

/// The fields that shape the answer, as far as OpenAI's cache depends on them.
fn output_settings(fields: &BTreeMap<String, Json>) -> Option<String> {
    let given =
        ["text", "verbosity", "response_format", "service_tier"].iter().filter_map(|name| fields.get(*name));
    Some(given.map(Json::as_str).collect::<Vec<_>>().join(" ")).filter(|given| !given.is_empty())
}
