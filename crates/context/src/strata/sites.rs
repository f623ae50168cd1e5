//! Where a fold could begin, whether one is due, and what garbage has cost so far.

use hardpan_economy::Rates;
use hardpan_economy::folds::{FoldPrices, FoldSite};
use hardpan_prompt::{Content, Prompt, PromptMessage, PromptTokens, Region, Role};

use super::garbage::Garbage;
use super::state::{GarbageAccount, StrataState};
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
    /// The reasoning of the turn in progress that a fold before it would invalidate: block and tokens.
    reasoning: Vec<(usize, usize)>,
    /// What a token of output costs, in units of one input token: lost reasoning is thought again.
    output_ratio: f64,
}

/// A fold that a request makes, and where.
pub struct DueFold {
    pub fold: Fold,
    /// Blocks before it.
    pub position: usize,
}

/// The number of blocks before the first message.
pub fn head_blocks(prompt: &Prompt) -> usize {
    prompt.tools.len() + prompt.system.len()
}

impl FoldSites {
    /// The places of a prompt. `cached` is how many of its blocks the cache holds: 0 if it is lost.
    pub fn find(
        input: &LayoutInput<'_>,
        account: &GarbageAccount,
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
        let site = |position: usize| FoldSite {
            position,
            tokens_after: cached_tokens.saturating_sub(through(position)),
            garbage: garbage.after(position),
        };
        let mut positions = vec![head];
        positions.extend(Some(base).filter(|base| *base > head && *base < cached));
        positions
            .extend(account.sites.iter().copied().filter(|position| *position > base && *position < cached));
        let total = measured.total() as u64;
        let rates = Rates::for_model(&input.target.model, &input.target.profile, total);
        let (read, write) = rates.ratios();
        FoldSites {
            prices: FoldPrices { read, write },
            sites: positions.into_iter().map(site).collect(),
            cached_tokens,
            reasoning: if input.target.model.binding.is_bound() {
                reasoning_of_turn(prompt, measured)
            } else {
                Vec::new()
            },
            output_ratio: rates.output_ratio(),
        }
    }

    /// The fold that is due, if one is.
    pub fn choose_fold(
        &self,
        input: &LayoutInput<'_>,
        account: &GarbageAccount,
        cached: usize,
    ) -> Option<DueFold> {
        let whole = self.sites.first()?;
        let asked = input.snapshot.fold.filter(|reason| *reason != FoldReason::CacheLost);
        if let Some(reason) = asked {
            return Some(self.describe(account, whole, reason));
        }
        if input.snapshot.keep == KeepLevel::All {
            return None;
        }
        let worth = |site: &FoldSite| {
            let lost = self.reasoning.iter().rev().take_while(|(block, _)| *block >= site.position);
            let lost: usize = lost.map(|(_, tokens)| tokens).sum();
            let beyond = account.rents.rent_paid(site.position) - self.prices.fold_price(site);
            beyond >= lost as f64 * self.output_ratio
        };
        let sites: Vec<FoldSite> = self.sites.iter().copied().filter(worth).collect();
        let site = account.rents.choose_fold(&self.prices, &sites)?;
        let reason = if cached == 0 { FoldReason::CacheLost } else { FoldReason::RentPaid };
        Some(self.describe(account, &site, reason))
    }

    fn describe(&self, account: &GarbageAccount, site: &FoldSite, reason: FoldReason) -> DueFold {
        let fold = Fold {
            reason,
            tokens: site.tokens_after,
            garbage: site.garbage,
            price: self.prices.fold_price(site),
            rent: account.rents.rent_paid(site.position),
        };
        DueFold { fold, position: site.position }
    }

    /// Charges the rent of this request, and notes where the next fold is closest.
    pub fn charge_rent(&self, account: &mut GarbageAccount) {
        account.rents.charge_rent(&self.prices, &self.sites);
        let outlook = |site: &FoldSite| FoldOutlook {
            kept_tokens: self.cached_tokens.saturating_sub(site.tokens_after),
            garbage_tokens: site.garbage,
            price: self.prices.fold_price(site).round(),
            rent: account.rents.rent_paid(site.position).round(),
            saving: self.prices.rent(site).round(),
        };
        let missing = |outlook: &FoldOutlook| outlook.price - outlook.rent;
        let outlooks = self.sites.iter().filter(|site| site.garbage > 0).map(outlook);
        account.next_fold = outlooks.min_by(|a, b| missing(a).total_cmp(&missing(b)));
    }
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
    account.garbage_tokens = garbage.after(head);
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
