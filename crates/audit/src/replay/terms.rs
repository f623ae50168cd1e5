//! How a request's provider caches, and what it asks.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use hardpan_economy::cache::Rules;
use hardpan_economy::folds::FoldPrices;
use hardpan_economy::ledger::{Prices, Tokens};
use hardpan_models::{Catalogue, Model};

use crate::import::{Agent, BilledRequest};

/// Rules and prices of one model.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub model: Arc<str>,
    pub rules: Rules,
    pub folds: FoldPrices,
    /// A token written for an hour, in units of one token of plain input.
    write_1h: f64,
    /// Dollars of a million tokens of plain input.
    pub input_dollars: f64,
    /// Tokens of the model per token counted.
    pub factor: f64,
    /// The context window.
    pub window: usize,
}

impl Terms {
    fn of(catalogue: &Catalogue, agent: Agent, provider: Option<&str>, name: &str) -> Option<Self> {
        let model = find(catalogue, agent, provider, name)?;
        let wire = catalogue.provider(&model.provider).ok()?.for_model(&model);
        let prices = Prices::of(&model, &wire, 0);
        let hour = wire.cache.write_1h_factor.unwrap_or(2.0);
        Some(Terms {
            model: name.into(),
            rules: Rules::of(&model, &wire),
            folds: FoldPrices::of(&model, &wire, 0),
            write_1h: if prices.input > 0.0 { prices.write_1h / prices.input } else { hour },
            input_dollars: prices.input,
            factor: model.token_factor,
            window: model.context as usize,
        })
    }

    /// What tokens cost in units of one token of plain input, output left out.
    pub fn cost(&self, tokens: &Tokens) -> f64 {
        let Tokens { input, read, write, write_1h, output: _ } = *tokens;
        input as f64
            + self.folds.read * read as f64
            + self.folds.write * write as f64
            + self.write_1h * write_1h as f64
    }
}

/// The model as it is listed, without the date in its name, or the usual one of who recorded it: a session must be readable
/// whatever was used.
fn find(catalogue: &Catalogue, agent: Agent, provider: Option<&str>, name: &str) -> Option<Model> {
    let undated =
        name.rsplit_once('-').filter(|(_, end)| end.len() == 8 && end.bytes().all(|b| b.is_ascii_digit()));
    let names = [Some(name), undated.map(|(name, _)| name)];
    let listed = names.into_iter().flatten().find_map(|name| {
        provider
            .and_then(|provider| catalogue.model(Some(provider), name).ok())
            .or_else(|| catalogue.model(None, name).ok())
    });
    let is_openai = agent == Agent::Codex || name.starts_with("gpt") || provider == Some("openai");
    let usual = if is_openai { ("openai", "gpt-5.5") } else { ("anthropic", "claude-sonnet-4-5") };
    listed.or_else(|| catalogue.model(Some(usual.0), usual.1).ok())
}

/// A provider, where it is recorded, and a model.
type Named = (Option<Arc<str>>, Arc<str>);

/// The terms of all models of a recording, each looked up once.
pub(crate) struct AllTerms<'a> {
    catalogue: &'a Catalogue,
    agent: Agent,
    known: BTreeMap<Named, Option<Rc<Terms>>>,
}

impl<'a> AllTerms<'a> {
    pub fn new(catalogue: &'a Catalogue, agent: Agent) -> Self {
        AllTerms { catalogue, agent, known: BTreeMap::new() }
    }

    pub fn of(&mut self, request: &BilledRequest) -> Option<Rc<Terms>> {
        let key = (request.provider.clone(), request.model.clone());
        let (catalogue, agent) = (self.catalogue, self.agent);
        let look = || Terms::of(catalogue, agent, request.provider.as_deref(), &request.model).map(Rc::new);
        self.known.entry(key).or_insert_with(look).clone()
    }
}
