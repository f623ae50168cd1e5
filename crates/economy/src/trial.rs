//! For tests: a conversation laid out as `strata` does it, and a provider that caches and bills by this crate's own model.

use std::sync::Arc;

use hardpan_models::{CacheKind, Catalogue, Model, Wire};
use hardpan_prompt::{
    Block, Call, Content, Copy, Counter, Factor, Held, Json, Kind, Lifetime, Measured, Origin, Outcome,
    Place, Prompt, ResultPart, Role, Segment, Source, Text, Thinking, Tool, ToolBlock, ToolResult, Turn,
    Vocabulary,
};

use crate::cache::{CacheModel, Moment, Request, Rules, Salts};
use crate::ledger::{Answered, Purpose, Start, Tokens};
use crate::verdict::{Verdict, Watch};

/// A text of about so many tokens that no other has.
pub fn long(name: &str, tokens: usize) -> String {
    format!("{name}:{}", " word".repeat(tokens))
}

pub fn item(key: &str, text: &str) -> Segment {
    Segment::new(text, Origin::item(Kind::File, &Arc::from(key), Copy::Current))
}

pub fn said(id: &str, text: &str) -> Block {
    Block::text(Place::Log, Text::new(text), Origin::message(&id.into()))
}

fn tool(name: &str) -> ToolBlock {
    let tool = Tool {
        name: name.into(),
        description: long(name, 100).into(),
        parameters: Json::default(),
        snippet: None,
        guidelines: Vec::new(),
    };
    ToolBlock { place: Place::Base, tool, breakpoint: None }
}

/// A conversation and all that goes into its prompts.
#[derive(Clone)]
pub struct Talk {
    pub tools: Vec<ToolBlock>,
    pub system: Vec<Segment>,
    pub base: Vec<Segment>,
    pub base_place: Place,
    pub log: Vec<Turn>,
    pub tail: String,
    pub thinking: Thinking,
    pub lifetime: Lifetime,
    /// The last block that was marked in the request before.
    pub frontier: Option<usize>,
    /// Whether the frontier of the request before is marked again.
    pub marks_frontier: bool,
}

impl Talk {
    pub fn new() -> Self {
        let rule = |name, text: &str| Segment::new(text, Origin::rule(Kind::System, name));
        Talk {
            tools: ["read", "write", "bash"].map(tool).to_vec(),
            system: vec![rule("agent", &long("agent", 1200)), rule("project files", &long("project", 800))],
            base: vec![item("file:a.rs", &long("a", 2000)), item("file:b.rs", &long("b", 3000))],
            base_place: Place::Base,
            log: Vec::new(),
            tail: "It is 10:00.".into(),
            thinking: Thinking::Off,
            lifetime: Lifetime::FiveMinutes,
            frontier: None,
            marks_frontier: true,
        }
    }

    pub fn user(&mut self, id: &str, text: &str) -> &mut Self {
        self.log.push(Turn::new(Role::User, vec![said(id, text)]));
        self
    }

    pub fn assistant(&mut self, id: &str, text: &str) -> &mut Self {
        self.log.push(Turn::new(Role::Assistant, vec![said(id, text)]));
        self
    }

    /// So many calls at once, and their results.
    pub fn tool_round(&mut self, id: &str, calls: usize) -> &mut Self {
        let origin = Origin::message(&id.into());
        let name = |number: usize| Arc::from(format!("{id}_{number}"));
        let call = |number| {
            let arguments = Json::default();
            let call = Call { id: name(number), name: "read".into(), arguments, origin: origin.clone() };
            Block::new(Place::Log, Content::Call(call))
        };
        let result = |number| {
            let text = Segment::new(long(&format!("{id} result {number}"), 30), origin.clone());
            let parts = vec![ResultPart::Text(vec![text])];
            let outcome = Outcome::Done;
            let result = ToolResult { call_id: name(number), parts, outcome, origin: origin.clone() };
            Block::new(Place::Log, Content::Result(result))
        };
        self.log.push(Turn::new(Role::Assistant, (0..calls).map(call).collect()));
        self.log.push(Turn::new(Role::User, (0..calls).map(result).collect()));
        self
    }

