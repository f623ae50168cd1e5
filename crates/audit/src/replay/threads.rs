//! [`ReplayThread`]: a recorded conversation as a series of requests, made of messages whose sizes
//! add up to what was billed.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use hardpan_context::knowledge::FileObservation;
use hardpan_economy::cache::Moment;
use hardpan_prompt::{
    AgentMessage, GivenSizes, Hash, Item, MessageBody, MessagePart, Text, TokenCounter, TokenUsage,
    Vocabulary,
};

use super::ThinkingSwitches;
use super::messages::{ConvertedEntries, ConvertedMessage, Observations, SizedPart};
use super::model_pricing::{ModelPricing, PricingTable};
use super::sizes::{UnsizedUnit, fit_first_request, fit_request};
use crate::import::{AnswerStatus, Recording, SourceAgent};

/// One conversation: the main one, or a sub-agent's.
#[derive(Debug)]
pub(crate) struct ReplayThread {
    pub messages: Vec<ThreadMessage>,
    pub steps: Vec<RequestStep>,
    /// The parts of messages that have a size of their own. Equal parts are one.
    pub units: Vec<SizedPart>,
    /// The folder that the session began in.
    pub cwd: Option<Arc<str>>,
    /// How the sizes of the messages are known.
    pub sizing: Sizing,
}

/// How the sizes of a thread's messages are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sizing {
    /// Fitted to the bill. Texts that the layouts add count so many tokens per token of our counter.
    Fitted { scale: f64 },
    /// Counted as the live agent counted them, since the recording is its own. So many tokens were
    /// billed for one of our counter.
    Counted { billed: f64 },
}

/// A message of a conversation.
#[derive(Debug)]
pub(crate) struct ThreadMessage {
    pub message: AgentMessage,
    pub observations: Vec<FileObservation>,
}

/// One request, described by how it differs from the previous one.
#[derive(Debug)]
pub(crate) struct RequestStep {
    pub at: Moment,
    pub ended: Moment,
    pub pricing: Rc<ModelPricing>,
    /// Tokens of the model per token of our counter, as the live agent estimated it.
    pub factor: Option<f64>,
    /// The items that the live agent told the model of.
    pub items: Arc<Vec<Item>>,
    /// The thinking level. `None` if the model does not think.
    pub thinking: Option<Arc<str>>,
    pub thinking_switches: ThinkingSwitches,
    /// How many of its first messages it shares with the previous request.
    pub common: usize,
    /// The messages after the shared ones.
    pub added: Vec<usize>,
    /// Whether the conversation was compacted since the previous request.
    pub is_compacted: bool,
    /// Units that get a size with this request, or another one.
    pub sized: Vec<(usize, usize)>,
    /// The message of its answer. `None` if that is in no later request.
    pub answer: Option<usize>,
    pub is_complete: bool,
    /// All tokens of the request, as billed.
    pub total: usize,
    /// How they were billed.
    pub billed: TokenUsage,
}

/// Builds the threads of a recording.
pub(crate) fn build_threads(
    recording: &Recording,
    pricing: &PricingTable,
    thinking_switches: ThinkingSwitches,
) -> Vec<ReplayThread> {
    let counter = TokenCounter::new(Vocabulary::O200k);
    let count = |text: &str| counter.count(&Text::new(text));
    let mut threads: BTreeMap<usize, ThreadBuilder<'_>> = BTreeMap::new();
    for (index, request) in recording.requests.iter().enumerate() {
        let pricing = pricing.look_up(request);
        // A standalone request is a thread of its own.
        let (thread, context) = match request.is_standalone {
            true => (recording.entries.len() + index, Vec::new()),
            false => (request.thread, recording.context(request.leaf)),
        };
        let builder = threads.entry(thread).or_insert_with(|| ThreadBuilder::new(recording, &count));
        let step = RequestStep {
            at: request.started,
            ended: request.ended,
            pricing,
            factor: request.factor,
            items: request.items.clone(),
            thinking: request.thinking.clone().filter(|level| !matches!(&**level, "off" | "none")),
            thinking_switches,
            common: 0,
            added: Vec::new(),
            is_compacted: request.compacted,
            sized: Vec::new(),
            answer: None,
            is_complete: request.status == AnswerStatus::Complete,
            total: request.usage.prompt() as usize,
            billed: request.usage,
        };
        builder.add_request(&context, step, request.answer);
        if let Some(answer) = request.answer {
            builder.outputs.insert(answer, request.usage.output as usize);
        }
    }
    threads.into_values().map(ThreadBuilder::finish).collect()
}

