//! From a request to its answer: no network, no waiting, and the time is an argument.

mod asked; // Asked: a request that may be answered
mod check; // what a server refuses beyond the validator's rules
mod limits; // Limits: requests and tokens in a minute
mod listing; // the lists of models
mod route; // which request it is, and who sends it

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hardpan_economy::CacheModel;
use hardpan_economy::cache::Moment;
use hardpan_models::{Catalogue, Model, Protocol, Wire};
use hardpan_prompt::validate::{Violation, check_size, check_window};
use hardpan_prompt::{Counter, Hash, Vocabulary};
use hardpan_providers::decode::{Decoded, decode, decode_count};

pub use limits::Limits;
pub use route::{Keys, Request};

use crate::assistant;
use crate::choice::Choice;
use crate::faults::{Faults, Struck};
use crate::refusal::Refusal;
use crate::reply::{Body, Kept, Reply};
use crate::said::{Said, SaidPart, Stop};
use crate::script::{Progress, Script};
use crate::wire::{self, Head, UsageChunk};
use asked::Asked;
use limits::Meter;
use route::Route;

/// The most organisations whose caches are remembered.
const MOST_CACHES: usize = 256;

/// Whether reasoning that comes back must bear the signature that the simulator gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signatures {
    /// As the real server does.
    #[default]
    Checked,
    /// Any will do: for conversations that another provider has begun.
    Unchecked,
}

/// How a simulator behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The models it offers.
    pub catalogue: Catalogue,
    /// What it answers. `None`: the built-in assistant does.
    pub script: Option<Script>,
    /// What goes wrong.
    pub faults: Faults,
    /// Whose requests it takes.
    pub keys: Keys,
    /// What it allows in a minute.
    pub limits: Limits,
    /// Whether signatures are checked.
    pub signatures: Signatures,
    /// The provider that Chat Completions stand for where a model's name names none.
    pub openai_provider: String,
    /// The time between two pieces of the built-in assistant's answers.
    pub pace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            catalogue: Catalogue::builtin().clone(),
            script: None,
            faults: Faults::default(),
            keys: Keys::default(),
            limits: Limits::default(),
            signatures: Signatures::default(),
            openai_provider: "openai".into(),
            pace: Duration::ZERO,
        }
    }
}

/// A simulated provider. Shared by reference between threads.
pub struct Engine {
    settings: Settings,
    counters: [OnceLock<Counter>; 2],
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    requests: u64,
    faults: Faults,
    progress: Progress,
    meter: Meter,
    /// By organisation: each key is one, at each provider.
    caches: BTreeMap<Hash, CacheModel>,
}

impl Engine {
    /// A simulator that has seen nothing yet.
    pub fn new(mut settings: Settings) -> Self {
        let mut faults = std::mem::take(&mut settings.faults);
        if let Some(script) = &mut settings.script {
            faults.extend(std::mem::take(&mut script.faults));
        }
        Engine {
            settings,
            counters: Default::default(),
            state: Mutex::new(State { faults, ..State::default() }),
        }
    }

    /// The answer to a request that came at `now`. The caches keep it only after [`begin`](Self::begin).
    pub fn answer(&self, request: &Request<'_>, now: Moment) -> Reply {
        let number = {
            let mut state = self.state();
            state.requests += 1;
            state.requests
        };
        let protocol = request.protocol();
        let request_id = wire::id("req_", number, 0);
        let mut delay = Duration::ZERO;
        let mut reply = match self.reply(request, (number, &request_id), now, &mut delay) {
            Ok(reply) => reply,
            Err(refusal) => {
                let mut headers = vec![("content-type", "application/json".to_owned())];
                headers.extend(refusal.retry_after.map(|seconds| ("retry-after", seconds.to_string())));
                let body = Body::Whole(refusal.body(protocol, &request_id).to_string().into());
                Reply { status: refusal.status, headers, delay: Duration::ZERO, body, kept: None }
            }
        };
        reply.delay += delay;
        let state = self.state();
        reply.headers.extend(state.meter.headers(protocol, &self.settings.limits, now));
        match protocol {
            Protocol::Anthropic => {
                reply.headers.push(("request-id", request_id));
                reply.headers.push(("anthropic-organization-id", "simulated".into()));
            }
            Protocol::Openai => {
                reply.headers.push(("x-request-id", request_id));
                reply.headers.push(("openai-version", "2020-10-01".into()));
            }
        }
        if reply.header(SIMULATED).is_none() {
            reply.headers.push((SIMULATED, "true".into()));
        }
        reply
    }

