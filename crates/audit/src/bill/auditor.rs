//! The way through a recording, request by request.

use std::sync::Arc;

use hardpan_economy::Cause;
use hardpan_economy::cache::Moment;
use hardpan_economy::ledger::Tokens;
use hardpan_economy::verdict::Blame;
use hardpan_models::Catalogue;

use super::frontiers::{BYTES_PER_TOKEN, Frontier, Frontiers, Kept, Nodes, node};
use super::whom::{Reports, Tariff, Whom};
use super::{Audit, Bill, Judged, Loss, Lost, Outcome, Turn, Why};
use crate::{Agent, BilledRequest, Piece, Recording, Said, Speaker};

/// A shortfall is a loss from here on, in tokens: the smallest prefix that most providers keep at all.
const LEAST_LOSS: u64 = 1024;
/// And if it is more than one part in so many: agents that rewrite their last words lose a little all the time.
const LOSS_PART: u64 = 50;
/// A request that was stopped has written to the cache once it lived so long, in milliseconds.
const LIVED_MS: i64 = 1500;

/// Which name of a thinking level is meant.
#[derive(Clone, Copy)]
enum Level {
    /// The agent's.
    Named,
    /// One that stands for all that may be the same to a model.
    Sent,
}

/// What a request finds, before its bill is looked at.
struct Sight {
    kept: Kept,
    node: usize,
    turn: Turn,
    /// What the request before had left.
    expected: u64,
    /// What it will read.
    read: u64,
}

pub(super) struct Auditor<'a> {
    recording: &'a Recording,
    nodes: Nodes,
    people: Vec<Whom>,
    levels: Vec<Arc<str>>,
    /// The cache as it was, by the bills.
    recorded: Frontiers,
    /// The cache of an agent that only ever adds.
    stable: Frontiers,
    /// Tools and system prompt, in tokens: what is left of a first prompt once all that is recorded is taken off.
    base: u64,
    /// Whether every hit so far read all that was left: then the agent only ever adds.
    adds_only: bool,
    audit: Audit,
}

impl<'a> Auditor<'a> {
    pub fn audit(recording: &'a Recording, catalogue: &Catalogue) -> Audit {
        let mut auditor = Auditor::new(recording, catalogue);
        auditor.run();
        // Which lifetime was asked for is not always recorded. Something that was read after a longer silence tells, of the
        // requests before it too.
        let proven: Vec<i64> = auditor.people.iter().map(|whom| whom.proven_ms).collect();
        if proven.iter().any(|ms| *ms > 0) {
            auditor = Auditor::new(recording, catalogue);
            auditor.people.iter_mut().zip(proven).for_each(|(whom, ms)| whom.proven_ms = ms);
            auditor.run();
        }
        auditor.audit
    }

