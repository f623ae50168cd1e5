//! The arithmetic of folds: when dropping what is no longer true costs less than sending it along.
//!
//! A prompt cache is a log: appending costs [`write`](FoldPrices::write), sending again costs [`read`](FoldPrices::read), and a
//! change rewrites all that follows. *Garbage* is what is still sent and no longer true; each request pays rent for it. A
//! *fold* at a [`Site`] drops the garbage after it, at the [`price`](FoldPrices::fold) of writing the rest again. [`Accounts`]
//! keep the rent paid so far for each site, and fold where it has reached the price: the ski-rental rule. What that
//! is worth at worst is derived in `docs/economy.md`.
//!
//! ```
//! use hardpan_economy::folds::{Accounts, FoldPrices, Site};
//!
//! let prices = FoldPrices { read: 0.1, write: 1.25 };
//! let site = Site { place: 3, after: 10_000, garbage: 4000 };
//! let mut accounts = Accounts::default();
//! let mut requests = 0;
//! while accounts.decide(&prices, &[site]).is_none() {
//!     accounts.charge(&prices, &[site]); // the garbage was sent along once more, for 400
//!     requests += 1;
//! }
//! // 1.25 × 6,000 to write what is left, less 0.1 × 10,000 that reading it all would have cost.
//! assert_eq!(prices.fold(&site), 6500.0);
//! assert_eq!(requests, 17);
//! ```

use std::collections::BTreeMap;

use hardpan_models::{Model, Wire};
use serde::{Deserialize, Serialize};

use crate::{Amounts, Rates};

/// What a cached prompt costs, in units of one token of plain input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoldPrices {
    /// A token that is read from the cache.
    pub read: f64,
    /// A token that is written to it for the usual lifetime.
    pub write: f64,
}

impl FoldPrices {
    /// Those of a model for a request of so many tokens. Where no price is known, the provider's factors on the input
    /// price hold, or Anthropic's.
    pub fn of(model: &Model, wire: &Wire, tokens: usize) -> Self {
        const MILLION: usize = 1_000_000;
        let rates = Rates::of(model, wire, tokens);
        let input = rates.dollars(Amounts { input: MILLION, ..Amounts::default() });
        if input > 0.0 {
            let read = rates.dollars(Amounts { read: MILLION, ..Amounts::default() });
            let write = rates.dollars(Amounts { write: MILLION, ..Amounts::default() });
            return FoldPrices { read: read / input, write: write / input };
        }
        FoldPrices {
            read: wire.cache.read_factor.unwrap_or(0.1),
            write: wire.cache.write_factor.unwrap_or(1.25),
        }
    }

    /// What a fold at `site` costs now, beyond sending everything once more: the rest after the site is written in place of
    /// all of it being read. Negative where so much goes that the fold pays at once.
    pub fn fold(&self, site: &Site) -> f64 {
        let Site { place: _, after, garbage } = *site;
        self.write * (after as f64 - garbage as f64) - self.read * after as f64
    }

    /// What one request pays for the garbage after `site`.
    pub fn rent(&self, site: &Site) -> f64 {
        self.read * site.garbage as f64
    }
}

/// Where a fold could begin: the end of a cache entry that can be read now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its name: how much comes before it, in blocks or any other measure that grows along the prompt.
    pub place: usize,
    /// The cached tokens after it.
    pub after: usize,
    /// The garbage after it: how much shorter the prompt would be after a fold here.
    pub garbage: usize,
}

/// The rent that was paid for the garbage after each site, and that no fold has used up yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Accounts {
    paid: BTreeMap<usize, f64>,
}

impl Accounts {
    /// The rent on the account of a place.
    pub fn paid(&self, place: usize) -> f64 {
        self.paid.get(&place).copied().unwrap_or(0.0)
    }

    /// Notes that a request sent the garbage along.
    pub fn charge(&mut self, prices: &FoldPrices, sites: &[Site]) {
        for site in sites.iter().filter(|site| site.garbage > 0) {
            *self.paid.entry(site.place).or_insert(0.0) += prices.rent(site);
        }
    }