    /// To be called when the head of an answer is sent: from then on what its request wrote can be read.
    pub fn begin(&self, reply: &mut Reply, now: Moment) {
        let Some(kept) = reply.kept.take() else { return };
        let mut state = self.state();
        if state.caches.len() >= MOST_CACHES && !state.caches.contains_key(&kept.organisation) {
            state.caches.pop_first();
        }
        state.caches.entry(kept.organisation).or_default().commit(&kept.rules, &kept.request, now);
    }

    /// Empties every cache, as a provider may at any time.
    pub fn evict(&self) {
        self.state().caches.clear();
    }

    /// `delay` is set to what a fault orders, whether the request is answered or refused.
    fn reply(
        &self,
        request: &Request<'_>,
        names: (u64, &str),
        now: Moment,
        delay: &mut Duration,
    ) -> Result<Reply, Refusal> {
        let route = request.route()?;
        let protocol = request.protocol();
        check_size(request.body.len()).map_err(|violation| Refusal::of_violation(protocol, &violation))?;
        let key = self.settings.keys.check(protocol, request)?;
        match route {
            Route::Models(id) => {
                let id = id.as_deref();
                Ok(whole(listing::models(&self.settings, protocol, id)?.to_string().into()))
            }
            Route::Count => {
                let decoded = decode_count(request.body).map_err(|error| Refusal::of_decoding(&error))?;
                let asked = self.admit(protocol, decoded, key)?;
                let count = serde_json::json!({"input_tokens": asked.measured.total()});
                let mut reply = whole(count.to_string().into());
                reply.headers.push(simulated(&asked.model));
                Ok(reply)
            }
            Route::Answer => {
                let struck = self.state().faults.draw();
                *delay = struck.delay();
                match struck.status() {
                    Some((status, retry_after)) => Err(Refusal::on_order(status, retry_after)),
                    None => self.generate(request, key, &struck, names, now),
                }
            }
        }
    }

    fn generate(
        &self,
        request: &Request<'_>,
        key: Option<&str>,
        struck: &Struck,
        (number, request_id): (u64, &str),
        now: Moment,
    ) -> Result<Reply, Refusal> {
        let protocol = request.protocol();
        let decoded = decode(protocol, request.body).map_err(|error| Refusal::of_decoding(&error))?;
        check::fields(protocol, request.body, &decoded, &self.settings)?;
        let asked = self.admit(protocol, decoded, key)?;
        self.state().meter.take(&self.settings.limits, asked.measured.total(), now)?;
        let (rules, sent) = asked.for_cache(now);
        let billing = {
            let state = self.state();
            let empty = CacheModel::new();
            state.caches.get(&asked.organisation).unwrap_or(&empty).plan(&rules, &sent)
        };
        let said = self.say(&asked, struck)?;
        let counter = self.counter(&asked.model);
        let head = Head {
            number,
            model: asked.decoded.prompt.model.to_string(),
            created: now.0.div_euclid(1000),
            billed: billing.amounts,
            spoken: said.spoken(counter),
            reasoning: asked.wire.reasoning_field,
            usage: asked.usage_form(),
        };
        self.state().meter.spoke(head.spoken.output);
        let error = Refusal::on_order(if protocol == Protocol::Anthropic { 529 } else { 500 }, None);
        let error = error.body(protocol, request_id);
        let usage = if asked.decoded.include_usage || !asked.wire.stream_usage {
            UsageChunk::Sent
        } else {
            UsageChunk::Omitted
        };
        let (content_type, body) = if asked.decoded.stream {
            let events = wire::stream(protocol, &said, &head, usage);
            ("text/event-stream; charset=utf-8", struck.stream(protocol, events, said.pace, &error))
        } else {
            ("application/json", struck.whole(wire::whole(protocol, &said, &head), &error))
        };
        let headers = vec![("content-type", content_type.to_owned()), simulated(&asked.model)];
        let kept = Some(Box::new(Kept { organisation: asked.organisation, rules, request: sent }));
        Ok(Reply { status: 200, headers, delay: said.delay, body, kept })
    }

