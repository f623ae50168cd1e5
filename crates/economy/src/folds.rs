//! The arithmetic of folds: when it is cheaper to drop what is no longer true than to keep sending
//! it.
//!
//! A prompt cache is a log: appending costs [`write`](FoldPrices::write), sending again costs
//! [`read`](FoldPrices::read), and a change rewrites everything after it. *Garbage* is what is
//! still sent but no longer true; each request pays *rent* for it. A *fold* at a [`FoldSite`] drops
//! the garbage after it, at the [price](FoldPrices::fold_price) of writing the rest again.
//! [`RentAccounts`] keep the rent paid so far for each site, and fold where it has reached most of the
//! price and the rent to come is expected to reach all of it: the ski-rental rule, with a look at how
//! long the session may still go on. `docs/economy.md` derives what that costs at worst.
//!
//! ```
//! use hardpan_economy::folds::{RentAccounts, FoldPrices, FoldSite};
//!
//! let prices = FoldPrices { read: 0.1, write: 1.25 };
//! let site = FoldSite { position: 3, tokens_after: 10_000, garbage: 4000, lost: 0.0 };
//! let mut accounts = RentAccounts::default();
//! let mut requests = 60;
//! while accounts.choose_fold(&prices, &[site], requests).is_none() {
//!     accounts.charge_rent(&prices, &[site]); // the garbage was sent along once more, for 400
//!     requests += 1;
//! }
//! // 1.25 × 6,000 to write what is left, less 0.1 × 10,000 that reading it all would have cost.
//! assert_eq!(prices.fold_price(&site), 6500.0);
//! assert_eq!(requests, 60 + 13); // three quarters of that, at 400 a request
//! ```

use std::collections::BTreeMap;

use hardpan_models::{Model, ProviderProfile};
use hardpan_prompt::TokenUsage;
use serde::{Deserialize, Serialize};

use crate::Rates;

/// A fold is due only where so much of its price has been paid as rent. Together with
/// [`HORIZON_SHARE`] it decides how far the costs can be from the best ones.
const RENT_SHARE: f64 = 0.75;

/// A session is expected to go on for this share of the requests it has had. Chosen on recorded sessions
/// (`docs/economy.md`).
pub const HORIZON_SHARE: f64 = 1.0 / 3.0;

/// The prices of a cached prompt, in units of one token of plain input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoldPrices {
    /// Price of a token read from the cache.
    pub read: f64,
    /// Price of a token written to the cache for the usual lifetime.
    pub write: f64,
}

impl FoldPrices {
    /// The prices of a model for a request with this many tokens. Where no price is known, the
    /// provider's factors apply, or else Anthropic's.
    pub fn for_model(model: &Model, profile: &ProviderProfile, tokens: usize) -> Self {
        const MILLION: u64 = 1_000_000;
        let rates = Rates::for_model(model, profile, tokens as u64);
        let input = rates.input_dollars(&TokenUsage { input: MILLION, ..TokenUsage::default() });
        if input > 0.0 {
            let read = rates.input_dollars(&TokenUsage { cache_read: MILLION, ..TokenUsage::default() });
            let write = rates.input_dollars(&TokenUsage { cache_write_5m: MILLION, ..TokenUsage::default() });
            return FoldPrices { read: read / input, write: write / input };
        }
        FoldPrices {
            read: profile.cache.read_factor.unwrap_or(0.1),
            write: profile.cache.write_factor.unwrap_or(1.25),
        }
    }

    /// What a fold at `site` costs now, beyond sending everything once more: the rest after the
    /// site is written instead of all of it being read. Negative if the fold drops so much that it
    /// pays at once.
    pub fn fold_price(&self, site: &FoldSite) -> f64 {
        let FoldSite { position: _, tokens_after: after, garbage, lost } = *site;
        self.write * (after as f64 - garbage as f64) - self.read * after as f64 + lost
    }

    /// The rent that the garbage after `site` is expected to cost in a session that has had so many
    /// requests.
    fn expected_rent(&self, site: &FoldSite, requests: usize) -> f64 {
        self.rent(site) * HORIZON_SHARE * requests as f64
    }

    /// The rent that one request pays for the garbage after `site`.
    pub fn rent(&self, site: &FoldSite) -> f64 {
        self.read * site.garbage as f64
    }
}

/// A position where a fold could begin: the end of a cache entry that can be read now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoldSite {
    /// How much of the prompt comes before the site, in blocks or any other measure that grows
    /// along the prompt. It identifies the site.
    pub position: usize,
    /// Cached tokens after the site.
    pub tokens_after: usize,
    /// Garbage after the site, in tokens: how much shorter a fold here would make the prompt.
    pub garbage: usize,
    /// What else a fold here would cost: reasoning that it makes worthless, and that the model has to
    /// do again.
    pub lost: f64,
}

/// The rent paid for the garbage after each site, as far as no fold has used it up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RentAccounts {
    paid: BTreeMap<usize, f64>,
}

impl RentAccounts {
    /// The rent on the account of a position.
    pub fn rent_paid(&self, position: usize) -> f64 {
        self.paid.get(&position).copied().unwrap_or(0.0)
    }

    /// Charges the rent of one more request that sent the garbage.
    pub fn charge_rent(&mut self, prices: &FoldPrices, sites: &[FoldSite]) {
        for site in sites.iter().filter(|site| site.garbage > 0) {
            *self.paid.entry(site.position).or_insert(0.0) += prices.rent(site);
        }
    }