struct ThreadBuilder<'a> {
    recording: &'a Recording,
    entries: ConvertedEntries<'a>,
    messages: Vec<(ConvertedMessage, Vec<usize>)>,
    steps: Vec<RequestStep>,
    units: Vec<SizedPart>,
    unit_of: BTreeMap<Hash, usize>,
    counted: Vec<usize>,
    sizes: Vec<usize>,
    /// The messages of each entry.
    messages_of: BTreeMap<usize, Vec<usize>>,
    /// The output billed for each answer.
    outputs: BTreeMap<usize, usize>,
    /// The answer that each step waits for.
    answers: Vec<Option<usize>>,
    path: Vec<usize>,
    /// The tokens of the first request that no message explains.
    fixed: usize,
}

impl<'a> ThreadBuilder<'a> {
    fn new(recording: &'a Recording, count: &'a dyn Fn(&str) -> usize) -> Self {
        ThreadBuilder {
            recording,
            entries: ConvertedEntries::new(recording, count),
            messages: Vec::new(),
            steps: Vec::new(),
            units: Vec::new(),
            unit_of: BTreeMap::new(),
            counted: Vec::new(),
            sizes: Vec::new(),
            messages_of: BTreeMap::new(),
            outputs: BTreeMap::new(),
            answers: Vec::new(),
            path: Vec::new(),
            fixed: 0,
        }
    }

    fn is_own(&self) -> bool {
        self.recording.agent == SourceAgent::Hardpan
    }

    fn add_request(&mut self, context: &[usize], mut step: RequestStep, answer: Option<usize>) {
        let known_units = self.units.len();
        for &entry in context {
            self.add_entry(entry);
        }
        let mut path: Vec<usize> =
            context.iter().flat_map(|entry| &self.messages_of[entry]).copied().collect();
        if !self.is_own() {
            self.fit_sizes(context, &mut path, known_units, &mut step);
        }
        step.common = self.path.iter().zip(&path).take_while(|(old, new)| old == new).count();
        step.added = path[step.common..].to_vec();
        self.path = path;
        self.steps.push(step);
        self.answers.push(answer);
    }

    /// Gives sizes to the units that are new, so that the request has the billed size.
    fn fit_sizes(
        &mut self,
        context: &[usize],
        path: &mut Vec<usize>,
        known_units: usize,
        step: &mut RequestStep,
    ) {
        let units: Vec<usize> = path.iter().flat_map(|message| &self.messages[*message].1).copied().collect();
        let known: Vec<usize> = units.iter().copied().filter(|unit| *unit < known_units).collect();
        let known_total = known.iter().map(|unit| self.sizes[*unit]).sum::<usize>() + self.fixed;
        let fresh = self.fresh_units(context, known_units, step.pricing.factor);
        let is_first = self.steps.is_empty();
        let fitted = if is_first {
            fit_first_request(step.total, &fresh)
        } else {
            fit_request(step.total, known_total, &fresh)
        };
        if is_first {
            self.fixed = fitted.system;
        }
        for (unit, size) in fitted.sizes {
            self.sizes[unit] = size;
            step.sized.push((unit, size));
        }
        if fitted.unrecorded > 0 {
            path.extend(self.add_unrecorded(context, fitted.unrecorded, step));
        }
        self.shrink_newest(&known, fitted.excess, step);
    }

    /// The units that no earlier request had, each once. Those of an answer share what was billed for
    /// it.
    fn fresh_units(&self, context: &[usize], known_units: usize, scale: f64) -> Vec<UnsizedUnit> {
        let mut fresh: Vec<UnsizedUnit> = Vec::new();
        for entry in context {
            let messages = self.messages_of[entry].iter();
            let units: Vec<usize> =
                messages.flat_map(|message| &self.messages[*message].1).copied().collect();
            let counted: usize = units.iter().map(|unit| self.counted[*unit]).sum();
            let output = self.outputs.get(entry);
            for unit in units.into_iter().filter(|unit| *unit >= known_units) {
                if fresh.iter().any(|fresh| fresh.unit == unit) {
                    continue;
                }
                let share = self.counted[unit] as f64;
                let billed = output.map(|output| *output as f64 * share / counted.max(1) as f64);
                fresh.push(UnsizedUnit { unit, guess: share * scale, billed });
            }
        }
        fresh
    }

    /// Adds a message for tokens that were billed and are not in the recording.
    fn add_unrecorded(&mut self, context: &[usize], tokens: usize, step: &mut RequestStep) -> Option<usize> {
        let number = self.messages.len();
        let text = Text::new(format!("[not recorded {number}]"));
        let body = MessageBody::Custom {
            custom_type: "unrecorded".into(),
            content: vec![MessagePart::text(text.clone())],
            display: false,
        };
        let unit = self.add_unit(&SizedPart::Text(text), tokens);
        self.sizes[unit] = tokens;
        step.sized.push((unit, tokens));
        let converted = ConvertedMessage {
            message: AgentMessage::new(format!("u{number}").as_str(), body),
            parts: Vec::new(),
            counted: tokens,
            observations: Observations::Recorded(Vec::new()),
        };
        self.messages.push((converted, vec![unit]));
        self.messages_of.get_mut(context.last()?)?.push(number);
        Some(number)
    }

