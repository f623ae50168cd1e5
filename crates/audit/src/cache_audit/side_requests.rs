//! [`SideBill`]: what was billed for requests of which a recording has only the sum.

use std::sync::Arc;

use hardpan_models::Catalogue;
use hardpan_prompt::TokenUsage;

use super::{Audit, Bill};
use crate::model_facts::ModelFacts;
use crate::{BilledRequest, SideUsage};

/// What a model was billed for in requests of which only the sum is recorded: compactions, titles,
/// sub-agents with files of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct SideBill {
    /// The model's id as it is recorded.
    pub model: Arc<str>,
    /// What was billed for all of these requests.
    pub bill: Bill,
    /// What the answers cost, in dollars. `None` where no price is known.
    pub answer_dollars: Option<f64>,
    /// What the requests were for, by the agent's names, where they are recorded.
    pub purposes: Vec<Arc<str>>,
}

impl SideBill {
    /// Prices the side usage of a recording whose requests have been sent to these models.
    pub(super) fn new(catalogue: &Catalogue, requests: &[BilledRequest], side: &SideUsage) -> Self {
        let provider = requests.iter().find_map(|request| request.provider.as_deref());
        let facts = ModelFacts::look_up(catalogue, provider, &side.model);
        // How large each request was is not recorded; prices are those of ordinary ones.
        let prices = facts.prices_for(0);
        let mut bill = Bill::default();
        bill.add_request(&side.usage, &prices);
        SideBill {
            model: side.model.clone(),
            bill,
            answer_dollars: facts
                .answer_dollars(&TokenUsage { output: side.usage.output, ..TokenUsage::default() }),
            purposes: side.purposes.clone(),
        }
    }

    fn dollars(&self) -> Option<f64> {
        Some(self.bill.dollars? + self.answer_dollars?)
    }

    /// The same bill for a part of its tokens, at the same average prices.
    fn share(&self, tokens: TokenUsage) -> SideBill {
        let part = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let prompts = part(tokens.prompt(), self.bill.tokens.prompt());
        let answers = part(tokens.output, self.bill.tokens.output);
        SideBill {
            model: self.model.clone(),
            bill: Bill {
                tokens,
                cost: self.bill.cost * prompts,
                dollars: self.bill.dollars.map(|dollars| dollars * prompts),
            },
            answer_dollars: self.answer_dollars.map(|dollars| dollars * answers),
            purposes: self.purposes.clone(),
        }
    }
}

impl Audit {
    /// Adds side requests. They cost what they cost, with any prefix.
    pub(super) fn add_side_requests(&mut self, side: SideBill) {
        self.billed.add(&side.bill);
        self.predicted.add(&side.bill);
        self.stable_prefix_cost += side.bill.cost;
        self.total_dollars = self.total_dollars.zip(side.dollars()).map(|(sum, more)| sum + more);
        if side.bill.dollars.is_none() && !self.unpriced.contains(&side.model) {
            self.unpriced.push(side.model.clone());
        }
        self.side_requests.push(side);
    }

    /// Takes the requests of sub-agents that were audited from files of their own out of the side
    /// requests of their sessions: nothing is to be counted twice.
    pub fn deduct_sub_agents(audits: &mut [Audit]) {
        for at in 0..audits.len() {
            let (before, rest) = audits.split_at_mut(at);
            let Some((audit, after)) = rest.split_first_mut() else { return };
            if !audit.side_requests.is_empty() {
                before.iter().chain(after.iter()).for_each(|other| audit.deduct(other));
            }
        }
    }

    fn deduct(&mut self, other: &Audit) {
        let is_part = self.session.is_some() && self.session == other.session && other.agent == self.agent;
        if !is_part || !other.side_requests.is_empty() {
            return;
        }
        for request in &other.requests {
            let Some(at) = self.side_requests.iter().position(|side| request.model.starts_with(&*side.model))
            else {
                continue;
            };
            let side = &self.side_requests[at];
            let rest = side.share(side.bill.tokens.saturating_sub(&request.bill.tokens));
            let mut taken = side.bill;
            taken.subtract(&rest.bill);
            let dollars = side.dollars().zip(rest.dollars()).map(|(all, rest)| all - rest);
            self.side_requests[at] = rest;
            self.billed.subtract(&taken);
            self.predicted.subtract(&taken);
            self.stable_prefix_cost -= taken.cost;
            self.total_dollars = self.total_dollars.zip(dollars).map(|(all, taken)| all - taken);
        }
        self.side_requests.retain(|side| side.bill.tokens.prompt() > 0);
    }
}
