//! What a fold would drop, and whether the rent paid for it has reached the price of one.
//!
//! Every request pays to read what is sent again though it is no longer true. A fold drops that, but writes the cache anew. The
//! rule is that of renting skis: fold once the rent paid since the last fold has reached the price (docs/economy.md).

use std::collections::HashMap;

use hardpan_economy::Rates;
use hardpan_economy::folds::{FoldPrices, Site};
use hardpan_prompt::{Content, Item, Measured, Prompt, ResultPart, Source, Text, ToolResult};

use crate::layout::Input;
use crate::memory::{Account, StrataMemory, UpdateForm};

/// What a stub costs in place of a body, in tokens: the phrase and the key.
const STUB: usize = 25;

/// Whether the rent has reached the price of a fold, as the last request left it.
pub fn is_due(input: &Input<'_>, account: &Account) -> bool {
    let price = prices(input, account).fold(&site(account));
    account.garbage > 0 && account.rent > 0.0 && account.rent >= price
}

/// What reading and writing cost. A model that costs nothing reads for nothing, so nothing is ever due.
fn prices(input: &Input<'_>, account: &Account) -> FoldPrices {
    let (read, write) = Rates::of(&input.target.model, &input.target.wire, account.after).ratios();
    FoldPrices { read, write }
}

/// A fold lays everything after the system prompt anew.
fn site(account: &Account) -> Site {
    Site { place: 0, after: account.after, garbage: account.garbage }
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
    Account { rent: account.rent + prices(input, &account).rent(&site(&account)), ..account }
}

/// The tokens that a fold would take out: everything that shows an item, less its body once and the stubs that stay. Only items
/// about which something was told, or which are gone, are looked at: nothing changed, nothing to do.
fn garbage(input: &Input<'_>, strata: &StrataMemory, live: &[&Item], prompt: &Prompt) -> usize {
    let count = |text: &Text| input.memo.counter.count(text);
    let bodies: HashMap<&str, &Text> = live.iter().map(|item| (&*item.key, &item.body)).collect();
    let mut shown: HashMap<&str, usize> = HashMap::new();
    for update in &strata.updates {
        *shown.entry(&update.key).or_default() +=
            if update.text.is_empty() { 0 } else { count(&update.text) };
    }
    for placed in strata.base.iter().flat_map(|group| &group.items) {
        if shown.contains_key(&*placed.key) || !bodies.contains_key(&*placed.key) {
            *shown.entry(&placed.key).or_default() += count(&placed.body);
        }
    }
    if shown.is_empty() {
        return 0;
    }
    let mut stubs: HashMap<&str, usize> = HashMap::new();
    for (key, tokens) in said(input, strata, prompt) {
        *shown.entry(key).or_default() += tokens;
        *stubs.entry(key).or_default() += STUB;
    }
    let excess = |(key, tokens): (&&str, &usize)| {
        let needed = bodies.get(key).map_or(0, |body| count(body)) + stubs.get(key).copied().unwrap_or(0);
        tokens.saturating_sub(needed)
    };
    input.target.factor.scale(shown.iter().map(excess).sum())
}

/// The calls and results that showed items, with the items' keys and their tokens.
fn said<'a>(input: &Input<'_>, strata: &'a StrataMemory, prompt: &'a Prompt) -> Vec<(&'a str, usize)> {
    let counter = &input.memo.counter;
    let told = strata.updates.iter().filter(|update| update.form == UpdateForm::Said);
    let told: HashMap<&str, &str> = told.map(|update| (&*update.anchor.0, &*update.key)).collect();
    if told.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<(&str, usize)> = Vec::new();
    let mut calls: HashMap<&str, usize> = HashMap::new();
    // Backwards: a result names its call, which stands before it.
    for block in prompt.turns.iter().rev().flat_map(|turn| turn.blocks.iter().rev()) {
        match &*block.content {
            Content::Result(result) => {
                let Source::Message(message) = &result.origin.source else { continue };
                let Some(key) = told.get(&*message.0) else { continue };
                calls.insert(&result.call_id, found.len());
                found.push((key, texts(result).map(|text| counter.count(text)).sum()));
            }
            Content::Call(call) => {
                if let Some(at) = calls.remove(&*call.id) {
                    found[at].1 += counter.count_hashed(call.arguments.hash(), call.arguments.as_str());
                }
            }
            _ => {}
        }
    }
    found
}

fn texts(result: &ToolResult) -> impl Iterator<Item = &Text> {
    let segments = result.parts.iter().flat_map(|part| match part {
        ResultPart::Text(segments) => segments.as_slice(),
        ResultPart::Image(_) => &[],
    });
    segments.map(|segment| &segment.text)
}

#[cfg(test)]
mod tests;
