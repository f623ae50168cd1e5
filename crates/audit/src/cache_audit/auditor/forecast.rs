//! [`CacheForecast`]: what a request is predicted to find in the cache.

use super::Auditor;
use crate::cache_audit::RequestTrigger;
use crate::cache_audit::frontiers::{CacheKey, node};
use crate::cache_audit::provider_model::CacheReporting;
use crate::{BilledRequest, EntryContent, SourceAgent, Speaker};

/// What a request is predicted to find in the cache, before its bill is looked at.
pub(super) struct CacheForecast {
    pub key: CacheKey,
    pub node: usize,
    pub trigger: RequestTrigger,
    /// The tokens that the previous request left to read.
    pub expected: u64,
    /// The tokens that it will read.
    pub read: u64,
}

/// Whose thinking levels are compared.
#[derive(Clone, Copy)]
enum LevelName {
    /// The agent's own levels.
    Agent,
    /// The provider's levels: several of the agent's may be sent as one.
    Provider,
}

impl Auditor<'_> {
    /// Predicts what a request finds in the cache, from what is known before its bill.
    pub(super) fn forecast_request(&mut self, request: &BilledRequest, model: usize) -> CacheForecast {
        let node = node(request.leaf);
        let key = CacheKey {
            model,
            compactions: self.nodes.compactions[node],
            images: self.models[model].has_markers() && self.nodes.images[node],
            thinking: self.level_number(request, model, LevelName::Provider),
            level: self.level_number(request, model, LevelName::Agent),
        };
        let (prompt, at) = (request.usage.prompt(), request.started);
        let trigger = self.trigger_of(request);
        let model = &self.models[model];
        let last =
            self.recorded.nearest_frontier(node).filter(|_| model.reporting != CacheReporting::Nothing);
        // If the last request left nothing, its whole prompt is paid again.
        let expected =
            last.map_or(0, |last| if last.tokens == 0 { last.prompt } else { last.tokens }).min(prompt);
        // A summary is new text: paying for it is not a loss.
        let is_compacted = last.is_some_and(|last| last.key.compactions != key.compactions);
        let expected = expected.saturating_sub(if is_compacted { self.nodes.summary[node] } else { 0 });
        let readable = self.recorded.readable(node, &key, at, model.longest_idle_hit_ms);
        let cacheable =
            prompt - if model.reporting == CacheReporting::ReadsAndWrites { request.usage.input } else { 0 };
        let read = match readable {
            // An agent that only adds never sends a smaller request, so the beginning must have changed.
            Some(found)
                if found.tokens > prompt
                    && trigger == RequestTrigger::Person
                    && self.only_adds(node)
                    && model.has_markers() =>
            {
                0
            }
            Some(found) => found.tokens.min(cacheable),
            // Settings and compactions leave tools and system prompt cached.
            None => match last {
                Some(last)
                    if last.key.model == key.model
                        && last.is_warm(at, model.longest_idle_hit_ms)
                        && self.base >= model.minimum() =>
                {
                    self.base.min(cacheable)
                }
                _ => 0,
            },
        };
        CacheForecast { key, node, trigger, expected, read }
    }

    /// Whether the agent seems to send the conversation unchanged, only with more at the end.
    /// Hardpan does not: its layouts fold.
    fn only_adds(&self, node: usize) -> bool {
        self.adds_only && !self.nodes.reasoning[node] && self.recording.agent != SourceAgent::Hardpan
    }

    /// The forecast of a standalone request, which has nothing to find: what it reads is taken from
    /// its bill.
    pub(super) fn forecast_standalone(&self, request: &BilledRequest, model: usize) -> CacheForecast {
        let key = CacheKey { model, compactions: 0, images: false, thinking: None, level: None };
        CacheForecast {
            key,
            node: 0,
            trigger: RequestTrigger::Person,
            expected: 0,
            read: request.usage.cache_read,
        }
    }

    /// The number of a request's thinking level. `None` where it does not matter or is not
    /// recorded.
    fn level_number(&mut self, request: &BilledRequest, model: usize, level: LevelName) -> Option<usize> {
        let name: &str = request.thinking.as_ref()?;
        if !self.models[model].has_markers() || !self.models[model].can_think() {
            return None;
        }
        // Agents have more levels than most models; the outermost are sent as their neighbours.
        let name = match (level, name) {
            (LevelName::Provider, "xhigh") => "high",
            (LevelName::Provider, "minimal") => "low",
            (_, name) => name,
        };
        let known = self.levels.iter().position(|known| **known == *name);
        Some(known.unwrap_or_else(|| {
            self.levels.push(name.into());
            self.levels.len() - 1
        }))
    }

    fn trigger_of(&self, request: &BilledRequest) -> RequestTrigger {
        let content = request.leaf.map(|leaf| &self.recording.entries[leaf].content);
        match content {
            Some(EntryContent::Message { speaker: Speaker::Tool, .. }) => RequestTrigger::Tools,
            _ => RequestTrigger::Person,
        }
    }
}
