//! [`Auditor`]: goes through a recording request by request, predicts what each reads from the
//! cache, and explains the losses.

use hardpan_prompt::TokenUsage;
use std::sync::Arc;

use hardpan_economy::Cause;
use hardpan_economy::cache::Moment;
use hardpan_economy::verdict::Blame;
use hardpan_models::Catalogue;

use super::frontiers::{BYTES_PER_TOKEN, CacheKey, Frontier, Frontiers, NodeFacts, node};
use super::provider_model::{CacheReporting, ProviderModel};
use super::{
    Audit, AuditedRequest, Bill, CacheOutcome, CauseSource, Loss, LossCause, RequestTrigger, SideBill,
    UnexplainedLoss,
};
use crate::model_facts::InputPrices;
use crate::{BilledRequest, EntryContent, RecordedPart, Recording, SourceAgent, Speaker};

/// The least number of missing tokens that counts as a loss: the smallest prefix that most
/// providers cache.
const MIN_LOSS_TOKENS: u64 = 1024;
/// A loss must also be more than this fraction (one in so many) of what was expected: agents that
/// rewrite their last message lose a little all the time.
const MIN_LOSS_DIVISOR: u64 = 50;
/// After so many milliseconds, an aborted request has written to the cache.
const MIN_WRITING_MS: i64 = 1500;

/// Whose thinking levels are compared.
#[derive(Clone, Copy)]
enum LevelName {
    /// The agent's own levels.
    Agent,
    /// The provider's levels: several of the agent's may be sent as one.
    Provider,
}

/// What a request is predicted to find in the cache, before its bill is looked at.
struct CacheForecast {
    key: CacheKey,
    node: usize,
    trigger: RequestTrigger,
    /// The tokens that the previous request left to read.
    expected: u64,
    /// The tokens that it will read.
    read: u64,
}

pub(super) struct Auditor<'a> {
    recording: &'a Recording,
    nodes: NodeFacts,
    models: Vec<ProviderModel>,
    levels: Vec<Arc<str>>,
    /// The cache as it was, according to the bills.
    recorded: Frontiers,
    /// The cache of an agent whose requests only add to the previous one.
    stable: Frontiers,
    /// The size of tools and system prompt, in tokens: what remains of a first prompt after all
    /// that is recorded is subtracted.
    base: u64,
    /// Whether every hit so far read all that was left, so that the agent seems to only add.
    adds_only: bool,
    audit: Audit,
}

impl<'a> Auditor<'a> {
    pub fn audit(recording: &'a Recording, catalogue: &Catalogue) -> Audit {
        let mut auditor = Auditor::new(recording, catalogue);
        auditor.run();
        // The requested lifetime is not always recorded. A read after a longer pause proves it, also for the
        // requests before it.
        let proven: Vec<i64> = auditor.models.iter().map(|model| model.longest_idle_hit_ms).collect();
        if proven.iter().any(|ms| *ms > 0) {
            auditor = Auditor::new(recording, catalogue);
            auditor.models.iter_mut().zip(proven).for_each(|(model, ms)| model.longest_idle_hit_ms = ms);
            auditor.run();
        }
        auditor.audit
    }

    fn new(recording: &'a Recording, catalogue: &Catalogue) -> Self {
        let mut models: Vec<ProviderModel> = Vec::new();
        let mut base = u64::MAX;
        for request in &recording.requests {
            if !models.iter().any(|model| model.matches_request(request)) {
                models.push(ProviderModel::look_up(catalogue, request));
                base = base.min(unrecorded_tokens(recording, request));
            }
        }
        for model in &mut models {
            let of_model = recording.requests.iter().filter(|request| model.matches_request(request));
            let reported: Vec<&TokenUsage> = of_model.map(|request| &request.usage).collect();
            model.infer_reporting(&reported);
        }
        let priceless = models.iter().filter(|model| model.prices_for(0).dollars_per_unit.is_none());
        let mut audit = Audit {
            file: recording.file.clone(),
            agent: recording.agent,
            session: recording.id.clone(),
            requests: Vec::with_capacity(recording.requests.len()),
            billed: Bill::default(),
            side_requests: Vec::new(),
            total_dollars: Some(0.0),
            recorded_dollars: recording.total_dollars,
            predicted: Bill::default(),
            losses: Vec::new(),
            stable_prefix_cost: 0.0,
            unpriced: priceless.map(|model| model.model.clone()).collect(),
            problems: recording.problems.len(),
        };
        for side in &recording.side_usage {
            audit.add_side_requests(SideBill::new(catalogue, &recording.requests, side));
        }
        Auditor {
            recording,
            nodes: NodeFacts::from_recording(recording),
            models,
            levels: Vec::new(),
            recorded: Frontiers::new(recording),
            stable: Frontiers::new(recording),
            base,
            adds_only: true,
            audit,
        }
    }