    fn new(recording: &'a Recording, catalogue: &Catalogue) -> Self {
        let mut people: Vec<Whom> = Vec::new();
        let mut base = u64::MAX;
        for request in &recording.requests {
            if !people.iter().any(|whom| whom.is_of(request)) {
                people.push(Whom::find(catalogue, request));
                base = base.min(unrecorded_tokens(recording, request));
            }
        }
        for whom in &mut people {
            let of_whom = recording.requests.iter().filter(|request| whom.is_of(request));
            let reported: Vec<&Tokens> = of_whom.map(|request| &request.usage).collect();
            whom.learn(&reported);
        }
        let priceless = people.iter().filter(|whom| whom.tariff(0).unit.is_none());
        let audit = Audit {
            file: recording.file.clone(),
            agent: recording.agent,
            requests: Vec::with_capacity(recording.requests.len()),
            billed: Bill::default(),
            predicted: Bill::default(),
            losses: Vec::new(),
            stable_prefix_cost: 0.0,
            unpriced: priceless.map(|whom| whom.model.clone()).collect(),
            problems: recording.problems.len(),
        };
        Auditor {
            recording,
            nodes: Nodes::of(recording),
            people,
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
                if stopped.ended.since(stopped.started) >= LIVED_MS {
                    self.touch(node(stopped.leaf), &stopped.model, stopped.started);
                }
            }
            self.judge(request);
        }
    }

    fn touch(&mut self, node: usize, model: &str, at: Moment) {
        for whom in (0..self.people.len()).filter(|whom| *self.people[*whom].model == *model) {
            self.recorded.touch(node, whom, at);
            self.stable.touch(node, whom, at);
        }
    }

    fn judge(&mut self, request: &BilledRequest) {
        let Some(whom) = self.people.iter().position(|whom| whom.is_of(request)) else { return };
        let used = &request.usage;
        let sight = if request.apart { self.look_apart(request, whom) } else { self.look(request, whom) };
        let tariff = self.people[whom].tariff(used.prompt());
        let outcome = |read| if is_short(sight.expected, read) { Outcome::Loss } else { Outcome::Hit };
        let (predicted, actual) = (outcome(sight.read), outcome(used.read));
        let bill = self.audit.billed.add(used, &tariff);
        self.audit.predicted.add(&split(used, sight.read, self.people[whom].reports), &tariff);
        if actual == Outcome::Loss {
            let tokens = sight.expected - used.read;
            let cost = tokens as f64 * (tariff.paid(used) - tariff.read);
            let why = self.why(request, &sight);
            let told = request.verdict.as_ref().filter(|verdict| verdict.is_loss());
            let ours = told.map_or_else(|| why.is_ours(sight.turn), |told| told.ours == Blame::Us);
            let dollars = tariff.unit.map(|unit| cost * unit);
            let number = self.audit.requests.len();
            self.audit.losses.push(Loss {
                request: number,
                at: request.started,
                tokens,
                cost,
                dollars,
                why,
                ours,
            });
        }
        let mut stable_cost = bill.cost;
        if !request.apart {
            stable_cost = self.stable_cost(request, &sight, &tariff);
            self.learn(request, &sight, actual);
        }
        self.audit.stable_prefix_cost += stable_cost;
        let (at, turn, expected) = (request.started, sight.turn, sight.expected);
        self.audit.requests.push(Judged { at, turn, bill, stable_cost, expected, predicted, actual });
    }

    /// What the request will find, from all that is known before its bill.
    fn look(&mut self, request: &BilledRequest, whom: usize) -> Sight {
        let node = node(request.leaf);
        let kept = Kept {
            whom,
            era: self.nodes.era[node],
            images: self.people[whom].has_markers() && self.nodes.images[node],
            thinking: self.level(request, whom, Level::Sent),
            level: self.level(request, whom, Level::Named),
        };
        let (prompt, at) = (request.usage.prompt(), request.started);
        let turn = self.turn(request);
        let whom = &self.people[whom];
        let last = self.recorded.last(node).filter(|_| whom.reports != Reports::Nothing);
        // A request that left nothing is measured by its whole prompt: all of it is paid for again.
        let expected =
            last.map_or(0, |last| if last.tokens == 0 { last.prompt } else { last.tokens }).min(prompt);
        // A summary is a new text, and not paid for again.
        let is_compacted = last.is_some_and(|last| last.kept.era != kept.era);
        let expected = expected.saturating_sub(if is_compacted { self.nodes.summary[node] } else { 0 });
        let readable = self.recorded.readable(node, &kept, at, whom.proven_ms);
        let cacheable = prompt - if whom.reports == Reports::Writes { request.usage.input } else { 0 };
        let read = match readable {
            // Only adding makes no request smaller: what it begins with is another text.
            Some(found)
                if found.tokens > prompt
                    && turn == Turn::Person
                    && self.only_adds(node)
                    && whom.has_markers() =>
            {
                0
            }
            Some(found) => found.tokens.min(cacheable),
            // Settings and compaction leave tools and system as they were.
            None => match last {
                Some(last)
                    if last.kept.whom == kept.whom
                        && last.is_warm(at, whom.proven_ms)
                        && self.base >= whom.minimum() =>
                {
                    self.base.min(cacheable)
                }
                _ => 0,
            },
        };
        Sight { kept, node, turn, expected, read }
    }

    /// Whether the agent is known to send all that was said, as it was said, with more at the end. Our own layouts fold.
    fn only_adds(&self, node: usize) -> bool {
        self.adds_only && !self.nodes.reasoning[node] && self.recording.agent != Agent::Hardpan
    }

    /// A prompt of its own, which has nothing to find: what it reads all the same is taken as it came.
    fn look_apart(&self, request: &BilledRequest, whom: usize) -> Sight {
        let kept = Kept { whom, era: 0, images: false, thinking: None, level: None };
        Sight { kept, node: 0, turn: Turn::Person, expected: 0, read: request.usage.read }
    }

    /// The number of the thinking level.
    fn level(&mut self, request: &BilledRequest, whom: usize, level: Level) -> Option<usize> {
        let name: &str = request.thinking.as_ref()?;
        if !self.people[whom].has_markers() || !self.people[whom].can_think() {
            return None;
        }
        // Agents have more levels than most models: the outer ones are sent as their neighbours.
        let name = match (level, name) {
            (Level::Sent, "xhigh") => "high",
            (Level::Sent, "minimal") => "low",
            (_, name) => name,
        };
        let known = self.levels.iter().position(|known| **known == *name);
        Some(known.unwrap_or_else(|| {
            self.levels.push(name.into());
            self.levels.len() - 1
        }))
    }

    fn turn(&self, request: &BilledRequest) -> Turn {
        let said = request.leaf.map(|leaf| &self.recording.entries[leaf].said);
        match said {
            Some(Said::Message { speaker: Speaker::Tool, .. }) => Turn::Tools,
            _ => Turn::Person,
        }
    }

    /// What the request would have cost an agent that only ever adds.
    fn stable_cost(&mut self, request: &BilledRequest, sight: &Sight, tariff: &Tariff) -> f64 {
        let whom = &self.people[sight.kept.whom];
        let (used, at) = (&request.usage, request.started);
        let kept = Kept { images: false, thinking: None, level: None, ..sight.kept };
        let readable = self.stable.readable(sight.node, &kept, at, 0);
        let prompt = used.prompt();
        // What follows the last marker is as it was; without reported writes all of it is cacheable.
        let after = if whom.reports == Reports::Writes && used.cached() > 0 { used.input } else { 0 };
        let cached = if prompt - after >= whom.minimum() { prompt - after } else { 0 };
        let read = match (readable, self.stable.last(sight.node)) {
            _ if whom.reports == Reports::Nothing => 0,
            (Some(found), _) => found.tokens.min(cached),
            (None, Some(last)) if last.kept.whom == kept.whom && last.is_warm(at, 0) => self.base.min(cached),
            _ => 0,
        };
        let rest = cached - read;
        let tokens = match whom.reports {
            Reports::Writes => Tokens { input: prompt - cached, read, write: rest, ..Tokens::default() },
            Reports::Reads | Reports::Nothing => Tokens { input: prompt - read, read, ..Tokens::default() },
        };
        let frontier = Frontier::new(kept, cached, prompt, at, request.ended, whom.usual_lifetime_ms());
        self.stable.leave(sight.node, frontier, 0);
        tariff.cost(&tokens)
    }

    /// What the bill teaches for the requests that follow.
    fn learn(&mut self, request: &BilledRequest, sight: &Sight, actual: Outcome) {
        let (used, at) = (&request.usage, request.started);
        let whom = &mut self.people[sight.kept.whom];
        let last = self.recorded.last(sight.node);
        let is_hit = actual == Outcome::Hit && used.read > 0;
        if let Some(last) =
            last.filter(|last| is_hit && last.tokens > LEAST_LOSS && last.kept.meets(&sight.kept))
        {
            if !last.is_warm(at, whom.proven_ms) {
                whom.prove(at.since(last.used));
            }
            self.adds_only &= used.read >= last.tokens;
        }
        let left = match whom.reports {
            Reports::Writes => used.cached(),
            Reports::Reads | Reports::Nothing => {
                let step = whom.step();
                (used.prompt().saturating_sub(1) / step * step).max(used.read)
            }
        };
        let lifetime = match last {
            // What only reads keeps the lifetime of what it read.
            Some(last) if used.write == 0 && used.write_1h == 0 && used.read > 0 => last.lifetime_ms,
            _ => whom.lifetime_ms(used),
        };
        let frontier = Frontier::new(sight.kept, left, used.prompt(), at, request.ended, lifetime);
        self.recorded.leave(sight.node, frontier, whom.proven_ms);
    }

    /// The likeliest cause of a loss.
    fn why(&self, request: &BilledRequest, sight: &Sight) -> Why {
        let whom = &self.people[sight.kept.whom];
        let (used, at) = (&request.usage, request.started);
        let automatic = !whom.has_markers();
        let unexplained = if used.read < LEAST_LOSS {
            Why::Unrecorded(if automatic { Lost::WholePrefixAutomatic } else { Lost::WholePrefix })
        } else {
            Why::Unrecorded(if automatic {
                Lost::AllButAutomatic(used.read)
            } else {
                Lost::AllBut(used.read)
            })
        };
        if let Some(verdict) = request.verdict.as_ref().filter(|verdict| verdict.is_loss()) {
            return Why::Recorded(verdict.cause.clone());
        }
        let Some(last) = self.recorded.last(sight.node) else { return unexplained };
        let before = &self.people[last.kept.whom];
        let new_blocks = self.nodes.blocks[sight.node].saturating_sub(self.nodes.blocks[last.node]);
        let look_back = whom.look_back().filter(|limit| new_blocks >= *limit as usize);
        let minimum = whom.minimum();
        let idle_ms = at.since(last.used);
        let lifetime_ms = if automatic { whom.usual_lifetime_ms() } else { last.lifetime_ms };
        let expired = lifetime_ms.filter(|lifetime| idle_ms > (*lifetime).max(whom.proven_ms));
        Why::Recorded(if last.kept.whom != sight.kept.whom {
            if before.model == whom.model {
                let name = |whom: &Whom| whom.provider.clone().unwrap_or_else(|| "an unknown one".into());
                Cause::ProviderChanged { from: name(before), to: name(whom) }
            } else {
                Cause::ModelChanged { from: before.model.clone(), to: whom.model.clone() }
            }
        } else if last.kept.era != sight.kept.era || request.compacted {
            Cause::Compacted
        } else if last.tokens == 0 && last.prompt < minimum {
            Cause::BelowMinimum { tokens: last.prompt, minimum }
        } else if last.tokens == 0 {
            Cause::Unmarked
        } else if let Some(lifetime) = expired {
            Cause::Expired { minutes: minutes(idle_ms), lifetime: minutes(lifetime) }
        } else if last.kept.level != sight.kept.level {
            Cause::ThinkingChanged
        } else if last.kept.images != sight.kept.images {
            if sight.kept.images { Cause::ImageAdded } else { Cause::ImageRemoved }
        } else if at < last.ended && self.read_what_was_before(request, sight) {
            return Why::Unrecorded(Lost::NotYetAnswered);
        } else if let Some(look_back) = look_back {
            Cause::TooManyNewBlocks { blocks: new_blocks, look_back }
        } else {
            return unexplained;
        })
    }

    /// Whether it read all that the requests before the last one had left.
    fn read_what_was_before(&self, request: &BilledRequest, sight: &Sight) -> bool {
        let patience = self.people[sight.kept.whom].proven_ms;
        let before = self.recorded.readable_before(sight.node, &sight.kept, request.started, patience);
        before.is_none_or(|before| !is_short(before.tokens, request.usage.read))
    }
}

