//! [`ModelPricing`]: how the provider of a request caches, and what it charges.

use hardpan_prompt::TokenUsage;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use hardpan_economy::cache::{CacheRules, ImplicitMarker, Invalidation, PositionCounting, Section};
use hardpan_economy::folds::FoldPrices;
use hardpan_models::{CacheKind, Catalogue};

use crate::import::{BilledRequest, Recording};
use crate::model_facts::{InputPrices, ModelFacts};

/// The cache rules and prices of one model.
#[derive(Clone, Debug)]
pub(crate) struct ModelPricing {
    pub model: Arc<str>,
    pub rules: CacheRules,
    pub folds: FoldPrices,
    facts: ModelFacts,
    prices: InputPrices,
    /// How many of the model's tokens one counted token stands for.
    pub factor: f64,
    /// The context window, in tokens. Unlimited where it is not known.
    pub window: usize,
}

impl ModelPricing {
    /// The pricing of a model to which a recording has requests with this usage in sum. A model that
    /// the catalogue does not list has the rules and ratios of its maker, and no price.
    fn look_up(catalogue: &Catalogue, provider: Option<&str>, name: &Arc<str>, used: &TokenUsage) -> Self {
        let facts = ModelFacts::look_up(catalogue, provider, name);
        let mut prices = facts.prices_for(0);
        // A provider that reports reads and no writes bills what it writes as plain input.
        if used.cache_read > 0 && used.cache_written() == 0 {
            (prices.write, prices.write_1h) = (1.0, 1.0);
        }
        let mut rules = match &facts.entry {
            Some(model) => CacheRules::for_model(model, &facts.profile),
            None => CacheRules {
                cache: facts.profile.cache,
                invalidation: Invalidation::None,
                implicit: ImplicitMarker::None,
                tools: PositionCounting::Each,
                tool_runs: PositionCounting::Each,
                thinking: Section::Messages,
                slots: None,
            },
        };
        if rules.cache.kind == CacheKind::None && used.cache_read > 0 {
            rules.cache.kind = CacheKind::Automatic;
        }
        let listed = facts.entry.as_ref().filter(|model| model.listed);
        ModelPricing {
            model: name.clone(),
            rules,
            folds: FoldPrices { read: prices.read, write: prices.write },
            prices,
            factor: facts.entry.as_ref().map_or(1.0, |model| model.token_factor),
            window: listed.map_or(usize::MAX, |model| model.context as usize),
            facts,
        }
    }

    /// What these tokens cost, in units of one uncached input token. Output is not counted.
    pub fn cost(&self, tokens: &TokenUsage) -> f64 {
        self.prices.cost(tokens)
    }

    /// The same in dollars: some models cost more above a size. `None` where no price is known.
    pub fn dollars(&self, tokens: &TokenUsage) -> Option<f64> {
        Some(self.cost(tokens) * self.facts.prices_for(tokens.prompt()).dollars_per_unit?)
    }
}

/// A provider, where it is recorded, and a model's name.
type ProviderAndModel = (Option<Arc<str>>, Arc<str>);

/// The pricing of all models of a recording.
pub(crate) struct PricingTable {
    known: BTreeMap<ProviderAndModel, Rc<ModelPricing>>,
}

impl PricingTable {
    pub fn new(catalogue: &Catalogue, recording: &Recording) -> Self {
        let mut used: BTreeMap<ProviderAndModel, TokenUsage> = BTreeMap::new();
        for request in &recording.requests {
            *used.entry((request.provider.clone(), request.model.clone())).or_default() += request.usage;
        }
        let known = used.into_iter().map(|((provider, model), used)| {
            let pricing = ModelPricing::look_up(catalogue, provider.as_deref(), &model, &used);
            ((provider, model), Rc::new(pricing))
        });
        PricingTable { known: known.collect() }
    }

    pub fn look_up(&self, request: &BilledRequest) -> Rc<ModelPricing> {
        self.known[&(request.provider.clone(), request.model.clone())].clone()
    }

    /// The models without a known price.
    pub fn unpriced(&self) -> Vec<Arc<str>> {
        let unpriced = self.known.values().filter(|pricing| pricing.prices.dollars_per_unit.is_none());
        unpriced.map(|pricing| pricing.model.clone()).collect()
    }
}
