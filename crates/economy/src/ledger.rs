//! What was paid, and for what.
//!
//! The principal type is [`Ledger`]. Every completed request becomes a [`Charge`]: what the
//! provider billed, at the prices of that moment, split over the items of its prompt so that the
//! parts add up to the bill. A ledger sums charges up for the session, and by day, model, purpose,
//! kind and key. It grows with the number of keys, not with the number of requests.
//!
//! A session file keeps [`Charge::summarized_by_kind`] for each request, or the ledger itself now
//! and then.

mod charge; // Charge: one request's bill, split
mod completed_request; // CompletedRequest, Prices: what the agent reports
pub(crate) mod short_names; // the names of token counts in the JSON of bills
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_prompt::ItemKind;
use hardpan_prompt::TokenUsage;
use serde::{Deserialize, Serialize};

pub use charge::{Account, Charge, ChargeRow};
pub use completed_request::{CompletedRequest, Continuity, Prices, RequestPurpose};

use crate::verdict::Verdict;

/// A sum of charges, or of parts of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// How many requests contributed.
    pub requests: u64,
    /// The tokens, by how they were billed.
    #[serde(flatten, with = "short_names")]
    pub tokens: TokenUsage,
    /// The price of these tokens, in dollars.
    pub dollars: f64,
    /// Requests in which most of it was read from the cache, according to the provider.
    pub hits: u64,
    /// Requests in which most of it was not read from the cache.
    pub misses: u64,
}

impl Totals {
    fn add_charge(&mut self, tokens: &TokenUsage, dollars: f64) {
        self.requests += 1;
        self.tokens += *tokens;
        self.dollars += dollars;
        // The seam between read and not read falls on our count of it, so an item can be cut by a
        // few tokens: what most of it was, it was.
        match tokens.prompt() {
            0 => {}
            prompt if tokens.cache_read > prompt / 2 => self.hits += 1,
            _ => self.misses += 1,
        }
    }

    fn merge(&mut self, other: &Totals) {
        let Totals { requests, tokens, dollars, hits, misses } = other;
        self.requests += requests;
        self.tokens += *tokens;
        self.dollars += dollars;
        self.hits += hits;
        self.misses += misses;
    }
}

/// What one cause of cache losses has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// How many requests lost something for this cause.
    pub times: u64,
    /// Tokens that were paid again.
    pub tokens: u64,
    /// Dollars paid for them beyond the price of reading them.
    pub dollars: f64,
}

/// A row of [`Ledger::by_key`] as it is serialized, since JSON objects only have strings as keys.
#[derive(Serialize, Deserialize)]
struct KeyRow {
    #[serde(flatten)]
    account: Account,
    totals: Totals,
}

/// Everything that was paid in one session, or in several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// All requests, side requests included.
    pub total: Totals,
    /// By the day in the person's time zone: `2026-08-14`.
    pub by_day: BTreeMap<Arc<str>, Totals>,
    /// By `provider/model`: `anthropic/claude-sonnet-5`.
    pub by_model: BTreeMap<Arc<str>, Totals>,
    /// By the purpose of the requests.
    pub by_purpose: BTreeMap<RequestPurpose, Totals>,
    /// By what was paid for, in full detail.
    #[serde(with = "keys")]
    pub by_key: BTreeMap<Account, Totals>,
    /// What was paid again, by the name of the cause.
    pub losses: BTreeMap<Arc<str>, Losses>,
}

impl Ledger {
    /// Splits the bill of a request, adds it, and returns it.
    pub fn charge(&mut self, request: &CompletedRequest<'_>) -> Charge {
        let charge = Charge::from_request(request);
        self.add(&charge);
        charge
    }

    /// Adds a charge, as when a session is loaded again.
    pub fn add(&mut self, charge: &Charge) {
        let model: Arc<str> = format!("{}/{}", charge.provider, charge.model).into();
        let sums = [
            &mut self.total,
            self.by_day.entry(charge.day.clone()).or_default(),
            self.by_model.entry(model).or_default(),
            self.by_purpose.entry(charge.purpose).or_default(),
        ];
        sums.into_iter().for_each(|sum| sum.add_charge(&charge.tokens, charge.dollars));
        for row in &charge.rows {
            self.by_key.entry(row.account.clone()).or_default().add_charge(&row.tokens, row.dollars);
        }
    }

    /// Adds what a verdict says was lost.
    pub fn record_loss(&mut self, verdict: &Verdict) {
        if verdict.is_loss() {
            let losses = self.losses.entry(verdict.cause.account()).or_default();
            losses.times += 1;
            losses.tokens += verdict.lost_tokens;
            losses.dollars += verdict.lost_dollars;
        }
    }

    /// Adds another session's ledger.
    pub fn merge(&mut self, other: &Ledger) {
        fn each<K: Ord + Clone>(into: &mut BTreeMap<K, Totals>, from: &BTreeMap<K, Totals>) {
            from.iter().for_each(|(key, totals)| into.entry(key.clone()).or_default().merge(totals));
        }
        let Ledger { total, by_day, by_model, by_purpose, by_key, losses } = other;
        self.total.merge(total);
        each(&mut self.by_day, by_day);
        each(&mut self.by_model, by_model);
        each(&mut self.by_purpose, by_purpose);
        each(&mut self.by_key, by_key);
        for (cause, Losses { times, tokens, dollars }) in losses {
            let losses = self.losses.entry(cause.clone()).or_default();
            losses.times += times;
            losses.tokens += tokens;
            losses.dollars += dollars;
        }
    }

    /// Sums by kind. `None`: the answers, and what the provider added. Requests, hits and misses
    /// count each key of the kind.
    pub fn by_kind(&self) -> BTreeMap<Option<ItemKind>, Totals> {
        let mut kinds: BTreeMap<Option<ItemKind>, Totals> = BTreeMap::new();
        for (account, totals) in &self.by_key {
            kinds.entry(account.kind).or_default().merge(totals);
        }
        kinds
    }

    /// What an item or panel has cost so far.
    pub fn totals_for_key(&self, key: &str) -> Totals {
        let mut sum = Totals::default();
        let found = self.by_key.iter().filter(|(account, _)| *account.key == *key);
        found.for_each(|(_, totals)| sum.merge(totals));
        sum
    }
}

mod keys {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Account, KeyRow, Totals};

    pub fn serialize<S: Serializer>(map: &BTreeMap<Account, Totals>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(
            map.iter().map(|(account, totals)| KeyRow { account: account.clone(), totals: *totals }),
        )
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<Account, Totals>, D::Error> {
        let rows = Vec::<KeyRow>::deserialize(from)?;
        Ok(rows.into_iter().map(|KeyRow { account, totals }| (account, totals)).collect())
    }
}
