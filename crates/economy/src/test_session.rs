//! Test support: a conversation laid out as `strata` does it, and a provider that caches and bills
//! by this crate's own model.

use std::sync::Arc;

use hardpan_models::{CacheKind, Catalogue, Model, ProviderProfile};
use hardpan_prompt::{
    Block, CacheLifetime, Call, Content, ItemCopy, ItemKind, Json, Origin, Prompt, PromptMessage,
    PromptTokens, Region, ResultPart, Role, Segment, SharedContent, Source, Text, Thinking, TokenCounter,
    TokenFactor, TokenUsage, Tool, ToolBlock, ToolOutcome, ToolResult, Vocabulary,
};

use crate::cache::{CacheModel, CacheRequest, CacheRules, CacheSettings, Moment};
use crate::ledger::{CompletedRequest, Continuity, RequestPurpose};
use crate::verdict::{CacheMonitor, Verdict};

/// A text of about this many tokens that starts with a name of its own.
pub fn long_text(name: &str, tokens: usize) -> String {
    format!("{name}:{}", " word".repeat(tokens))
}

pub fn item(key: &str, text: &str) -> Segment {
    Segment::new(text, Origin::item(ItemKind::File, &Arc::from(key), ItemCopy::Current))
}

pub fn message_block(id: &str, text: &str) -> Block {
    Block::text(Region::Log, Text::new(text), Origin::message(&id.into()))
}

fn tool(name: &str) -> ToolBlock {
    let tool = Tool {
        name: name.into(),
        description: long_text(name, 100).into(),
        parameters: Json::default(),
        snippet: None,
        guidelines: Vec::new(),
    };
    ToolBlock { region: Region::Base, tool, breakpoint: None }
}

/// A conversation and everything that goes into its prompts.
#[derive(Clone)]
pub struct TestConversation {
    pub tools: Vec<ToolBlock>,
    pub system: Vec<Segment>,
    pub base: Vec<Segment>,
    pub base_place: Region,
    pub log: Vec<PromptMessage>,
    pub tail: String,
    pub thinking: Thinking,
    pub lifetime: CacheLifetime,
    /// The last block that was marked in the previous request.
    pub frontier: Option<usize>,
    /// Whether the previous request's frontier is marked again.
    pub marks_frontier: bool,
}

impl TestConversation {
    pub fn new() -> Self {
        let rule = |name, text: &str| Segment::new(text, Origin::rule(ItemKind::System, name));
        TestConversation {
            tools: ["read", "write", "bash"].map(tool).to_vec(),
            system: vec![
                rule("agent", &long_text("agent", 1200)),
                rule("project files", &long_text("project", 800)),
            ],
            base: vec![item("file:a.rs", &long_text("a", 2000)), item("file:b.rs", &long_text("b", 3000))],
            base_place: Region::Base,
            log: Vec::new(),
            tail: "It is 10:00.".into(),
            thinking: Thinking::Unspecified,
            lifetime: CacheLifetime::FiveMinutes,
            frontier: None,
            marks_frontier: true,
        }
    }

    pub fn user(&mut self, id: &str, text: &str) -> &mut Self {
        self.log.push(PromptMessage::new(Role::User, vec![message_block(id, text)]));
        self
    }

    pub fn assistant(&mut self, id: &str, text: &str) -> &mut Self {
        self.log.push(PromptMessage::new(Role::Assistant, vec![message_block(id, text)]));
        self
    }

    /// Adds a message with this many calls, and one with their results.
    pub fn tool_round(&mut self, id: &str, calls: usize) -> &mut Self {
        let origin = Origin::message(&id.into());
        let name = |number: usize| Arc::from(format!("{id}_{number}"));
        let call = |number| {
            let arguments = Json::default();
            let call = Call { id: name(number), name: "read".into(), arguments, origin: origin.clone() };
            Block::new(Region::Log, Content::Call(call))
        };
        let result = |number| {
            let text = Segment::new(long_text(&format!("{id} result {number}"), 30), origin.clone());
            let parts = vec![ResultPart::Text(vec![text])];
            let outcome = ToolOutcome::Done;
            let result = ToolResult { call_id: name(number), parts, outcome, origin: origin.clone() };
            Block::new(Region::Log, Content::Result(result))
        };
        self.log.push(PromptMessage::new(Role::Assistant, (0..calls).map(call).collect()));
        self.log.push(PromptMessage::new(Role::User, (0..calls).map(result).collect()));
        self
    }

