//! [`Engine`] turns a request into a reply. It uses neither network nor clock: the time is an
//! argument.

mod accepted; // AcceptedRequest: a request that passed all checks
mod check; // checks beyond the validator's rules
mod limits; // RateLimits: requests and tokens per minute
mod listing; // the `models` endpoint
mod route; // Request, KeyPolicy: endpoint and key of a request

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hardpan_economy::CacheModel;
use hardpan_economy::cache::Moment;
use hardpan_models::{Catalogue, Model, ProviderProfile};
use hardpan_prompt::validate::{Violation, check_size, check_window};
use hardpan_prompt::{Hash, TokenCounter, Vocabulary};
use hardpan_providers::codec;
use hardpan_providers::decode::{DecodedRequest, RequestKind};
use serde_json::Value;

pub(crate) use accepted::AcceptedRequest;
pub use limits::RateLimits;
pub(crate) use limits::RateStatus;
pub use route::{KeyPolicy, Request};

use crate::answer::{FinishReason, SimulatedAnswer, SimulatedPart};
use crate::anthropic::AnthropicSettings;
use crate::anthropic::diagnostics::Fingerprints;
use crate::assistant;
use crate::diagnostics_mode::DiagnosticsMode;
use crate::error_reply::ErrorReply;
use crate::faults::{ActiveFaults, Faults};
use crate::gemini::CachedContents;
use crate::reply::{Body, CacheWrite, Reply};
use crate::request_log::AnswerBill;
use crate::script::{Script, ScriptProgress};
use crate::server_codec::{Endpoint, ServerCodec, StoredPart, server_for_request};
use crate::stored::ResponseStore;
use crate::tool_choice::ToolChoice;
use crate::wire::{self, AnswerHead};
use limits::RateMeter;

/// The maximum number of organisations whose caches are kept.
const MAX_CACHES: usize = 256;

/// Whether reasoning in a prompt must have the signature that the simulator gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignatureCheck {
    /// Wrong signatures are rejected, as the real server does.
    #[default]
    Checked,
    /// Any signature is accepted, for conversations that began with another provider.
    Unchecked,
}

/// How a simulated provider behaves.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// The models that it offers, with their limits and prices.
    pub catalogue: Catalogue,
    /// The scripted answers. `None`: the built-in assistant answers.
    pub script: Option<Script>,
    /// The faults to inject, in addition to those of the script.
    pub faults: Faults,
    /// Which API keys it accepts.
    pub keys: KeyPolicy,
    /// The requests and tokens that it allows per minute.
    pub limits: RateLimits,
    /// Whether it checks the signatures of reasoning.
    pub signatures: SignatureCheck,
    /// The provider that Chat Completions requests go to if the model's name does not name one.
    pub openai_provider: String,
    /// What requests get that ask why they missed the cache.
    pub diagnostics: DiagnosticsMode,
    /// How the server of Anthropic Messages behaves where real ones differ.
    pub anthropic: AnthropicSettings,
    /// The delay between two chunks of the built-in assistant's answers.
    pub pace: Duration,
}

impl Default for EngineSettings {
    fn default() -> Self {
        EngineSettings {
            catalogue: Catalogue::builtin().clone(),
            script: None,
            faults: Faults::default(),
            keys: KeyPolicy::default(),
            limits: RateLimits::default(),
            signatures: SignatureCheck::default(),
            openai_provider: "openai".into(),
            diagnostics: DiagnosticsMode::default(),
            anthropic: AnthropicSettings::default(),
            pace: Duration::ZERO,
        }
    }
}

/// A simulated provider. Threads share it by reference.
pub struct Engine {
    settings: EngineSettings,
    counters: [OnceLock<TokenCounter>; 2],
    state: Mutex<EngineState>,
}

#[derive(Debug, Default)]
struct EngineState {
    requests: u64,
    faults: Faults,
    progress: ScriptProgress,
    meter: RateMeter,
    fingerprints: Fingerprints,
    /// By organisation: each key is its own organisation, at each provider.
    caches: BTreeMap<Hash, CacheModel>,
    cached_contents: CachedContents,
    store: ResponseStore,
}

