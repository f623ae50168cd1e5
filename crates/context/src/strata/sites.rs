//! Where a fold could begin, whether one is due, and what garbage has cost so far.

use hardpan_economy::Rates;
use hardpan_economy::folds::{FoldPrices, FoldSite};
use hardpan_prompt::{AgentMessage, Content, MessageBody, Prompt, PromptMessage, PromptTokens, Region, Role};

use super::garbage::Garbage;
use super::lifetimes::LongLived;
use super::state::{GarbageAccount, StrataState};
use super::tool_changes::has_other_tools;
use crate::layout::LayoutInput;
use crate::{Fold, FoldOutlook, FoldReason, KeepLevel};

/// The most places that are kept as the beginning of a fold.
const MAX_SITES: usize = 16;

/// The places of a prompt where a fold could begin, with what it would drop and cost.
pub struct FoldSites {
    prices: FoldPrices,
    sites: Vec<FoldSite>,
    /// Tokens that the cache holds.
    cached_tokens: usize,
    /// How many requests the conversation has had.
    requests: usize,
}

/// The number of blocks before the first message.
pub fn head_blocks(prompt: &Prompt) -> usize {
    prompt.tools.len() + prompt.system.len()
}

impl FoldSites {
    /// The places of a prompt. `cached` is how many of its blocks the cache holds: 0 if it is lost.
    pub fn find(
        input: &LayoutInput<'_>,
        strata: &StrataState,
        prompt: &Prompt,
        measured: &PromptTokens,
        garbage: &Garbage,
        cached: usize,
    ) -> Self {
        let head = head_blocks(prompt);
        let base =
            prompt.tools.len() + prompt.blocks().take_while(|block| block.region == Region::Base).count();
        let through =
            |position: usize| position.checked_sub(1).map_or(0, |last| measured.tokens_through(last));
        let cached_tokens = through(cached);
        let total = measured.total() as u64;
        let rates = Rates::for_model(&input.target.model, &input.target.profile, total);
        let (read, short_write) = rates.ratios();
        let is_long = strata.long_lived == LongLived::Log;
        let write = if is_long { rates.long_write_ratio() } else { short_write };
        // Lost reasoning of the turn in progress is thought again.
        let is_bound = input.target.model.binding.is_bound();
        let reasoning = if is_bound { reasoning_of_turn(prompt, measured) } else { Vec::new() };
        let lost_reasoning = |position: usize| {
            let lost = reasoning.iter().rev().take_while(|(block, _)| *block >= position);
            lost.map(|(_, tokens)| tokens).sum::<usize>()
        };
        // A fold that lays BASE anew declares the tools as they are.
        let kept = |position: usize| match position == head && has_other_tools(input, strata) {
            true => 0,
            false => through(position),
        };
        let site = |position: usize| FoldSite {
            position,
            tokens_after: cached_tokens.saturating_sub(kept(position)),
            garbage: if position == head { garbage.total() } else { garbage.after(position) },
            lost: lost_reasoning(position) as f64 * rates.output_ratio(),
        };
        let mut positions = vec![head];
        positions.extend(Some(base).filter(|base| *base > head && *base < cached));
        let earlier = strata.account.sites.iter().copied();
        positions.extend(earlier.filter(|position| *position > base && *position < cached));
        // What follows the part that lives on is written anyway.
        let is_partly_lost = input.snapshot.fold == Some(FoldReason::ShortCacheLost);
        positions.extend(Some(cached).filter(|cached| is_partly_lost && *cached > head));
        FoldSites {
            prices: FoldPrices { read, write },
            sites: positions.into_iter().map(site).collect(),
            cached_tokens,
            requests: input.snapshot.messages.iter().filter(|message| is_answer(message)).count(),
        }
    }

