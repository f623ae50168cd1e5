//! [`ModelPricing`]: how the provider of a request caches, and what it charges.

use hardpan_context::Target;
use hardpan_prompt::{TokenFactor, TokenUsage};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use hardpan_economy::cache::{CacheRules, ImplicitMarker, Invalidation, PositionCounting, Section};
use hardpan_economy::folds::FoldPrices;
use hardpan_models::{CacheKind, Catalogue, Price, ReasoningBinding, UnknownName};

use crate::import::{BilledRequest, Recording, SourceAgent};
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
    /// The model as requests are laid out for it.
    pub target: Target,
}

impl ModelPricing {
    /// The pricing of a model to which a recording has requests with this usage in sum. A model that
    /// the catalogue does not list has the rules and ratios of its maker, and no price.
    fn look_up(
        catalogue: &Catalogue,
        provider: Option<&str>,
        name: &Arc<str>,
        (used, largest): (&TokenUsage, u64),
    ) -> Result<Self, UnknownName> {
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
        Ok(ModelPricing {
            model: name.clone(),
            folds: FoldPrices { read: prices.read, write: prices.write },
            prices,
            factor: facts.entry.as_ref().map_or(1.0, |model| model.token_factor),
            target: replay_target(&facts, &rules, &prices, name, largest)?,
            facts,
            rules,
        })
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
    pub fn new(catalogue: &Catalogue, recording: &Recording) -> Result<Self, UnknownName> {
        let mut used: BTreeMap<ProviderAndModel, (TokenUsage, u64)> = BTreeMap::new();
        for request in &recording.requests {
            let (sum, largest) = used.entry((request.provider.clone(), request.model.clone())).or_default();
            *sum += request.usage;
            *largest = request.usage.prompt().max(*largest);
        }
        let is_own = recording.agent == SourceAgent::Hardpan;
        let known = used.into_iter().map(|((provider, model), (used, largest))| {
            let mut pricing =
                ModelPricing::look_up(catalogue, provider.as_deref(), &model, (&used, largest))?;
            if !is_own {
                pricing.target.model.binding = ReasoningBinding::None;
                (pricing.target.model.system_messages, pricing.target.model.message_effort) = (false, false);
            }
            Ok(((provider, model), Rc::new(pricing)))
        });
        Ok(PricingTable { known: known.collect::<Result<_, UnknownName>>()? })
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

/// The model as the layouts see it: with the prices and the cache of the recording, tools, and a window
/// that holds every recorded request, whatever a layout adds to it.
fn replay_target(
    facts: &ModelFacts,
    rules: &CacheRules,
    prices: &InputPrices,
    name: &Arc<str>,
    largest: u64,
) -> Result<Target, UnknownName> {
    let mut model = match &facts.entry {
        Some(model) => model.clone(),
        // Nobody knows whose it is: any row will do, since the prices and the cache are not its own.
        None => Catalogue::builtin().model(Some("anthropic"), name)?,
    };
    // What is lost of a turn's reasoning is priced as output.
    let output = if model.price.input > 0.0 { model.price.output / model.price.input } else { 0.0 };
    model.price = Price {
        input: 1.0,
        output,
        cache_read: Some(prices.read),
        cache_write: Some(prices.write),
        cache_write_1h: Some(prices.write_1h),
    };
    model.price_above.clear();
    (model.tools, model.vision) = (true, true);
    let max_tokens = model.default_max_tokens();
    let needed = u32::try_from(3 * largest).unwrap_or(u32::MAX / 2).saturating_add(max_tokens);
    model.context = model.context.max(needed);
    let mut profile = facts.profile.clone();
    profile.cache = rules.cache;
    let factor = TokenFactor::new(model.token_factor);
    Ok(Target { provider: model.provider.clone(), profile, model, max_tokens, factor })
}