impl Engine {
    /// A simulator with empty caches.
    pub fn new(mut settings: EngineSettings) -> Self {
        let mut faults = std::mem::take(&mut settings.faults);
        if let Some(script) = &mut settings.script {
            faults.extend(std::mem::take(&mut script.faults));
        }
        Engine {
            settings,
            counters: Default::default(),
            state: Mutex::new(EngineState { faults, ..EngineState::default() }),
        }
    }

    /// Answers a request that came at `now`. The caches keep the request only after
    /// [`commit_cache`](Self::commit_cache).
    pub fn answer(&self, request: &Request<'_>, now: Moment) -> Reply {
        let number = {
            let mut state = self.state();
            state.requests += 1;
            state.requests
        };
        let server = server_for_request(request);
        let request_id = wire::make_id("req_", number, 0);
        let mut delay = Duration::ZERO;
        let mut reply = match self.route_request(server, request, (number, &request_id), now, &mut delay) {
            Ok(reply) => reply,
            Err(refusal) => {
                let mut headers = vec![("content-type", "application/json".to_owned())];
                headers.extend(refusal.retry_after.map(|seconds| ("retry-after", seconds.to_string())));
                let body = server.wrap_error(request, server.error_body(&refusal, &request_id));
                let body = Body::Whole(body.to_string().into());
                Reply {
                    status: refusal.status,
                    headers,
                    delay: Duration::ZERO,
                    body,
                    bill: None,
                    cache_write: None,
                }
            }
        };
        reply.delay += delay;
        let state = self.state();
        reply.headers.extend(server.rate_headers(&state.meter.status(&self.settings.limits, now)));
        reply.headers.extend(server.response_headers(request_id));
        if reply.header(SIMULATED).is_none() {
            reply.headers.push((SIMULATED, "true".into()));
        }
        reply
    }

    /// Writes the request of `reply` to the cache. Call it when the response's headers are sent:
    /// from then on other requests can read the entry.
    pub fn commit_cache(&self, reply: &mut Reply, now: Moment) {
        let Some(cache_write) = reply.cache_write.take() else { return };
        let mut state = self.state();
        if state.caches.len() >= MAX_CACHES && !state.caches.contains_key(&cache_write.organisation) {
            state.caches.pop_first();
        }
        state.caches.entry(cache_write.organisation).or_default().commit(
            &cache_write.rules,
            &cache_write.request,
            now,
        );
    }

    /// Empties every cache, as a provider may at any time.
    pub fn clear_caches(&self) {
        self.state().caches.clear();
    }

    /// Answers or rejects a request. Sets `delay` to the delay that a fault injects in either case.
    fn route_request(
        &self,
        server: &dyn ServerCodec,
        request: &Request<'_>,
        names: (u64, &str),
        now: Moment,
        delay: &mut Duration,
    ) -> Result<Reply, ErrorReply> {
        let endpoint = request.endpoint(server)?;
        check_size(request.body.len()).map_err(|violation| server.refuse_violation(&violation))?;
        let key = self.settings.keys.check(server, request)?;
        match endpoint {
            Endpoint::Models(id) => {
                let id = id.as_deref();
                Ok(json_reply(listing::list_models(&self.settings, server, id)?.to_string().into()))
            }
            Endpoint::Stored(id, part) => self.stored_reply(server, request, &id, part, key),
            Endpoint::Count => {
                let decoded = self.decode(server, RequestKind::Count, request, key, now)?;
                let accepted = self.accept(server, endpoint, decoded, key, now)?;
                let mut reply = json_reply(server.count_body(&accepted).to_string().into());
                reply.headers.push(simulated_header(&accepted.model));
                Ok(reply)
            }
            Endpoint::CachedContents(id) => {
                let stored = self.store_content(server, request, id.as_deref(), key, (names.0, now))?;
                Ok(json_reply(stored.to_string().into()))
            }
            Endpoint::Answer | Endpoint::Compact => {
                let active_faults = self.state().faults.next_request();
                *delay = active_faults.delay();
                match active_faults.status() {
                    Some((status, retry_after)) => Err(ErrorReply::injected(status, retry_after)),
                    None => self.generate_reply(server, (request, endpoint), key, &active_faults, names, now),
                }
            }
        }
    }

