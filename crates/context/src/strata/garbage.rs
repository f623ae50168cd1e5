//! How much garbage a prompt carries, and whether a fold pays.
//!
//! Garbage is what is sent again though a newer copy replaced it; every request pays rent to read
//! it from the cache. A fold drops it, but writes the cache anew. The rule is that of the ski
//! rental problem: fold once the rent paid since the last fold has reached the price
//! (docs/economy.md).

#![expect(clippy::disallowed_types, reason = "items are looked up by key; what is iterated is added up")]

use std::collections::HashMap;

use hardpan_economy::Rates;
use hardpan_economy::folds::{FoldPrices, FoldSite};
use hardpan_prompt::{Content, Item, Prompt, PromptTokens, ResultPart, Source, Text, ToolResult};

use super::state::{RentAccount, StrataState, UpdateForm};
use crate::layout::LayoutInput;
use crate::{Fold, FoldReason};

/// About how many tokens a stub has: the phrase and the key.
const STUB_TOKENS: usize = 25;

/// Whether the rent has reached the price of a fold, by the account of the last request.
pub fn is_fold_due(input: &LayoutInput<'_>, account: &RentAccount) -> bool {
    account.garbage_tokens > 0 && account.rent > 0.0 && account.rent >= fold_price(input, account)
}

fn fold_price(input: &LayoutInput<'_>, account: &RentAccount) -> f64 {
    fold_prices(input, account).fold_price(&fold_site(account))
}

/// A fold, with the figures of the account before it.
pub fn describe_fold(input: &LayoutInput<'_>, reason: FoldReason, account: &RentAccount) -> Fold {
    Fold {
        reason,
        tokens: account.tokens_after_system,
        garbage: account.garbage_tokens,
        price: fold_price(input, account),
        rent: account.rent,
    }
}

/// The prices of reading and writing the cache. A model that costs nothing reads for nothing, so no
/// fold is ever due.
fn fold_prices(input: &LayoutInput<'_>, account: &RentAccount) -> FoldPrices {
    let (read, write) =
        Rates::for_model(&input.target.model, &input.target.profile, account.tokens_after_system as u64)
            .ratios();
    FoldPrices { read, write }
}

/// What a fold would rewrite: everything after the system prompt.
fn fold_site(account: &RentAccount) -> FoldSite {
    FoldSite { position: 0, tokens_after: account.tokens_after_system, garbage: account.garbage_tokens }
}

/// The account after a request: the rent for the garbage in `prompt` is added.
pub fn charge_rent(
    input: &LayoutInput<'_>,
    strata: &StrataState,
    live: &[&Item],
    prompt: &Prompt,
    measured: &PromptTokens,
) -> RentAccount {
    let head = prompt.tools.len() + prompt.system.len();
    let before = head.checked_sub(1).map_or(0, |last| measured.tokens_through(last));
    let account = RentAccount {
        rent: strata.account.rent,
        tokens_after_system: measured.total() - before,
        garbage_tokens: count_garbage(input, strata, live, prompt),
    };
    RentAccount { rent: account.rent + fold_prices(input, &account).rent(&fold_site(&account)), ..account }
}

/// How many tokens a fold would drop: everything that shows an item, less one copy of its body and
/// the stubs. Only items with updates and items that are gone can have garbage, so a prompt without
/// changes costs no work here.
fn count_garbage(input: &LayoutInput<'_>, strata: &StrataState, live: &[&Item], prompt: &Prompt) -> usize {
    let count = |text: &Text| input.render_cache.counter.count(text);
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
    for (key, tokens) in tokens_shown_by_messages(input, strata, prompt) {
        *shown.entry(key).or_default() += tokens;
        *stubs.entry(key).or_default() += STUB_TOKENS;
    }
    let excess = |(key, tokens): (&&str, &usize)| {
        let needed = bodies.get(key).map_or(0, |body| count(body)) + stubs.get(key).copied().unwrap_or(0);
        tokens.saturating_sub(needed)
    };
    input.target.factor.scale(shown.iter().map(excess).sum())
}

/// For each call and result that shows an item: the item's key, and their tokens.
fn tokens_shown_by_messages<'a>(
    input: &LayoutInput<'_>,
    strata: &'a StrataState,
    prompt: &'a Prompt,
) -> Vec<(&'a str, usize)> {
    let counter = &input.render_cache.counter;
    let keys_by_message = strata.updates.iter().filter(|update| update.form == UpdateForm::ShownByMessage);
    let keys_by_message: HashMap<&str, &str> =
        keys_by_message.map(|update| (&*update.anchor.0, &*update.key)).collect();
    if keys_by_message.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<(&str, usize)> = Vec::new();
    let mut calls: HashMap<&str, usize> = HashMap::new();
    // Backwards, because a result names its call, which comes before it.
    for block in prompt.messages.iter().rev().flat_map(|message| message.blocks.iter().rev()) {
        match &*block.content {
            Content::Result(result) => {
                let Source::Message(message) = &result.origin.source else { continue };
                let Some(key) = keys_by_message.get(&*message.0) else { continue };
                calls.insert(&result.call_id, found.len());
                found.push((key, result_texts(result).map(|text| counter.count(text)).sum()));
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

fn result_texts(result: &ToolResult) -> impl Iterator<Item = &Text> {
    let segments = result.parts.iter().flat_map(|part| match part {
        ResultPart::Text(segments) => segments.as_slice(),
        ResultPart::Image(_) => &[],
    });
    segments.map(|segment| &segment.text)
}

#[cfg(test)]
mod tests;
