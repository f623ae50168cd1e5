//! [`CacheEnds`]: the places of a prompt that are worth a breakpoint, and which of them get one.
//!
//! A provider takes four breakpoints. The end of the conversation always gets one, so that a tool loop
//! reads its own conversation; the others go where they spare most.

use hardpan_economy::LifetimePrices;
use hardpan_prompt::{Block, CacheLifetime, Content, Prompt, PromptMessage, PromptTokens, Region, Role};

use crate::LifetimeSetting;
use crate::layout::LayoutInput;
use crate::message_builder::MessageBuilder;

/// How many breakpoints a request has at most.
const MAX_BREAKPOINTS: usize = 4;

/// How much nearer than a provider's look-back an entry must be to be found without a breakpoint of its own.
const LOOK_BACK_RESERVE: usize = 2;

/// Where the cache entries of a prompt should end, each given by the number of messages before the end;
/// 0 is the end of the system prompt.
#[derive(Default)]
pub struct CacheEnds {
    /// Ends that the next change may leave as the last ones to be read.
    useful: Vec<usize>,
    /// Ends that this request reads from, beyond what a look-back would find.
    needed: Vec<usize>,
}

impl CacheEnds {
    /// Adds an end after the messages that have been built so far.
    pub fn add(&mut self, builder: &MessageBuilder) {
        self.useful.push(builder.0.len());
    }

    /// Adds the end of the system prompt.
    pub fn add_system(&mut self) {
        self.useful.push(0);
    }

    /// Adds an end after the messages so far, which an earlier request has written and this one reads.
    pub fn add_written(&mut self, builder: &MessageBuilder) {
        self.needed.push(builder.0.len());
    }

    /// Marks the end of the conversation, which is the first `conversation` messages of the prompt, and
    /// as many of the other ends as there are breakpoints left. `inserted` is the number of messages that
    /// were put before the first since the ends were added. Returns the prompt's token counts.
    pub fn mark(
        self,
        input: &LayoutInput<'_>,
        prompt: &mut Prompt,
        inserted: usize,
        conversation: usize,
    ) -> PromptTokens {
        let places = BlockPlaces::new(prompt);
        let at = |messages: &usize| match messages {
            0 => places.system_end(),
            count => places.end_of_messages(count + inserted),
        };
        let mut needed: Vec<usize> = Vec::new();
        if let Some(end) = places.end_of_messages(conversation) {
            needed.push(end);
            let previous = previous_end(&prompt.messages[..conversation]);
            let previous = previous.and_then(|count| places.end_of_messages(count));
            let is_out_of_sight = |previous: &usize| {
                let look_back = input.target.profile.cache.look_back.map(|positions| positions as usize);
                let reach = look_back.map(|positions| positions.saturating_sub(LOOK_BACK_RESERVE));
                reach.is_some_and(|reach| places.distance(*previous, end) >= reach)
            };
            needed.extend(previous.filter(is_out_of_sight));
        }
        needed.extend(self.needed.iter().filter_map(at));
        dedup_in_order(&mut needed);
        needed.truncate(MAX_BREAKPOINTS);
        let mut useful: Vec<usize> = self.useful.iter().filter_map(at).collect();
        useful.retain(|end| !needed.contains(end));
        useful.sort_unstable();
        useful.dedup();

        let offset = prompt.tools.len();
        let measured = input.measure_prompt(prompt);
        let minimum = input.target.profile.cache.min_tokens as usize;
        let tokens = |end: usize| Some(measured.tokens_through(end + offset)).filter(|sum| *sum >= minimum);
        while needed.len() + useful.len() > MAX_BREAKPOINTS {
            // What an end spares: the tokens since the end before it.
            let spared = |index: &usize| {
                let end = useful[*index];
                let others = useful.iter().chain(&needed).filter(|other| **other < end);
                let before = others.filter_map(|other| tokens(*other)).max().unwrap_or(0);
                tokens(end).map_or(0, |sum| sum.saturating_sub(before))
            };
            let Some(least) = (0..useful.len()).rev().min_by_key(spared) else { break };
            useful.remove(least);
        }
        let system = places.system_end();
        let head = system.map_or(0, |end| measured.tokens_through(end + offset));
        let [first, others] = lifetimes(input, head, measured.total());
        for (index, block) in prompt.blocks_mut().enumerate() {
            let is_end = needed.contains(&index) || useful.contains(&index);
            block.breakpoint = is_end.then_some(if Some(index) == system { first } else { others });
        }
        measured
    }
}

