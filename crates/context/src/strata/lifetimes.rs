//! [`choose_lifetimes`]: which parts of a prompt the provider is asked to keep for an hour.

use hardpan_economy::LifetimePrices;
use hardpan_prompt::{CacheLifetime, Prompt, PromptTokens, Region};
use serde::{Deserialize, Serialize};

use super::garbage::Garbage;
use super::sites::head_blocks;
use super::state::StrataState;
use crate::LifetimeSetting;
use crate::layout::LayoutInput;

/// How far the prompt is kept for the long lifetime. Providers want longer lifetimes before shorter
/// ones, so it is always the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LongLived {
    /// Nothing is.
    #[default]
    Nothing,
    /// Tools and system prompt.
    Head,
    /// These and BASE.
    Base,
    /// Everything that is cached.
    Log,
}

impl LongLived {
    /// True if nothing is kept for the long lifetime.
    pub fn is_nothing(&self) -> bool {
        *self == LongLived::Nothing
    }
}

/// The ends of the parts of a prompt, as numbers of blocks.
pub struct PartEnds {
    head: usize,
    base: usize,
}

impl PartEnds {
    pub fn new(prompt: &Prompt) -> Self {
        let head = head_blocks(prompt);
        let blocks = prompt.messages.iter().flat_map(|message| &message.blocks);
        PartEnds { head, base: head + blocks.take_while(|block| block.region == Region::Base).count() }
    }

    /// How many of the blocks up to `frontier` live on when the short lifetime is over.
    pub fn long_lived_blocks(&self, long_lived: LongLived, frontier: usize) -> usize {
        match long_lived {
            LongLived::Nothing => 0,
            LongLived::Head => self.head.min(frontier),
            LongLived::Base => self.base.min(frontier),
            LongLived::Log => frontier,
        }
    }
}

/// Gives each breakpoint its lifetime, and stores in `strata` how far the long one goes. The first
/// `cached` blocks can be read: their entries keep the lifetime that they were written with, whatever
/// is asked for now.
pub fn choose_lifetimes(
    input: &LayoutInput<'_>,
    strata: &mut StrataState,
    measured: &PromptTokens,
    garbage: &Garbage,
    cached: usize,
    prompt: &mut Prompt,
) {
    if input.target.profile.long_lifetime().is_none() {
        // The provider before this one may have offered a choice.
        strata.long_lived = LongLived::Nothing;
        return;
    }
    let ends = PartEnds::new(prompt);
    let wanted = choose(input, strata, measured, garbage, &ends);
    strata.long_lived = match input.snapshot.cache_lifetime {
        LifetimeSetting::FiveMinutes | LifetimeSetting::OneHour => wanted,
        LifetimeSetting::Auto => {
            let parts =
                [(LongLived::Head, ends.head), (LongLived::Base, ends.base), (LongLived::Log, usize::MAX)];
            let is_long = |(part, end): &(LongLived, usize)| {
                let decided = if *end > cached { wanted } else { strata.long_lived };
                decided >= *part
            };
            parts.into_iter().rfind(is_long).map_or(LongLived::Nothing, |(part, _)| part)
        }
    };
    if strata.long_lived.is_nothing() {
        return;
    }
    let end = ends.long_lived_blocks(strata.long_lived, usize::MAX);
    let offset = prompt.tools.len();
    for block in prompt.blocks_mut().take(end - offset) {
        block.breakpoint = block.breakpoint.map(|_| CacheLifetime::OneHour);
    }
}

/// How far the long lifetime is worth its price.
fn choose(
    input: &LayoutInput<'_>,
    strata: &StrataState,
    measured: &PromptTokens,
    garbage: &Garbage,
    ends: &PartEnds,
) -> LongLived {
    let target = input.target;
    let total = measured.total();
    let prices = LifetimePrices::for_model(&target.model, &target.profile, total as u64);
    match input.snapshot.cache_lifetime {
        LifetimeSetting::FiveMinutes => return LongLived::Nothing,
        LifetimeSetting::OneHour => return LongLived::Log,
        LifetimeSetting::Auto => {}
    }
    let Some(prices) = prices else { return LongLived::Nothing };
    let through = |end: usize| end.checked_sub(1).map_or(0, |last| measured.tokens_through(last));
    let (head, base) = (through(ends.head), through(ends.base));
    let (all_garbage, log_garbage) = (garbage.after(ends.head), garbage.after(ends.base));
    let parts = [
        (LongLived::Head, head, 0),
        (LongLived::Base, base - head, all_garbage.saturating_sub(log_garbage)),
        (LongLived::Log, total - base, log_garbage),
    ];
    // A LOG that has had garbage to fold will have some again, and then expires for the better.
    let last = if strata.folds > 0 { LongLived::Base } else { LongLived::Log };
    let (mut sum, mut best) = (0.0, (0.0, LongLived::Nothing));
    let parts = parts.into_iter().filter(|(part, tokens, _)| *tokens > 0 && *part <= last);
    for (part, tokens, garbage) in parts {
        sum += prices.expected_saving(tokens, garbage, &input.snapshot.pauses);
        if sum > best.0 {
            best = (sum, part);
        }
    }
    best.1
}