    /// Removes tokens that are no longer billed from the newest units: what was dropped is not
    /// recorded. Units that occur more than once come last, since all copies of one have its size, also
    /// those to come.
    fn shrink_newest(&mut self, known: &[usize], mut excess: usize, step: &mut RequestStep) {
        let mut copies: BTreeMap<usize, usize> = BTreeMap::new();
        known.iter().for_each(|unit| *copies.entry(*unit).or_default() += 1);
        let (single, repeated): (Vec<usize>, Vec<usize>) =
            known.iter().rev().copied().partition(|unit| copies[unit] == 1);
        for unit in single.into_iter().chain(repeated) {
            if excess == 0 {
                break;
            }
            let less = (excess / copies[&unit]).min(self.sizes[unit]);
            if less > 0 {
                self.sizes[unit] -= less;
                excess -= less * copies[&unit];
                step.sized.push((unit, self.sizes[unit]));
            }
        }
    }

    fn add_entry(&mut self, entry: usize) {
        if self.messages_of.contains_key(&entry) {
            return;
        }
        let mut numbers = Vec::new();
        for converted in self.entries.convert(entry) {
            let units = converted.parts.iter().map(|(part, counted)| (part.clone(), *counted));
            let units: Vec<(SizedPart, usize)> = units.collect();
            let units = units.iter().map(|(part, counted)| self.add_unit(part, *counted)).collect();
            numbers.push(self.messages.len());
            self.messages.push((converted, units));
        }
        self.messages_of.insert(entry, numbers);
    }

    fn add_unit(&mut self, part: &SizedPart, counted: usize) -> usize {
        let next = self.units.len();
        let unit = *self.unit_of.entry(part.key()).or_insert(next);
        if unit == next {
            self.units.push(part.clone());
            self.counted.push(counted);
            self.sizes.push(0);
        }
        unit
    }

    /// How many tokens are billed for a token of our counter: what requests grew by, compared with the
    /// messages that they added. The weighted median, since folds make some grow less.
    fn billed_per_counted(&self) -> f64 {
        let mut ratios: Vec<(f64, usize)> = Vec::new();
        for pair in self.steps.windows(2) {
            let added = pair[1].added.iter().map(|message| self.messages[*message].0.counted).sum::<usize>();
            if added > 0 && pair[1].total > pair[0].total {
                ratios.push(((pair[1].total - pair[0].total) as f64 / added as f64, added));
            }
        }
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let half = ratios.iter().map(|(_, weight)| weight).sum::<usize>() / 2;
        let mut sum = 0;
        let median = ratios.iter().find(|(_, weight)| {
            sum += weight;
            sum > half
        });
        let prior = self.steps.first().map_or(1.0, |step| step.pricing.factor);
        median.map_or(prior, |(ratio, _)| *ratio)
    }

    fn finish(mut self) -> ReplayThread {
        for (step, answer) in self.steps.iter_mut().zip(&self.answers) {
            step.answer = answer.and_then(|entry| self.messages_of.get(&entry)?.first().copied());
        }
        let sizing = match self.is_own() {
            true => Sizing::Counted { billed: self.billed_per_counted() },
            false => {
                let (sizes, counted): (usize, usize) = (self.sizes.iter().sum(), self.counted.iter().sum());
                Sizing::Fitted { scale: (sizes as f64 / counted.max(1) as f64).clamp(0.5, 2.5) }
            }
        };
        let observer = &self.entries.observer;
        let finish = |(converted, _): (ConvertedMessage, Vec<usize>)| ThreadMessage {
            observations: match converted.observations {
                Observations::Recorded(observations) => observations,
                Observations::Observed(range) => observer.observations()[range].to_vec(),
            },
            message: converted.message,
        };
        ReplayThread {
            messages: self.messages.into_iter().map(finish).collect(),
            steps: self.steps,
            units: self.units,
            cwd: self.recording.cwd.clone(),
            sizing,
        }
    }
}

impl SizedPart {
    /// Identifies the part: equal parts count alike.
    fn key(&self) -> Hash {
        match self {
            SizedPart::Text(text) => text.hash(),
            SizedPart::Call { name, arguments } => {
                Hash::chain([Hash::of(b"call"), Hash::of(name.as_bytes()), arguments.hash()])
            }
        }
    }

    /// Gives the counter the part's size.
    pub fn give(&self, sizes: &mut GivenSizes, tokens: usize) {
        match self {
            SizedPart::Text(text) => sizes.set_text(text, tokens),
            SizedPart::Call { name, arguments } => sizes.set_call(name, arguments, tokens),
        }
    }
}