    /// The next request: markers at the end of the system prompt, at the end of BASE, at the frontier of the request before
    /// and at the new one.
    pub fn prompt(&mut self, model: &str) -> Prompt {
        let base_call = |kind| Origin::rule(kind, "base group");
        let mut turns = Vec::new();
        if !self.base.is_empty() {
            let (id, origin) = (Arc::<str>::from("context_calm"), base_call(Kind::Panel));
            let call = Call {
                id: id.clone(),
                name: "context".into(),
                arguments: Json::default(),
                origin: origin.clone(),
            };
            let parts = vec![ResultPart::Text(self.base.clone())];
            let result = ToolResult { call_id: id, parts, outcome: Outcome::Done, origin: origin.clone() };
            let reply = Block::text(self.base_place, Text::new("Read."), origin);
            turns.push(Turn::new(Role::Assistant, vec![Block::new(self.base_place, Content::Call(call))]));
            turns.push(Turn::new(Role::User, vec![Block::new(self.base_place, Content::Result(result))]));
            turns.push(Turn::new(Role::Assistant, vec![reply]));
        }
        let system = vec![Block::new(Place::Base, Content::Text(self.system.clone()))];
        let offset = self.tools.len();
        let base = offset + system.len() + turns.len() - 1;
        turns.extend(self.log.iter().cloned());
        let mut prompt = Prompt {
            model: model.into(),
            max_tokens: 1000,
            thinking: self.thinking,
            tools: self.tools.clone(),
            system,
            turns,
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
            Block::text(Place::Tail, Text::new(self.tail.as_str()), Origin::rule(Kind::Panel, "clock"));
        prompt.turns.last_mut().into_iter().for_each(|turn| turn.blocks.push(tail.clone()));
        prompt
    }
}

/// A provider with its cache, and a watch on the conversation that goes on with it.
pub struct Trial {
    pub model: Model,
    pub wire: Wire,
    pub cache: CacheModel,
    pub watch: Watch,
    pub now: i64,
    pub settings: Salts,
    pub start: Start,
    pub purpose: Purpose,
    /// The provider's tokens for one of ours.
    pub factor: Factor,
    counter: Counter,
    /// What the last prompt held.
    held: Vec<Held>,
}

impl Trial {
    pub fn new(provider: &str, model: &str) -> Self {
        let (model, wire) = known(provider, model);
        Trial {
            model,
            wire,
            cache: CacheModel::new(),
            watch: Watch::new(),
            now: 1_700_000_000_000,
            settings: Salts::default(),
            start: Start::Continued,
            purpose: Purpose::Turn,
            factor: Factor::new(1.0),
            counter: Counter::new(Vocabulary::O200k),
            held: Vec::new(),
        }
    }

    pub fn anthropic() -> Self {
        Trial::new("anthropic", "claude-sonnet-5")
    }

    pub fn switch(&mut self, provider: &str, model: &str) {
        (self.model, self.wire) = known(provider, model);
        self.cache = CacheModel::new();
    }

    pub fn wait(&mut self, seconds: i64) {
        self.now += seconds * 1000;
    }

    /// Sends what the provider then bills, as it would report it.
    pub fn bill(&mut self, prompt: &Prompt) -> (Measured, Tokens) {
        let measured = self.counter.measure(prompt);
        let rules = Rules::of(&self.model, &self.wire);
        let mut prompt = prompt.clone();
        if rules.cache.kind != CacheKind::Markers {
            prompt.blocks_mut().for_each(|block| block.breakpoint = None);
        }
        let mut request =
            Request::from_prompt(&prompt, &measured.clone().scaled(&self.factor), Moment(self.now));
        request.salts = Salts {
            web_search: request.salts.web_search,
            images: request.salts.images,
            thinking: request.salts.thinking,
            ..self.settings.clone()
        };
        let billing = self.cache.send(&rules, &request, Moment(self.now + 800));
        let mut used = Tokens::from(billing.amounts);
        if rules.cache.kind != CacheKind::Markers {
            used.input += std::mem::take(&mut used.write); // such providers report no writes
        }
        used.output = 100;
        (measured, used)
    }

    /// Sends a request and examines it: as in a session, and as in one that was just resumed and has nothing to take over. Both
    /// must say the same.
    pub fn send(&mut self, prompt: &Prompt) -> Verdict {
        let mut prompt = prompt.clone();
        prompt.share(&mut self.held);
        let (measured, used) = self.bill(&prompt);
        let mut watch = std::mem::take(&mut self.watch);
        let written = serde_json::to_string(&watch).unwrap();
        let mut resumed: Watch = serde_json::from_str(&written).unwrap();
        let answered = self.answered(&prompt, &measured, Some(used));
        let verdict = watch.examine(&answered);
        assert_eq!(resumed.examine(&answered), verdict);
        assert_eq!(resumed, watch);
        self.watch = watch;
        verdict
    }

    /// The watch after the same request, had our count been scaled otherwise.
    pub fn scaled(&mut self, talk: &mut Talk, factor: f64) -> Watch {
        let prompt = talk.prompt(&self.model.id);
        let measured = self.counter.measure(&prompt).scaled(&Factor::new(factor));
        let (_, used) = self.bill(&prompt);
        let mut watch = self.watch.clone();
        watch.examine(&self.answered(&prompt, &measured, Some(used)));
        watch
    }

    pub fn answered<'a>(
        &'a self,
        prompt: &'a Prompt,
        measured: &'a Measured,
        used: Option<Tokens>,
    ) -> Answered<'a> {
        Answered {
            prompt,
            measured,
            model: &self.model,
            wire: &self.wire,
            settings: self.settings.clone(),
            used,
            sent: Moment(self.now),
            began: Moment(self.now + 800),
            day: "2026-08-14",
            purpose: self.purpose,
            start: self.start,
        }
    }

    /// Sends the talk's next request after a minute, or so.
    pub fn next(&mut self, talk: &mut Talk) -> Verdict {
        self.wait(60);
        let model = self.model.id.clone();
        let prompt = talk.prompt(&model);
        self.send(&prompt)
    }
}

pub fn known(provider: &str, model: &str) -> (Model, Wire) {
    let catalogue = Catalogue::builtin();
    let model = catalogue.model(Some(provider), model).unwrap();
    let wire = catalogue.provider(provider).unwrap().for_model(&model);
    (model, wire)
}

pub fn is_from(segment: &Segment, key: &str) -> bool {
    matches!(&segment.origin.source, Source::Item { key: found, .. } if **found == *key)
}