    /// The fold that is due, if one is.
    pub fn choose_fold(
        &self,
        input: &LayoutInput<'_>,
        account: &GarbageAccount,
        cached: usize,
    ) -> Option<Fold> {
        let whole = self.sites.first()?;
        let asked = input.snapshot.fold.filter(|reason| !reason.is_loss());
        if let Some(reason) = asked {
            return Some(self.describe(account, whole, reason));
        }
        if input.snapshot.keep == KeepLevel::All {
            return None;
        }
        let site = account.rents.choose_fold(&self.prices, &self.sites, self.requests)?;
        let reason = match input.snapshot.fold.filter(|_| site.tokens_after == 0) {
            _ if cached == 0 => FoldReason::CacheLost,
            Some(reason) => reason,
            None => FoldReason::RentPaid,
        };
        Some(self.describe(account, &site, reason))
    }

    fn describe(&self, account: &GarbageAccount, site: &FoldSite, reason: FoldReason) -> Fold {
        Fold {
            reason,
            position: site.position,
            tokens: site.tokens_after,
            garbage: site.garbage,
            price: self.prices.fold_price(site),
            rent: account.rents.rent_paid(site.position),
        }
    }

    /// Charges the rent of this request, and notes where the next fold is closest.
    pub fn charge_rent(&self, account: &mut GarbageAccount) {
        account.rents.charge_rent(&self.prices, &self.sites);
        let missing = |site: &&FoldSite| account.rents.missing(&self.prices, site, self.requests);
        let with_garbage = self.sites.iter().filter(|site| site.garbage > 0);
        let closest = with_garbage.min_by(|a, b| missing(a).total_cmp(&missing(b)));
        account.next_fold = closest.map(|site| FoldOutlook {
            kept_tokens: self.cached_tokens.saturating_sub(site.tokens_after),
            garbage_tokens: site.garbage,
            price: self.prices.fold_price(site).round(),
            rent: account.rents.rent_paid(site.position).round(),
            saving: self.prices.rent(site).round(),
        });
    }
}

fn is_answer(message: &AgentMessage) -> bool {
    matches!(*message.body, MessageBody::Assistant { .. })
}

/// The reasoning of the turn in progress: its blocks, with their tokens.
fn reasoning_of_turn(prompt: &Prompt, measured: &PromptTokens) -> Vec<(usize, usize)> {
    let is_person = |message: &PromptMessage| {
        let has_results = || message.blocks.iter().any(|block| matches!(*block.content, Content::Result(_)));
        message.role == Role::User && !has_results()
    };
    let turn = prompt.messages.iter().rposition(is_person).unwrap_or(0);
    let before: usize = prompt.messages[..turn].iter().map(|message| message.blocks.len()).sum();
    let blocks = prompt.messages[turn..].iter().flat_map(|message| &message.blocks);
    let reasoning = blocks.zip(head_blocks(prompt) + before..);
    let reasoning = reasoning.filter(|(block, _)| matches!(*block.content, Content::Reasoning(_)));
    reasoning.map(|(_, block)| (block, measured.tokens(block))).collect()
}

/// Notes the figures of a request, and that the end of the last one is a place now.
pub fn update_account(
    strata: &mut StrataState,
    prompt: &Prompt,
    measured: &PromptTokens,
    garbage: &Garbage,
    met: Option<usize>,
) {
    let head = head_blocks(prompt);
    let before = head.checked_sub(1).map_or(0, |last| measured.tokens_through(last));
    let account = &mut strata.account;
    account.tokens_after_system = measured.total() - before;
    account.garbage_tokens = garbage.total();
    match met {
        Some(frontier) => {
            account.sites.retain(|site| *site < frontier);
            account.sites.push(frontier);
        }
        None => account.sites.clear(),
    }
    if account.sites.len() > MAX_SITES
        && let Some(removed) = remove_densest(&mut account.sites)
    {
        account.rents.forget(removed);
    }
    let end = account.sites.last().copied().unwrap_or(head);
    account.rents.truncate_after(end.max(head));
}

/// Removes the place that is missed least: whose neighbours are close, compared with how far it is
/// from the end.
fn remove_densest(sites: &mut Vec<usize>) -> Option<usize> {
    let end = sites.last().copied().unwrap_or(0) + 1;
    let density = |at: &usize| {
        let gap = sites[at + 1] - sites[at - 1];
        gap as f64 / (end - sites[*at]) as f64
    };
    let densest = (1..sites.len() - 1).min_by(|a, b| density(a).total_cmp(&density(b)));
    densest.map(|at| sites.remove(at))
}