    /// Builds the next request, with markers at the end of the system prompt, at the end of BASE,
    /// at the previous frontier and at the new one.
    pub fn prompt(&mut self, model: &str) -> Prompt {
        let base_call = |kind| Origin::rule(kind, "base group");
        let mut messages = Vec::new();
        if !self.base.is_empty() {
            let (id, origin) = (Arc::<str>::from("context_calm"), base_call(ItemKind::Panel));
            let call = Call {
                id: id.clone(),
                name: "context".into(),
                arguments: Json::default(),
                origin: origin.clone(),
            };
            let parts = vec![ResultPart::Text(self.base.clone())];
            let result =
                ToolResult { call_id: id, parts, outcome: ToolOutcome::Done, origin: origin.clone() };
            let reply = Block::text(self.base_place, Text::new("Read."), origin);
            messages.push(PromptMessage::new(
                Role::Assistant,
                vec![Block::new(self.base_place, Content::Call(call))],
            ));
            messages.push(PromptMessage::new(
                Role::User,
                vec![Block::new(self.base_place, Content::Result(result))],
            ));
            messages.push(PromptMessage::new(Role::Assistant, vec![reply]));
        }
        let system = vec![Block::new(Region::Base, Content::Text(self.system.clone()))];
        let offset = self.tools.len();
        let base = offset + system.len() + messages.len() - 1;
        messages.extend(self.log.iter().cloned());
        let mut prompt = Prompt {
            model: model.into(),
            max_tokens: 1000,
            thinking: self.thinking,
            tools: self.tools.clone(),
            system,
            messages,
            ..Prompt::default()
        };
        let last = prompt.block_count() - 1;
        let frontier = self.frontier.replace(last).filter(|_| self.marks_frontier);
        for mark in [Some(offset), Some(base), frontier, Some(last)].into_iter().flatten() {
            if let Some(block) = prompt.blocks_mut().nth(mark - offset) {
                block.breakpoint = Some(self.lifetime);
            }
        }
        let tail =
            Block::text(Region::Tail, Text::new(self.tail.as_str()), Origin::rule(ItemKind::Panel, "clock"));
        prompt.messages.last_mut().into_iter().for_each(|message| message.blocks.push(tail.clone()));
        prompt
    }
}

/// A provider with its cache, and a monitor that follows the conversation.
pub struct TestSession {
    pub model: Model,
    pub profile: ProviderProfile,
    pub cache: CacheModel,
    pub monitor: CacheMonitor,
    pub now: i64,
    pub settings: CacheSettings,
    pub continuity: Continuity,
    pub purpose: RequestPurpose,
    /// The provider's tokens per token of ours.
    pub factor: TokenFactor,
    counter: TokenCounter,
    /// The contents of the last prompt.
    last_contents: Vec<SharedContent>,
}

impl TestSession {
    pub fn new(provider: &str, model: &str) -> Self {
        let (model, profile) = catalogue_entry(provider, model);
        TestSession {
            model,
            profile,
            cache: CacheModel::new(),
            monitor: CacheMonitor::new(),
            now: 1_700_000_000_000,
            settings: CacheSettings::default(),
            continuity: Continuity::Continued,
            purpose: RequestPurpose::Turn,
            factor: TokenFactor::new(1.0),
            counter: TokenCounter::new(Vocabulary::O200k),
            last_contents: Vec::new(),
        }
    }

    pub fn anthropic() -> Self {
        TestSession::new("anthropic", "claude-sonnet-5")
    }