    fn run(&mut self) {
        let recording = self.recording;
        let mut unbilled = recording.unbilled.iter().peekable();
        for request in &recording.requests {
            while let Some(stopped) = unbilled.next_if(|stopped| stopped.started <= request.started) {
                if stopped.ended.since(stopped.started) >= MIN_WRITING_MS {
                    self.touch(node(stopped.leaf), &stopped.model, stopped.started);
                }
            }
            self.audit_request(request);
        }
    }

    fn touch(&mut self, node: usize, model_name: &str, at: Moment) {
        for model in (0..self.models.len()).filter(|model| *self.models[*model].model == *model_name) {
            self.recorded.touch(node, model, at);
            self.stable.touch(node, model, at);
        }
    }

    fn audit_request(&mut self, request: &BilledRequest) {
        let Some(model) = self.models.iter().position(|model| model.matches_request(request)) else { return };
        let used = &request.usage;
        let forecast = if request.is_standalone {
            self.forecast_standalone(request, model)
        } else {
            self.forecast_request(request, model)
        };
        let prices = self.models[model].prices_for(used.prompt());
        let outcome =
            |read| if is_short(forecast.expected, read) { CacheOutcome::Loss } else { CacheOutcome::Hit };
        let (predicted, actual) = (outcome(forecast.read), outcome(used.cache_read));
        let bill = self.audit.billed.add_request(used, &prices);
        self.audit
            .predicted
            .add_request(&split_by_read(used, forecast.read, self.models[model].reporting), &prices);
        if actual == CacheOutcome::Loss {
            let tokens = forecast.expected - used.cache_read;
            let cost = tokens as f64 * (prices.price_of_unread(used) - prices.read);
            let (cause, source) = self.find_cause(request, &forecast);
            let told = request.verdict.as_ref().filter(|verdict| verdict.is_loss());
            let is_avoidable =
                told.map_or_else(|| cause.is_avoidable(forecast.trigger), |told| told.blame == Blame::Us);
            let dollars = prices.dollars_per_unit.map(|unit| cost * unit);
            let number = self.audit.requests.len();
            self.audit.losses.push(Loss {
                request: number,
                at: request.started,
                tokens,
                cost,
                dollars,
                cause,
                source,
                is_avoidable,
            });
        }
        let answer = self.models[model].answer_dollars(used);
        let dollars = bill.dollars.zip(answer).map(|(prompt, answer)| prompt + answer);
        self.audit.total_dollars = self.audit.total_dollars.zip(dollars).map(|(sum, more)| sum + more);
        let mut stable_cost = bill.cost;
        if !request.is_standalone {
            stable_cost = self.stable_cost(request, &forecast, &prices);
            self.record_request(request, &forecast, actual);
        }
        self.audit.stable_prefix_cost += stable_cost;
        let (at, trigger, expected) = (request.started, forecast.trigger, forecast.expected);
        self.audit.requests.push(AuditedRequest {
            at,
            model: request.model.clone(),
            trigger,
            bill,
            stable_cost,
            expected,
            predicted,
            actual,
        });
    }

