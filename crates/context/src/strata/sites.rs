//! Where a fold could begin, whether one is due, and what garbage has cost so far.

use hardpan_economy::Rates;
use hardpan_economy::folds::{FoldPrices, FoldSite};
use hardpan_prompt::{Prompt, PromptTokens, Region};

use super::garbage::Garbage;
use super::state::{GarbageAccount, StrataState};
use crate::layout::LayoutInput;
use crate::{Fold, FoldReason, Keep};

/// The most places that are kept as the beginning of a fold.
const MAX_SITES: usize = 16;

/// The places of a prompt where a fold could begin, with what it would drop and cost.
pub struct FoldSites {
    prices: FoldPrices,
    sites: Vec<FoldSite>,
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
        let (read, write) = Rates::for_model(&input.target.model, &input.target.profile, total).ratios();
        FoldSites { prices: FoldPrices { read, write }, sites: positions.into_iter().map(site).collect() }
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
        if input.snapshot.keep == Keep::All {
            return None;
        }
        let site = account.rents.choose_fold(&self.prices, &self.sites)?;
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

    /// Charges the rent of this request.
    pub fn charge_rent(&self, account: &mut GarbageAccount) {
        account.rents.charge_rent(&self.prices, &self.sites);
    }
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
