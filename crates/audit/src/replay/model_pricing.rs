//! [`ModelPricing`]: how the provider of a request caches, and what it charges.

use hardpan_prompt::TokenUsage;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use hardpan_economy::cache::CacheRules;
use hardpan_economy::folds::FoldPrices;
use hardpan_economy::ledger::Prices;
use hardpan_models::{Catalogue, Model};

use crate::import::{BilledRequest, SourceAgent};

/// The cache rules and prices of one model.
#[derive(Clone, Debug)]
pub(crate) struct ModelPricing {
    pub model: Arc<str>,
    pub rules: CacheRules,
    pub folds: FoldPrices,
    /// The price of a token written for an hour, in units of one uncached input token.
    write_1h: f64,
    /// The price of a million uncached input tokens, in dollars.
    pub input_dollars: f64,
    /// How many of the model's tokens one counted token stands for.
    pub factor: f64,
    /// The context window, in tokens.
    pub window: usize,
}

impl ModelPricing {
    fn look_up(
        catalogue: &Catalogue,
        agent: SourceAgent,
        provider: Option<&str>,
        name: &str,
    ) -> Option<Self> {
        let model = find_model(catalogue, agent, provider, name)?;
        let wire = catalogue.provider(&model.provider).ok()?.profile_for_model(&model);
        let prices = Prices::for_model(&model, &wire, 0);
        let hour = wire.cache.write_1h_factor.unwrap_or(2.0);
        Some(ModelPricing {
            model: name.into(),
            rules: CacheRules::for_model(&model, &wire),
            folds: FoldPrices::for_model(&model, &wire, 0),
            write_1h: if prices.input > 0.0 { prices.write_1h / prices.input } else { hour },
            input_dollars: prices.input,
            factor: model.token_factor,
            window: model.context as usize,
        })
    }

    /// What these tokens cost, in units of one uncached input token. Output is not counted.
    pub fn cost(&self, tokens: &TokenUsage) -> f64 {
        let TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, output: _, reasoning: _ } =
            *tokens;
        input as f64
            + self.folds.read * cache_read as f64
            + self.folds.write * cache_write_5m as f64
            + self.write_1h * cache_write_1h as f64
    }
}

/// The catalogue's model of this name, with or without the date in it. For an unknown one, the
/// usual model of the agent, so that every session can be replayed.
fn find_model(
    catalogue: &Catalogue,
    agent: SourceAgent,
    provider: Option<&str>,
    name: &str,
) -> Option<Model> {
    let undated =
        name.rsplit_once('-').filter(|(_, end)| end.len() == 8 && end.bytes().all(|b| b.is_ascii_digit()));
    let names = [Some(name), undated.map(|(name, _)| name)];
    let listed = names.into_iter().flatten().find_map(|name| {
        provider
            .and_then(|provider| catalogue.model(Some(provider), name).ok())
            .or_else(|| catalogue.model(None, name).ok())
    });
    let is_openai = agent == SourceAgent::Codex || name.starts_with("gpt") || provider == Some("openai");
    let usual = if is_openai { ("openai", "gpt-5.5") } else { ("anthropic", "claude-sonnet-4-5") };
    listed.or_else(|| catalogue.model(Some(usual.0), usual.1).ok())
}

/// A provider, where it is recorded, and a model's name.
type ProviderAndModel = (Option<Arc<str>>, Arc<str>);

/// The pricing of all models of a recording, each looked up once.
pub(crate) struct PricingTable<'a> {
    catalogue: &'a Catalogue,
    agent: SourceAgent,
    known: BTreeMap<ProviderAndModel, Option<Rc<ModelPricing>>>,
}

impl<'a> PricingTable<'a> {
    pub fn new(catalogue: &'a Catalogue, agent: SourceAgent) -> Self {
        PricingTable { catalogue, agent, known: BTreeMap::new() }
    }

    pub fn look_up(&mut self, request: &BilledRequest) -> Option<Rc<ModelPricing>> {
        let key = (request.provider.clone(), request.model.clone());
        let (catalogue, agent) = (self.catalogue, self.agent);
        let look = || {
            ModelPricing::look_up(catalogue, agent, request.provider.as_deref(), &request.model).map(Rc::new)
        };
        self.known.entry(key).or_insert_with(look).clone()
    }
}