    /// Predicts what a request finds in the cache, from what is known before its bill.
    fn forecast_request(&mut self, request: &BilledRequest, model: usize) -> CacheForecast {
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
    fn forecast_standalone(&self, request: &BilledRequest, model: usize) -> CacheForecast {
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

    /// What the request would have cost an agent whose requests only add to the previous one.
    fn stable_cost(
        &mut self,
        request: &BilledRequest,
        forecast: &CacheForecast,
        prices: &InputPrices,
    ) -> f64 {
        let model = &self.models[forecast.key.model];
        let (used, at) = (&request.usage, request.started);
        let key = CacheKey { images: false, thinking: None, level: None, ..forecast.key };
        let readable = self.stable.readable(forecast.node, &key, at, 0);
        let prompt = used.prompt();
        // What follows the last marker stays uncached; without reported writes, everything is cacheable.
        let after = if model.reporting == CacheReporting::ReadsAndWrites && used.cached() > 0 {
            used.input
        } else {
            0
        };
        let cached = if prompt - after >= model.minimum() { prompt - after } else { 0 };
        let read = match (readable, self.stable.nearest_frontier(forecast.node)) {
            _ if model.reporting == CacheReporting::Nothing => 0,
            (Some(found), _) => found.tokens.min(cached),
            (None, Some(last)) if last.key.model == key.model && last.is_warm(at, 0) => self.base.min(cached),
            _ => 0,
        };
        let rest = cached - read;
        let tokens = match model.reporting {
            CacheReporting::ReadsAndWrites => TokenUsage {
                input: prompt - cached,
                cache_read: read,
                cache_write_5m: rest,
                ..TokenUsage::default()
            },
            CacheReporting::ReadsOnly | CacheReporting::Nothing => {
                TokenUsage { input: prompt - read, cache_read: read, ..TokenUsage::default() }
            }
        };
        let frontier = Frontier::new(key, cached, prompt, at, request.ended, model.usual_lifetime_ms());
        self.stable.add_frontier(forecast.node, frontier, 0);
        prices.cost(&tokens)
    }

    /// Learns from the bill for the requests that follow.
    fn record_request(&mut self, request: &BilledRequest, forecast: &CacheForecast, actual: CacheOutcome) {
        let (used, at) = (&request.usage, request.started);
        let model = &mut self.models[forecast.key.model];
        let last = self.recorded.nearest_frontier(forecast.node);
        let is_hit = actual == CacheOutcome::Hit && used.cache_read > 0;
        if let Some(last) = last.filter(|last| {
            is_hit && last.tokens > MIN_LOSS_TOKENS && last.key.shares_cache_with(&forecast.key)
        }) {
            if !last.is_warm(at, model.longest_idle_hit_ms) {
                model.record_idle_hit(at.since(last.used));
            }
            self.adds_only &= used.cache_read >= last.tokens;
        }
        let left = match model.reporting {
            CacheReporting::ReadsAndWrites => used.cached(),
            CacheReporting::ReadsOnly | CacheReporting::Nothing => {
                let step = model.step();
                (used.prompt().saturating_sub(1) / step * step).max(used.cache_read)
            }
        };
        let lifetime = match last {
            // A request that only reads keeps the lifetime of what it read.
            Some(last) if used.cache_write_5m == 0 && used.cache_write_1h == 0 && used.cache_read > 0 => {
                last.lifetime_ms
            }
            _ => model.lifetime_ms(used),
        };
        let mut frontier = Frontier::new(forecast.key, left, used.prompt(), at, request.ended, lifetime);
        frontier.request = self.audit.requests.len();
        self.recorded.add_frontier(forecast.node, frontier, model.longest_idle_hit_ms);
    }

    /// The most likely cause of a loss, and where it is known from.
    fn find_cause(&self, request: &BilledRequest, forecast: &CacheForecast) -> (LossCause, CauseSource) {
        if let Some(verdict) = request.verdict.as_ref().filter(|verdict| verdict.is_loss()) {
            return (LossCause::Recorded(verdict.cause.clone()), CauseSource::Verdict);
        }
        let Some(last) = self.recorded.nearest_frontier(forecast.node) else {
            return (self.unexplained(request, forecast), CauseSource::Inferred);
        };
        let before = self.recording.requests[last.request].shape.as_deref();
        let shapes = request.shape.as_deref().zip(before);
        // Two requests of which everything is recorded leave nothing to conclusions.
        let source = match shapes {
            Some((now, before)) if now.is_complete() && before.is_complete() => CauseSource::Request,
            _ => CauseSource::Inferred,
        };
        if let Some(cause) = self.cause_of_wider_loss(request, forecast, last) {
            return (LossCause::Recorded(cause), source);
        }
        if let Some(cause) = shapes.and_then(|(now, before)| now.difference_from(before)) {
            return (LossCause::Recorded(cause), CauseSource::Request);
        }
        if let Some(cause) = self.cause_in_messages(request, forecast, last) {
            return (cause, source);
        }
        match source {
            CauseSource::Request => (LossCause::Recorded(Cause::Evicted), source),
            _ => (self.unexplained(request, forecast), source),
        }
    }

    /// What loses a whole prefix, whatever its content is: another cache, no entry, or an old one.
    fn cause_of_wider_loss(
        &self,
        request: &BilledRequest,
        forecast: &CacheForecast,
        last: &Frontier,
    ) -> Option<Cause> {
        let (model, before) = (&self.models[forecast.key.model], &self.models[last.key.model]);
        let minimum = model.minimum();
        let idle_ms = request.started.since(last.used);
        let lifetime_ms = if model.has_markers() { last.lifetime_ms } else { model.usual_lifetime_ms() };
        let expired = lifetime_ms.filter(|lifetime| idle_ms > (*lifetime).max(model.longest_idle_hit_ms));
        if last.key.model != forecast.key.model {
            return Some(if before.model == model.model {
                let name =
                    |model: &ProviderModel| model.provider.clone().unwrap_or_else(|| "an unknown one".into());
                Cause::ProviderChanged { from: name(before), to: name(model) }
            } else {
                Cause::ModelChanged { from: before.model.clone(), to: model.model.clone() }
            });
        }
        if last.key.compactions != forecast.key.compactions || request.compacted {
            return Some(Cause::Compacted);
        }
        if last.tokens == 0 && last.prompt < minimum {
            return Some(Cause::BelowMinimum { tokens: last.prompt, minimum });
        }
        if last.tokens == 0 {
            return Some(Cause::Unmarked);
        }
        expired.map(|lifetime| Cause::Expired { minutes: minutes(idle_ms), lifetime: minutes(lifetime) })
    }

    /// What loses the cache of the messages, as far as the conversation tells.
    fn cause_in_messages(
        &self,
        request: &BilledRequest,
        forecast: &CacheForecast,
        last: &Frontier,
    ) -> Option<LossCause> {
        let new_blocks = self.nodes.blocks[forecast.node].saturating_sub(self.nodes.blocks[last.node]);
        let look_back = self.models[forecast.key.model].look_back();
        if last.key.level != forecast.key.level {
            return Some(LossCause::Recorded(Cause::ThinkingChanged));
        }
        if last.key.images != forecast.key.images {
            let cause = if forecast.key.images { Cause::ImageAdded } else { Cause::ImageRemoved };
            return Some(LossCause::Recorded(cause));
        }
        if request.started < last.ended && self.read_what_was_before(request, forecast) {
            return Some(LossCause::Unrecorded(UnexplainedLoss::NotYetAnswered));
        }
        let look_back = look_back.filter(|limit| new_blocks >= *limit as usize)?;
        Some(LossCause::Recorded(Cause::TooManyNewBlocks { blocks: new_blocks, look_back }))
    }

    /// What the bill shows of a loss that nothing recorded explains.
    fn unexplained(&self, request: &BilledRequest, forecast: &CacheForecast) -> LossCause {
        let read = request.usage.cache_read;
        let automatic = !self.models[forecast.key.model].has_markers();
        LossCause::Unrecorded(match (read < MIN_LOSS_TOKENS, automatic) {
            (true, true) => UnexplainedLoss::WholePrefixAutomatic,
            (true, false) => UnexplainedLoss::WholePrefix,
            (false, true) => UnexplainedLoss::AllButAutomatic(read),
            (false, false) => UnexplainedLoss::AllBut(read),
        })
    }

    /// Whether the request read all that the requests before the previous one had left.
    fn read_what_was_before(&self, request: &BilledRequest, forecast: &CacheForecast) -> bool {
        let patience = self.models[forecast.key.model].longest_idle_hit_ms;
        let before = self.recorded.readable_before(forecast.node, &forecast.key, request.started, patience);
        before.is_none_or(|before| !is_short(before.tokens, request.usage.cache_read))
    }
}

/// Whether much less was read than expected.
fn is_short(expected: u64, read: u64) -> bool {
    expected.saturating_sub(read) > MIN_LOSS_TOKENS.max(expected / MIN_LOSS_DIVISOR)
}

/// The usage of a request if `read` tokens of it were read; what follows the last marker stays as
/// it was.
fn split_by_read(used: &TokenUsage, read: u64, reporting: CacheReporting) -> TokenUsage {
    let rest = used.prompt() - read;
    match reporting {
        CacheReporting::ReadsAndWrites => {
            let written = rest.saturating_sub(used.input);
            let (cache_write_5m, cache_write_1h) =
                if used.cache_write_1h > used.cache_write_5m { (0, written) } else { (written, 0) };
            TokenUsage { input: rest - written, cache_read: read, cache_write_5m, cache_write_1h, ..*used }
        }
        CacheReporting::ReadsOnly | CacheReporting::Nothing => {
            TokenUsage { input: rest, cache_read: read, cache_write_5m: 0, cache_write_1h: 0, ..*used }
        }
    }
}

/// The tokens of a request that are not in the recording: tools and system prompt.
fn unrecorded_tokens(recording: &Recording, request: &BilledRequest) -> u64 {
    let bytes = |part: &RecordedPart| match part {
        RecordedPart::Text(text) | RecordedPart::Reasoning(text) => text.len(),
        RecordedPart::Call(call) => call.arguments.len(),
        RecordedPart::Result(result) => result.text.len(),
        RecordedPart::Image { .. } => 0,
    };
    let content =
        recording.context(request.leaf).into_iter().map(|at| match &recording.entries[at].content {
            EntryContent::Message { parts, .. } => parts.iter().map(bytes).sum(),
            EntryContent::Compaction { summary, .. } => summary.len(),
        });
    request.usage.prompt().saturating_sub(content.sum::<usize>() as u64 / BYTES_PER_TOKEN)
}

fn minutes(ms: i64) -> u64 {
    u64::try_from(ms / 60_000).unwrap_or(0)
}
