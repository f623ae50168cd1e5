//! [`Auditor`]: goes through a recording request by request, predicts what each reads from the
//! cache, and explains the losses.

mod causes; // why a request read less than was there
mod forecast; // CacheForecast: what a request is predicted to find

use std::sync::Arc;

use hardpan_economy::cache::Moment;
use hardpan_economy::verdict::Blame;
use hardpan_models::Catalogue;
use hardpan_prompt::TokenUsage;

use super::frontiers::{BYTES_PER_TOKEN, CacheKey, Frontier, Frontiers, NodeFacts, node};
use super::provider_model::{CacheReporting, ProviderModel};
use super::{Audit, AuditedRequest, Bill, CacheOutcome, Loss, SideBill};
use crate::model_facts::InputPrices;
use crate::{BilledRequest, EntryContent, RecordedPart, Recording};
use forecast::CacheForecast;

/// The least number of missing tokens that counts as a loss: the smallest prefix that most
/// providers cache.
const MIN_LOSS_TOKENS: u64 = 1024;
/// A loss must also be more than this fraction (one in so many) of what was expected: agents that
/// rewrite their last message lose a little all the time.
const MIN_LOSS_DIVISOR: u64 = 50;
/// After so many milliseconds, an aborted request has written to the cache.
const MIN_WRITING_MS: i64 = 1500;

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
            let (cause, source) = self.find_cause(request, &forecast);
            // An agent that knew both prompts knows how much of them was lost: `why` says the same.
            let told = request.verdict.as_ref().filter(|verdict| verdict.is_loss());
            let tokens = told.map_or(forecast.expected - used.cache_read, |told| told.lost_tokens);
            let cost = tokens as f64 * (prices.price_of_unread(used) - prices.read);
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