    fn generate_reply(
        &self,
        server: &dyn ServerCodec,
        (request, endpoint): (&Request<'_>, Endpoint),
        key: Option<&str>,
        active_faults: &ActiveFaults,
        (number, request_id): (u64, &str),
        now: Moment,
    ) -> Result<Reply, ErrorReply> {
        let decoded = self.decode(server, RequestKind::Answer, request, key, now)?;
        let accepted = self.accept(server, endpoint, decoded, key, now)?;
        self.state().meter.count_request(&self.settings.limits, accepted.measured.total(), now)?;
        let (rules, sent) = accepted.cache_request(now, self.settings.anthropic.thinking_cache);
        let billing = {
            let state = self.state();
            let empty = CacheModel::new();
            state.caches.get(&accepted.organisation).unwrap_or(&empty).plan(&rules, &sent)
        };
        let amounts = accepted.stored_content_amounts().unwrap_or(billing.amounts);
        let answer = self.generate_answer(server, &accepted, active_faults)?;
        let counter = self.counter(&accepted.model);
        let mut head = AnswerHead {
            number,
            model: accepted.decoded.prompt.model.to_string(),
            created: now.0.div_euclid(1000),
            tokens: [amounts, answer.count_tokens(counter)].into_iter().sum(),
            diagnostics: {
                let fingerprints = &mut self.state().fingerprints;
                server.diagnose(&accepted, number, now, fingerprints, &self.settings)
            },
        };
        {
            let (mut state, owner) = (self.state(), owner(key));
            state.meter.count_output(head.tokens.output);
            let mode = self.settings.diagnostics;
            head.diagnostics = server.compare_caches(&accepted, &head, owner, now, &mut state.store, mode);
            server.store_answer(&accepted, &answer, &head, owner, &mut state.store);
        }
        let error = server.error_body(&ErrorReply::injected(server.overload_status(), None), request_id);
        let (content_type, body) = if accepted.decoded.stream {
            let events = server.answer_events(&accepted, &answer, &head);
            let body = active_faults.apply_to_stream(server, events, answer.pace, &error);
            (server.stream_content_type(&accepted), body)
        } else {
            let body = server.answer_body(&accepted, &answer, &head).to_string().into();
            ("application/json", active_faults.apply_to_body(body, &error))
        };
        let headers = vec![("content-type", content_type.to_owned()), simulated_header(&accepted.model)];
        let cache_write =
            Some(Box::new(CacheWrite { organisation: accepted.organisation, rules, request: sent }));
        let bill = Some(Box::new(AnswerBill::new(&accepted.model, &accepted.profile, head.tokens)));
        Ok(Reply { status: 200, headers, delay: answer.delay, body, bill, cache_write })
    }

    /// Answers a request for a stored answer.
    fn stored_reply(
        &self,
        server: &dyn ServerCodec,
        request: &Request<'_>,
        id: &str,
        part: StoredPart,
        key: Option<&str>,
    ) -> Result<Reply, ErrorReply> {
        let (mut state, owner) = (self.state(), owner(key));
        let missing = || ErrorReply::new(404, format!("Response with id '{id}' not found."));
        if request.method == "DELETE" {
            let body = serde_json::json!({"id": id, "object": "response", "deleted": true});
            return if state.store.remove(owner, id) {
                Ok(json_reply(body.to_string().into()))
            } else {
                Err(missing())
            };
        }
        let stored = state.store.get(owner, id).ok_or_else(missing)?;
        Ok(json_reply(server.stored_body(stored, part)?.to_string().into()))
    }

    /// Parses a request, and puts everything in it that it refers to. Mistakes are found in the
    /// request as it came, so that they are reported where they are.
    fn decode(
        &self,
        server: &dyn ServerCodec,
        kind: RequestKind,
        request: &Request<'_>,
        key: Option<&str>,
        now: Moment,
    ) -> Result<DecodedRequest, ErrorReply> {
        let mut decoded = decode(server, kind, request)?;
        server.read_headers(request, &mut decoded, &self.settings)?;
        let whole = {
            let state = self.state();
            server.resolve_references(&decoded, request.body, &state.store, owner(key), now)?
        };
        if let Some(body) = &whole {
            decoded = decode(server, kind, &Request { body, ..*request })?;
            server.read_headers(request, &mut decoded, &self.settings)?;
        }
        server.check_references(&decoded, &self.state().store)?;
        Ok(decoded)
    }

    /// Checks a request against all rules of its server and model.
    fn accept(
        &self,
        server: &dyn ServerCodec,
        endpoint: Endpoint,
        mut decoded: DecodedRequest,
        key: Option<&str>,
        now: Moment,
    ) -> Result<AcceptedRequest, ErrorReply> {
        let cached_tokens = self.state().cached_contents.prepend(&mut decoded, content_owner(key), now)?;
        let name = &decoded.prompt.model;
        let (model, profile) = self.settings.model(server, name).ok_or_else(|| server.refuse_model(name))?;
        let choice = ToolChoice::from_request(&decoded);
        check::check_request(server, &decoded, &model, &profile, &choice, &self.settings)?;
        let rendered = server.render(&decoded, &model, &self.settings, self.counter(&model))?;
        let measured = self.counter(&model).measure(&rendered.prompt);
        let refuse = |violation: Violation| server.refuse_violation(&violation);
        check_window(measured.total(), model.context as usize).map_err(refuse)?;
        let organisation =
            Hash::chain([Hash::of(model.provider.as_bytes()), Hash::of(key.unwrap_or_default().as_bytes())]);
        let compacts = server.compacts(&endpoint, &decoded);
        Ok(AcceptedRequest {
            decoded,
            model,
            profile,
            choice,
            rendered,
            measured,
            organisation,
            cached_tokens,
            endpoint,
            compacts,
        })
    }

    /// Creates, shows, changes or deletes stored content.
    fn store_content(
        &self,
        server: &dyn ServerCodec,
        request: &Request<'_>,
        id: Option<&str>,
        key: Option<&str>,
        (number, now): (u64, Moment),
    ) -> Result<Value, ErrorReply> {
        let owner = content_owner(key);
        match (request.method, id) {
            ("PATCH", Some(id)) => self.state().cached_contents.update(id, request.body, owner, now),
            ("DELETE", Some(id)) => self.state().cached_contents.delete(id, owner, now),
            (_, Some(id)) => self.state().cached_contents.get(id, owner, now),
            ("POST", None) => {
                let decoded = self.decode(server, RequestKind::Store, request, key, now)?;
                let name = &decoded.prompt.model;
                let (model, _) =
                    self.settings.model(server, name).ok_or_else(|| server.refuse_model(name))?;
                let tokens = self.counter(&model).measure(&decoded.prompt).total();
                self.state().cached_contents.create(decoded, tokens, owner, number, now)
            }
            (_, None) => Ok(self.state().cached_contents.list(owner, now)),
        }
    }

    /// Generates the answer, within the request's limits.
    fn generate_answer(
        &self,
        server: &dyn ServerCodec,
        accepted: &AcceptedRequest,
        active_faults: &ActiveFaults,
    ) -> Result<SimulatedAnswer, ErrorReply> {
        let prompt = &accepted.decoded.prompt;
        if prompt.max_tokens == 0 {
            return Ok(SimulatedAnswer { stop: FinishReason::Length, ..SimulatedAnswer::new(Vec::new()) });
        }
        if accepted.compacts {
            let count = accepted.decoded.items.len();
            return Ok(SimulatedAnswer::text(format!("{count} items of a conversation, in short")));
        }
        let mut answer = match &self.settings.script {
            Some(script) => {
                let mut state = self.state();
                let is_known = |name: &str| accepted.decoded.has_tool(name);
                script.answer(prompt, &is_known, &mut state.progress, active_faults.breaks_answer())?
            }
            None => self.assistant_answer(accepted),
        };
        if prompt.web_search.is_none() {
            answer.parts.retain(|part| !matches!(part, SimulatedPart::Search(_)));
        }
        if !server.has_reasoning(accepted) {
            answer.parts.retain(|part| !matches!(part, SimulatedPart::Reasoning(_)));
        } else if !answer.parts.iter().any(|part| matches!(part, SimulatedPart::Reasoning(_))) {
            let reasoning = server.made_up_reasoning(accepted, &self.settings).map(SimulatedPart::Reasoning);
            answer.parts.splice(0..0, reasoning);
        }
        answer.truncate_at_stop_sequence(&accepted.decoded.stop_sequences);
        let room = (accepted.model.context as usize).saturating_sub(accepted.measured.total());
        let most = prompt.max_tokens.min(accepted.model.max_output) as usize;
        let (most, why) =
            if room < most { (room, FinishReason::Window) } else { (most, FinishReason::Length) };
        answer.truncate_to_tokens(most, &why, self.counter(&accepted.model));
        Ok(answer)
    }

    /// The built-in assistant's answer; only the first of its calls if the request allows no
    /// parallel calls.
    fn assistant_answer(&self, accepted: &AcceptedRequest) -> SimulatedAnswer {
        let mut answer = assistant::answer(&accepted.decoded.prompt, &accepted.choice);
        if accepted.decoded.parallel_tools == Some(false) {
            let mut calls = 0;
            answer.parts.retain(|part| {
                calls += usize::from(matches!(part, SimulatedPart::Call { .. }));
                calls <= 1
            });
        }
        SimulatedAnswer { pace: self.settings.pace, ..answer }
    }

    fn counter(&self, model: &Model) -> &TokenCounter {
        let vocabulary = vocabulary(model);
        let index = usize::from(vocabulary == Vocabulary::Cl100k);
        self.counters[index].get_or_init(|| TokenCounter::new(vocabulary))
    }

    fn state(&self) -> MutexGuard<'_, EngineState> {
        // Counters and caches are consistent after every step, so a panic leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl EngineSettings {
    /// The model `id` for this server: of its usual provider, or of the one that the id begins with.
    fn model(&self, server: &dyn ServerCodec, id: &str) -> Option<(Model, ProviderProfile)> {
        let usual = self.catalogue.model(Some(server.usual_provider(self)), id);
        [usual, self.catalogue.model(None, id)].into_iter().flatten().find_map(|model| {
            let provider = self.catalogue.provider(&model.provider).ok()?;
            // A provider with several protocols serves all its models in each of them.
            let protocol = server.protocol();
            let profile = ProviderProfile { protocol, ..provider.profile_for_model(&model) };
            // No server has a model that nobody lists or that is no longer sold, except where any
            // model may run.
            let exists = provider.open_models || model.listed && !model.gone;
            (exists && provider.speaks(protocol)).then_some((model, profile))
        })
    }
}

/// Whose stored content a key sees.
fn content_owner(key: Option<&str>) -> Hash {
    Hash::of(key.unwrap_or_default().as_bytes())
}

fn decode(
    server: &dyn ServerCodec,
    kind: RequestKind,
    request: &Request<'_>,
) -> Result<DecodedRequest, ErrorReply> {
    let decoded = codec(server.protocol()).decode_request(kind, request.path, request.body);
    decoded.map_err(|error| ErrorReply::from_decode_error(&error))
}

/// Who sends requests with this key.
fn owner(key: Option<&str>) -> Hash {
    Hash::of(key.unwrap_or_default().as_bytes())
}

fn vocabulary(model: &Model) -> Vocabulary {
    match model.vocabulary {
        Some(hardpan_models::Vocabulary::Cl100k) => Vocabulary::Cl100k,
        Some(hardpan_models::Vocabulary::O200k) | None => Vocabulary::O200k,
    }
}

/// The header that says that an answer is simulated, and how its tokens are counted.
const SIMULATED: &str = "x-hardpan-simulated";

fn simulated_header(model: &Model) -> (&'static str, String) {
    (SIMULATED, format!("tokens counted with {}", vocabulary(model)))
}

fn json_reply(body: Bytes) -> Reply {
    let headers = vec![("content-type", "application/json".to_owned())];
    Reply {
        status: 200,
        headers,
        delay: Duration::ZERO,
        body: Body::Whole(body),
        bill: None,
        cache_write: None,
    }
}