    /// The site where a fold is due after so many requests: of those where most of the price has been
    /// paid as rent, the one where the rent that is expected exceeds the price most; the first of
    /// equals. `None`: no fold is due, or there is no garbage.
    pub fn choose_fold(&self, prices: &FoldPrices, sites: &[FoldSite], requests: usize) -> Option<FoldSite> {
        let mut due: Option<(f64, FoldSite)> = None;
        for site in sites.iter().filter(|site| site.garbage > 0) {
            let price = prices.fold_price(site);
            let gain = prices.expected_rent(site, requests) - price;
            let is_paid = self.rent_paid(site.position) >= RENT_SHARE * price;
            if is_paid && gain >= 0.0 && due.is_none_or(|(most, _)| gain > most) {
                due = Some((gain, *site));
            }
        }
        due.map(|(_, site)| site)
    }

    /// How much is missing until a fold at `site` is due, after so many requests.
    pub fn missing(&self, prices: &FoldPrices, site: &FoldSite, requests: usize) -> f64 {
        let price = prices.fold_price(site);
        let unpaid = RENT_SHARE * price - self.rent_paid(site.position);
        unpaid.max(price - prices.expected_rent(site, requests))
    }

    /// Records a fold at `position`: everything after it is new, and the rent that paid for the
    /// fold is used up for all earlier positions, too.
    pub fn record_fold(&mut self, position: usize) {
        let used = self.rent_paid(position);
        self.paid.retain(|other, _| *other < position);
        self.paid.values_mut().for_each(|paid| *paid = (*paid - used).max(0.0));
    }

    /// Forgets a position at which no fold can begin any more.
    pub fn forget(&mut self, position: usize) {
        self.paid.remove(&position);
    }

    /// Whether no rent was paid.
    pub fn is_empty(&self) -> bool {
        self.paid.is_empty()
    }

    /// Forgets the positions after `position`, because the prompt was cut there.
    pub fn truncate_after(&mut self, position: usize) {
        self.paid.retain(|other, _| *other <= position);
    }
}

#[cfg(test)]
mod tests {
    use hardpan_models::Catalogue;

    use super::*;

    const PRICES: FoldPrices = FoldPrices { read: 0.1, write: 1.25 };

    fn site(position: usize, tokens_after: usize, garbage: usize) -> FoldSite {
        FoldSite { position, tokens_after, garbage, lost: 0.0 }
    }

    #[test]
    fn the_price_of_a_fold_counts_what_is_not_read_any_more() {
        assert_eq!(PRICES.fold_price(&site(0, 1000, 0)), 1150.0);
        assert_eq!(PRICES.fold_price(&site(0, 1000, 400)), 650.0);
        assert!(PRICES.fold_price(&site(0, 1000, 950)) < 0.0);
        // Nothing is cached after the site: whatever goes is saved at the price of writing.
        assert_eq!(PRICES.fold_price(&site(0, 0, 400)), -500.0);
    }

    #[test]
    fn a_lost_cache_is_a_free_fold() {
        assert_eq!(RentAccounts::default().choose_fold(&PRICES, &[site(0, 0, 1)], 0), Some(site(0, 0, 1)));
        assert_eq!(RentAccounts::default().choose_fold(&PRICES, &[site(0, 0, 0)], 0), None);
    }

    #[test]
    fn of_the_accounts_that_are_due_the_one_with_the_most_to_gain_folds() {
        let sites = [site(0, 10_000, 1000), site(5, 1200, 900)];
        let mut accounts = RentAccounts::default();
        assert_eq!(PRICES.fold_price(&sites[1]).round(), 255.0);
        for _ in 0..2 {
            accounts.charge_rent(&PRICES, &sites);
            assert_eq!(accounts.choose_fold(&PRICES, &sites, 100), None, "too little rent was paid");
        }
        accounts.charge_rent(&PRICES, &sites);
        assert_eq!(accounts.choose_fold(&PRICES, &sites, 8), None, "the session may be over soon");
        assert_eq!(accounts.choose_fold(&PRICES, &sites, 9), Some(sites[1]));
        assert!(accounts.missing(&PRICES, &sites[1], 8) > 0.0);
        assert!(accounts.missing(&PRICES, &sites[1], 9) <= 0.0);
        (0..100).for_each(|_| accounts.charge_rent(&PRICES, &sites));
        assert_eq!(accounts.choose_fold(&PRICES, &sites, 1000), Some(sites[1]), "of both, it gains more");
        let lost = FoldSite { lost: 1e6, ..sites[1] };
        assert_eq!(accounts.choose_fold(&PRICES, &[lost], 1000), None);
    }

    #[test]
    fn rent_pays_for_one_fold_only() {
        let sites = [site(0, 10_000, 1000), site(5, 1200, 900), site(7, 1000, 900)];
        let mut accounts = RentAccounts::default();
        (0..3).for_each(|_| accounts.charge_rent(&PRICES, &sites));
        accounts.record_fold(5);
        assert!((accounts.rent_paid(0) - 3.0 * (100.0 - 90.0)).abs() < 1e-9);
        assert_eq!((accounts.rent_paid(5), accounts.rent_paid(7)), (0.0, 0.0));
    }

    #[test]
    fn prices_come_from_the_catalogue() {
        let catalogue = Catalogue::builtin();
        let model = catalogue.model(Some("anthropic"), "claude-sonnet-4-5").unwrap();
        let profile = catalogue.provider("anthropic").unwrap().profile_for_model(&model);
        let FoldPrices { read, write } = FoldPrices::for_model(&model, &profile, 1000);
        assert!((read - 0.1).abs() < 1e-9 && (write - 1.25).abs() < 1e-9);
    }
}