/// The lifetimes of an entry that ends with the system prompt, and of the others. By itself only the
/// system prompt is worth the long one: nothing else of these layouts stays as it is for long.
fn lifetimes(input: &LayoutInput<'_>, head: usize, total: usize) -> [CacheLifetime; 2] {
    let (target, snapshot) = (input.target, input.snapshot);
    let long_if = |pays: bool| if pays { CacheLifetime::OneHour } else { CacheLifetime::FiveMinutes };
    match snapshot.cache_lifetime {
        LifetimeSetting::FiveMinutes => [CacheLifetime::FiveMinutes; 2],
        LifetimeSetting::OneHour => [long_if(target.profile.long_lifetime().is_some()); 2],
        LifetimeSetting::Auto => {
            let prices = LifetimePrices::for_model(&target.model, &target.profile, total as u64);
            let pays = |prices: LifetimePrices| prices.expected_saving(head, 0, &snapshot.pauses) > 0.0;
            [long_if(prices.is_some_and(pays)), CacheLifetime::FiveMinutes]
        }
    }
}

fn dedup_in_order(ends: &mut Vec<usize>) {
    let mut seen = std::collections::BTreeSet::new();
    ends.retain(|end| seen.insert(*end));
}

/// How many messages the last request ended with: those before the model's last answer.
fn previous_end(messages: &[PromptMessage]) -> Option<usize> {
    let answer = messages.iter().rposition(|message| message.role == Role::Assistant)?;
    messages[..answer].iter().rposition(|message| message.role == Role::User).map(|last| last + 1)
}

/// The blocks of a prompt by their index, tools left out.
struct BlockPlaces {
    system: Option<usize>,
    /// For each message, the index of its last block that can hold a breakpoint, if it has one.
    messages: Vec<Option<usize>>,
    /// For each block the provider's position: a run of calls, or of results, is one.
    positions: Vec<usize>,
}

impl BlockPlaces {
    fn new(prompt: &Prompt) -> Self {
        let can_end = |block: &Block| block.region != Region::Tail && block.can_hold_breakpoint();
        let mut start = prompt.system.len();
        let mut messages = Vec::with_capacity(prompt.messages.len());
        for message in &prompt.messages {
            messages.push(message.blocks.iter().rposition(can_end).map(|last| start + last));
            start += message.blocks.len();
        }
        let mut positions: Vec<usize> = Vec::with_capacity(start);
        let mut last: Option<&Content> = None;
        for block in prompt.blocks() {
            let content = &*block.content;
            let is_run = matches!(
                (last, content),
                (Some(Content::Call(_)), Content::Call(_)) | (Some(Content::Result(_)), Content::Result(_))
            );
            let position = positions.last().map_or(0, |position| position + usize::from(!is_run));
            positions.push(position);
            last = Some(content);
        }
        let system = prompt.system.iter().rposition(Block::can_hold_breakpoint);
        BlockPlaces { system, messages, positions }
    }

    fn system_end(&self) -> Option<usize> {
        self.system
    }

    /// The last block of the first `count` messages that can hold a breakpoint.
    fn end_of_messages(&self, count: usize) -> Option<usize> {
        self.messages.iter().take(count).rev().find_map(|end| *end).or(self.system)
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        self.positions[to] - self.positions[from]
    }
}
