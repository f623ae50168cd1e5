//! What a fold would drop, and whether the rent paid for it has reached the price of one.
//!
//! Every request pays to read what is sent again though it is no longer true. A fold drops that, but writes the cache anew. The
//! rule is that of renting skis: fold once the rent paid since the last fold has reached the price (docs/economy.md).

use std::collections::{BTreeMap, BTreeSet};

use hardpan_economy::Rates;
use hardpan_prompt::{Block, Content, Item, Measured, Prompt, ResultPart, Segment, Source};

use crate::layout::Input;
use crate::memory::{Account, StrataMemory, UpdateForm};

/// What a stub costs in place of a body, in tokens: the phrase and the key.
const STUB: usize = 25;

/// Whether the rent has reached the price of a fold, as the last request left it.
pub fn is_due(input: &Input<'_>, account: &Account) -> bool {
    let (read, write) = ratios(input, account);
    let (after, garbage) = (account.after as f64, account.garbage as f64);
    let price = write * (after - garbage) - read * after;
    account.garbage > 0 && account.rent > 0.0 && account.rent >= price
}

fn ratios(input: &Input<'_>, account: &Account) -> (f64, f64) {
    Rates::of(&input.target.model, &input.target.wire, account.after).ratios()
}

/// The account after a request: what it paid for garbage is added to the rent.
pub fn charge(
    input: &Input<'_>,
    strata: &StrataMemory,
    live: &[&Item],
    prompt: &Prompt,
    measured: &Measured,
) -> Account {
    let head = prompt.tools.len() + prompt.system.len();
    let before = head.checked_sub(1).map_or(0, |last| measured.through(last));
    let garbage = garbage(input, strata, live, prompt);
    let account = Account { rent: strata.account.rent, after: measured.total() - before, garbage };
    let (read, _) = ratios(input, &account);
    Account { rent: account.rent + read * garbage as f64, ..account }
}

/// The tokens that a fold would take out: everything that shows an item, less its body once and the stubs that stay.
fn garbage(input: &Input<'_>, strata: &StrataMemory, live: &[&Item], prompt: &Prompt) -> usize {
    let count = |text: &hardpan_prompt::Text| input.memo.counter.count(text);
    let said = strata.updates.iter().filter(|update| update.form == UpdateForm::Said);
    let said: BTreeMap<&str, &str> = said.map(|update| (&*update.anchor.0, &*update.key)).collect();
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    let mut stubs: BTreeMap<&str, usize> = BTreeMap::new();
    let mut calls: BTreeMap<&str, &str> = BTreeMap::new();
    for block in prompt.turns.iter().flat_map(|turn| &turn.blocks) {
        for segment in segments(block) {
            if let Source::Item { key, .. } = &segment.origin.source {
                *shown.entry(key).or_default() += count(&segment.text);
            }
        }
        let Content::Result(result) = &block.content else { continue };
        let Source::Message(message) = &result.origin.source else { continue };
        if let Some(key) = said.get(&*message.0) {
            *shown.entry(key).or_default() +=
                segments(block).map(|segment| count(&segment.text)).sum::<usize>();
            *stubs.entry(key).or_default() += STUB;
            calls.insert(&result.call_id, key);
        }
    }
    for block in prompt.turns.iter().flat_map(|turn| &turn.blocks) {
        if let Content::Call(call) = &block.content
            && let Some(key) = calls.get(&*call.id)
        {
            *shown.entry(key).or_default() +=
                input.memo.counter.count_hashed(call.arguments.hash(), call.arguments.as_str());
        }
    }
    let bodies: BTreeMap<&str, usize> = live.iter().map(|item| (&*item.key, count(&item.body))).collect();
    // A key that is shown only once, in BASE, is no garbage whatever its frame costs.
    let touched: BTreeSet<&str> = strata.updates.iter().map(|update| &*update.key).collect();
    let excess = |(key, tokens): (&&str, &usize)| {
        let needed = bodies.get(key).copied();
        if !touched.contains(key) && needed.is_some() {
            return 0;
        }
        tokens.saturating_sub(needed.unwrap_or(0) + stubs.get(key).copied().unwrap_or(0))
    };
    input.target.factor.scale(shown.iter().map(excess).sum())
}

fn segments(block: &Block) -> Box<dyn Iterator<Item = &Segment> + '_> {
    match &block.content {
        Content::Text(segments) => Box::new(segments.iter()),
        Content::Result(result) => Box::new(result.parts.iter().flat_map(|part| match part {
            ResultPart::Text(segments) => segments.as_slice(),
            ResultPart::Image(_) => &[],
        })),
        _ => Box::new(std::iter::empty()),
    }
}

#[cfg(test)]
mod tests;