    pub fn switch(&mut self, provider: &str, model: &str) {
        (self.model, self.profile) = catalogue_entry(provider, model);
        self.cache = CacheModel::new();
    }

    pub fn wait(&mut self, seconds: i64) {
        self.now += seconds * 1000;
    }

    /// Sends a request, and returns what the provider reports for it.
    pub fn bill(&mut self, prompt: &Prompt) -> (PromptTokens, TokenUsage) {
        let measured = self.counter.measure(prompt);
        let rules = CacheRules::for_model(&self.model, &self.profile);
        let mut prompt = prompt.clone();
        if rules.cache.kind != CacheKind::Markers {
            prompt.blocks_mut().for_each(|block| block.breakpoint = None);
        }
        let mut request =
            CacheRequest::from_prompt(&prompt, &measured.clone().scaled(&self.factor), Moment(self.now));
        request.settings = CacheSettings {
            web_search: request.settings.web_search,
            images: request.settings.images,
            thinking: request.settings.thinking,
            ..self.settings.clone()
        };
        let billing = self.cache.send(&rules, &request, Moment(self.now + 800));
        let mut used = billing.amounts;
        if rules.cache.kind != CacheKind::Markers {
            used.input += std::mem::take(&mut used.cache_write_5m); // such providers report no writes
        }
        used.output = 100;
        (measured, used)
    }

    /// Sends a request and examines it twice: as in a running session, and as in one that was just
    /// resumed and has nothing to reuse. Both verdicts must agree.
    pub fn send(&mut self, prompt: &Prompt) -> Verdict {
        let mut prompt = prompt.clone();
        prompt.share_unchanged_content(&mut self.last_contents);
        let (measured, used) = self.bill(&prompt);
        let mut monitor = std::mem::take(&mut self.monitor);
        let written = serde_json::to_string(&monitor).unwrap();
        let mut resumed: CacheMonitor = serde_json::from_str(&written).unwrap();
        let request = self.completed_request(&prompt, &measured, Some(used));
        let verdict = monitor.examine(&request);
        assert_eq!(resumed.examine(&request), verdict);
        assert_eq!(resumed, monitor);
        self.monitor = monitor;
        verdict
    }

    /// The monitor after the same request, if our count had been scaled differently.
    pub fn scaled(&mut self, conversation: &mut TestConversation, factor: f64) -> CacheMonitor {
        let prompt = conversation.prompt(&self.model.id);
        let measured = self.counter.measure(&prompt).scaled(&TokenFactor::new(factor));
        let (_, used) = self.bill(&prompt);
        let mut monitor = self.monitor.clone();
        monitor.examine(&self.completed_request(&prompt, &measured, Some(used)));
        monitor
    }

    pub fn completed_request<'a>(
        &'a self,
        prompt: &'a Prompt,
        prompt_tokens: &'a PromptTokens,
        reported_usage: Option<TokenUsage>,
    ) -> CompletedRequest<'a> {
        CompletedRequest {
            prompt,
            prompt_tokens,
            model: &self.model,
            profile: &self.profile,
            settings: self.settings.clone(),
            reported_usage,
            reports_cache: true,
            diagnosis: None,
            sent_at: Moment(self.now),
            answer_began_at: Moment(self.now + 800),
            day: "2026-08-14",
            purpose: self.purpose,
            continuity: self.continuity,
        }
    }

    /// Sends the conversation's next request, a minute later.
    pub fn next(&mut self, conversation: &mut TestConversation) -> Verdict {
        self.wait(60);
        let model = self.model.id.clone();
        let prompt = conversation.prompt(&model);
        self.send(&prompt)
    }
}

pub fn catalogue_entry(provider: &str, model: &str) -> (Model, ProviderProfile) {
    let catalogue = Catalogue::builtin();
    let model = catalogue.model(Some(provider), model).unwrap();
    let profile = catalogue.provider(provider).unwrap().profile_for_model(&model);
    (model, profile)
}

pub fn is_from(segment: &Segment, key: &str) -> bool {
    matches!(&segment.origin.source, Source::Item { key: found, .. } if **found == *key)
}