    /// The site where a fold is due: of those whose account has reached the price, the one that is furthest beyond it; of
    /// equals the first. None where there is no garbage.
    pub fn decide(&self, prices: &FoldPrices, sites: &[Site]) -> Option<Site> {
        let mut due: Option<(f64, Site)> = None;
        for site in sites.iter().filter(|site| site.garbage > 0) {
            let beyond = self.paid(site.place) - prices.fold(site);
            if beyond >= 0.0 && due.is_none_or(|(most, _)| beyond > most) {
                due = Some((beyond, *site));
            }
        }
        due.map(|(_, site)| site)
    }

    /// Notes a fold at `place`: what comes after is new, and the rent that paid for the fold is used up for all places
    /// before it, too.
    pub fn fold(&mut self, place: usize) {
        let used = self.paid(place);
        self.paid.retain(|other, _| *other < place);
        self.paid.values_mut().for_each(|paid| *paid = (*paid - used).max(0.0));
    }

    /// Forgets the places after `place`, because the prompt was cut there.
    pub fn cut(&mut self, place: usize) {
        self.paid.retain(|other, _| *other <= place);
    }
}

#[cfg(test)]
mod tests {
    use hardpan_models::Catalogue;

    use super::*;

    const PRICES: FoldPrices = FoldPrices { read: 0.1, write: 1.25 };

    fn site(place: usize, after: usize, garbage: usize) -> Site {
        Site { place, after, garbage }
    }

    #[test]
    fn the_price_of_a_fold_counts_what_is_not_read_any_more() {
        assert_eq!(PRICES.fold(&site(0, 1000, 0)), 1150.0);
        assert_eq!(PRICES.fold(&site(0, 1000, 400)), 650.0);
        assert!(PRICES.fold(&site(0, 1000, 950)) < 0.0);
        // Nothing is cached after the site: whatever goes is saved at the price of writing.
        assert_eq!(PRICES.fold(&site(0, 0, 400)), -500.0);
    }

    #[test]
    fn a_lost_cache_is_a_free_fold() {
        assert_eq!(Accounts::default().decide(&PRICES, &[site(0, 0, 1)]), Some(site(0, 0, 1)));
        assert_eq!(Accounts::default().decide(&PRICES, &[site(0, 0, 0)]), None);
    }

    #[test]
    fn the_account_that_is_furthest_beyond_its_price_folds() {
        let sites = [site(0, 10_000, 1000), site(5, 1200, 900)];
        let mut accounts = Accounts::default();
        assert_eq!(PRICES.fold(&sites[1]).round(), 255.0);
        for _ in 0..2 {
            accounts.charge(&PRICES, &sites);
            assert_eq!(accounts.decide(&PRICES, &sites), None);
        }
        accounts.charge(&PRICES, &sites);
        assert_eq!(accounts.decide(&PRICES, &sites), Some(sites[1]));
    }

    #[test]
    fn rent_pays_for_one_fold_only() {
        let sites = [site(0, 10_000, 1000), site(5, 1200, 900), site(7, 1000, 900)];
        let mut accounts = Accounts::default();
        (0..3).for_each(|_| accounts.charge(&PRICES, &sites));
        accounts.fold(5);
        assert!((accounts.paid(0) - 3.0 * (100.0 - 90.0)).abs() < 1e-9);
        assert_eq!((accounts.paid(5), accounts.paid(7)), (0.0, 0.0));
    }

    #[test]
    fn prices_come_from_the_catalogue() {
        let catalogue = Catalogue::builtin();
        let model = catalogue.model(Some("anthropic"), "claude-sonnet-4-5").unwrap();
        let wire = catalogue.provider("anthropic").unwrap().for_model(&model);
        let FoldPrices { read, write } = FoldPrices::of(&model, &wire, 1000);
        assert!((read - 0.1).abs() < 1e-9 && (write - 1.25).abs() < 1e-9);
    }
}