/// Whether much less was read than was to be expected.
fn is_short(expected: u64, read: u64) -> bool {
    expected.saturating_sub(read) > LEAST_LOSS.max(expected / LOSS_PART)
}

/// A prompt's tokens if this much of it is read: what follows the last marker stays as it was.
fn split(used: &Tokens, read: u64, reports: Reports) -> Tokens {
    let rest = used.prompt() - read;
    match reports {
        Reports::Writes => {
            let written = rest.saturating_sub(used.input);
            let (write, write_1h) = if used.write_1h > used.write { (0, written) } else { (written, 0) };
            Tokens { input: rest - written, read, write, write_1h, output: used.output }
        }
        Reports::Reads | Reports::Nothing => {
            Tokens { input: rest, read, output: used.output, ..Tokens::default() }
        }
    }
}

/// The tokens of a request that its recording does not account for: tools and system prompt.
fn unrecorded_tokens(recording: &Recording, request: &BilledRequest) -> u64 {
    let bytes = |piece: &Piece| match piece {
        Piece::Text(text) | Piece::Reasoning(text) => text.len(),
        Piece::Call(call) => call.arguments.len(),
        Piece::Result(result) => result.text.len(),
        Piece::Image { .. } => 0,
    };
    let said = recording.context(request.leaf).into_iter().map(|at| match &recording.entries[at].said {
        Said::Message { pieces, .. } => pieces.iter().map(bytes).sum(),
        Said::Compaction { summary, .. } => summary.len(),
    });
    request.usage.prompt().saturating_sub(said.sum::<usize>() as u64 / BYTES_PER_TOKEN)
}

fn minutes(ms: i64) -> u64 {
    u64::try_from(ms / 60_000).unwrap_or(0)
}