    /// Checks a request by all rules of its server and model.
    fn admit(&self, protocol: Protocol, decoded: Decoded, key: Option<&str>) -> Result<Asked, Refusal> {
        let (model, wire) = self.settings.model(protocol, &decoded.prompt.model).ok_or_else(|| {
            let name = &decoded.prompt.model;
            match protocol {
                Protocol::Anthropic => Refusal::new(404, format!("model: {name}")),
                Protocol::Openai => Refusal::new(
                    404,
                    format!("The model `{name}` does not exist or you do not have access to it."),
                )
                .with_code("model_not_found"),
            }
        })?;
        let choice = Choice::of(&decoded);
        check::request(protocol, &decoded, &model, &wire, &choice, &self.settings)?;
        let measured = self.counter(&model).measure(&decoded.prompt);
        let refuse = |violation: Violation| Refusal::of_violation(protocol, &violation);
        check_window(measured.total(), model.context as usize).map_err(refuse)?;
        let organisation =
            Hash::chain([Hash::of(model.provider.as_bytes()), Hash::of(key.unwrap_or_default().as_bytes())]);
        Ok(Asked { protocol, decoded, model, wire, choice, measured, organisation })
    }

    /// What the model says, within the request's limits.
    fn say(&self, asked: &Asked, struck: &Struck) -> Result<Said, Refusal> {
        let prompt = &asked.decoded.prompt;
        if prompt.max_tokens == 0 {
            return Ok(Said { stop: Stop::Length, ..Said::new(Vec::new()) });
        }
        let mut said = match &self.settings.script {
            Some(script) => {
                let mut state = self.state();
                script.answer(prompt, &mut state.progress, struck.ruins()).ok_or_else(|| {
                    Refusal::new(500, "the script has no turn left for this request: add one, or a default")
                })?
            }
            None => self.assist(asked),
        };
        if !asked.thinks() {
            said.parts.retain(|part| !matches!(part, SaidPart::Reasoning(_)));
        }
        said.stop_at(&asked.decoded.stop_sequences);
        let room = (asked.model.context as usize).saturating_sub(asked.measured.total());
        let most = prompt.max_tokens.min(asked.model.max_output) as usize;
        let (most, why) = if room < most { (room, Stop::Window) } else { (most, Stop::Length) };
        said.limit(most, &why, self.counter(&asked.model));
        Ok(said)
    }

    /// The built-in assistant's answer: of several calls only the first where the request wants no more.
    fn assist(&self, asked: &Asked) -> Said {
        let mut said = assistant::answer(&asked.decoded.prompt, &asked.choice);
        if asked.decoded.parallel_tools == Some(false) {
            let mut calls = 0;
            said.parts.retain(|part| {
                calls += usize::from(matches!(part, SaidPart::Call { .. }));
                calls <= 1
            });
        }
        Said { pace: self.settings.pace, ..said }
    }

    fn counter(&self, model: &Model) -> &Counter {
        let vocabulary = vocabulary(model);
        let index = usize::from(vocabulary == Vocabulary::Cl100k);
        self.counters[index].get_or_init(|| Counter::new(vocabulary))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Counters and caches are right after every step, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Settings {
    /// A model that speaks the protocol: of the usual provider, or of the one that its name begins with.
    fn model(&self, protocol: Protocol, id: &str) -> Option<(Model, Wire)> {
        let model = self
            .catalogue
            .model(Some(self.provider(protocol)), id)
            .or_else(|_| self.catalogue.model(None, id))
            .ok()?;
        let wire = self.catalogue.provider(&model.provider).ok()?.for_model(&model);
        Some((model, wire)).filter(|(_, wire)| wire.protocol == protocol)
    }

    fn provider(&self, protocol: Protocol) -> &str {
        match protocol {
            Protocol::Anthropic => "anthropic",
            Protocol::Openai => &self.openai_provider,
        }
    }
}

fn vocabulary(model: &Model) -> Vocabulary {
    match model.vocabulary {
        Some(hardpan_models::Vocabulary::Cl100k) => Vocabulary::Cl100k,
        Some(hardpan_models::Vocabulary::O200k) | None => Vocabulary::O200k,
    }
}

/// The header that says where the figures come from.
const SIMULATED: &str = "x-hardpan-simulated";

fn simulated(model: &Model) -> (&'static str, String) {
    (SIMULATED, format!("tokens counted with {}", vocabulary(model)))
}

fn whole(body: Bytes) -> Reply {
    let headers = vec![("content-type", "application/json".to_owned())];
    Reply { status: 200, headers, delay: Duration::ZERO, body: Body::Whole(body), kept: None }
}
