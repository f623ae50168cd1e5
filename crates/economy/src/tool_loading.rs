//! [`ToolLoading`]: whether requests declare all tools of servers, or a tool that finds them.
//!
//! Declarations begin every request: they are written to the cache once and read by all further requests,
//! whether or not the model ever calls the tools. A search costs a request more, and what it finds is
//! read by the rest of the conversation. [`ToolLoadingForecast`] has the price of both.

use hardpan_prompt::TokenUsage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Rates;

/// So few tools are always declared: the model need not look for them, and they cost little.
pub const FEW_TOOLS: usize = 10;

/// How many requests a conversation is expected to have, where nothing is known about the user's.
pub const USUAL_REQUESTS: u32 = 100;

/// One search in so many requests: the model looks for several tools at once, and what it has found stays
/// in the conversation.
const REQUESTS_PER_SEARCH: u32 = 20;

/// How many tools a search finds.
const TOOLS_PER_SEARCH: usize = 4;

/// Tokens that the model writes to ask for a search.
const CALL_TOKENS: f64 = 60.0;

/// Tokens that the request after a search reads besides: prompt and conversation of a session of middle
/// length.
const CONTEXT_TOKENS: f64 = 40_000.0;

/// Searching has to save this share: the model calls best what it sees, and a search takes time.
const LEAST_SAVING: f64 = 0.25;

/// How the model gets to know the tools of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolLoading {
    /// Requests declare them all.
    AtOnce,
    /// Requests name them, and the model asks for the schemas that it needs.
    OnDemand,
}

/// What the tools of servers amount to, in tokens of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolLoadingInput {
    /// Number of tools.
    pub tools: usize,
    /// Tokens of all their declarations.
    pub declared_tokens: usize,
    /// Tokens that requests declare instead: the tools that search and call, with the list of names.
    pub listed_tokens: usize,
    /// How many requests the conversation is expected to have.
    pub requests: u32,
}

/// What both ways cost in a conversation, in units of one token of plain input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToolLoadingForecast {
    /// All tools declared by every request.
    pub at_once: f64,
    /// Tools found by searches.
    pub on_demand: f64,
    tools: usize,
}

impl ToolLoadingForecast {
    /// The price of both ways.
    pub fn new(input: &ToolLoadingInput, rates: &Rates) -> Self {
        let (read, write) = rates.ratios();
        let requests = f64::from(input.requests.max(1));
        // Written by the first request, read by the others.
        let in_every_request = |tokens: usize| tokens as f64 * (write + read * (requests - 1.0));
        let searches = input.requests.max(1).div_ceil(REQUESTS_PER_SEARCH);
        let found = (searches as usize).saturating_mul(TOOLS_PER_SEARCH).min(input.tools);
        let found_tokens = input.declared_tokens as f64 * found as f64 / input.tools.max(1) as f64;
        // What a search finds is read by half of the requests on average.
        let results = found_tokens * (write + read * requests / 2.0);
        let round_trip = CONTEXT_TOKENS * read + CALL_TOKENS * (rates.output_ratio() + write);
        ToolLoadingForecast {
            at_once: in_every_request(input.declared_tokens),
            on_demand: in_every_request(input.listed_tokens) + results + f64::from(searches) * round_trip,
            tools: input.tools,
        }
    }

    /// The way that costs less. Searching has to save a quarter, and few tools are always declared.
    pub fn cheaper(&self) -> ToolLoading {
        let saves = self.on_demand < self.at_once * (1.0 - LEAST_SAVING);
        if saves && self.tools >= FEW_TOOLS { ToolLoading::OnDemand } else { ToolLoading::AtOnce }
    }

    /// Dollars of one of the two ways.
    pub fn dollars(&self, loading: ToolLoading, rates: &Rates) -> f64 {
        let units = match loading {
            ToolLoading::AtOnce => self.at_once,
            ToolLoading::OnDemand => self.on_demand,
        };
        rates.input_dollars(&TokenUsage { input: units.round() as u64, ..TokenUsage::default() })
    }
}

#[cfg(test)]
mod tests {
    use hardpan_models::Catalogue;
    use proptest::prelude::*;

    use super::*;

    fn rates(provider: &str, model: &str) -> Rates {
        let catalogue = Catalogue::builtin();
        let model = catalogue.model(Some(provider), model).expect("a model");
        let profile = catalogue.provider(provider).expect("a provider").profile_for_model(&model);
        Rates::for_model(&model, &profile, 0)
    }

    fn forecast(input: ToolLoadingInput) -> ToolLoadingForecast {
        ToolLoadingForecast::new(&input, &rates("anthropic", "claude-sonnet-5"))
    }

    fn input() -> impl Strategy<Value = ToolLoadingInput> {
        (1usize..400, 20usize..600, 5usize..40, 1u32..2000).prop_map(|(tools, each, listed, requests)| {
            let (declared_tokens, listed_tokens) = (tools * each, 200 + tools * listed);
            ToolLoadingInput { tools, declared_tokens, listed_tokens, requests }
        })
    }

    #[test]
    fn eighty_tools_are_found_by_searches_and_a_handful_is_declared() {
        let many =
            ToolLoadingInput { tools: 80, declared_tokens: 14_200, listed_tokens: 2_100, requests: 100 };
        assert_eq!(forecast(many).cheaper(), ToolLoading::OnDemand);
        let few = ToolLoadingInput { tools: 12, declared_tokens: 2_000, listed_tokens: 500, requests: 100 };
        assert_eq!(forecast(few).cheaper(), ToolLoading::AtOnce, "{:?}", forecast(few));
        let rates = rates("anthropic", "claude-sonnet-5");
        let (at_once, on_demand) = (
            forecast(many).dollars(ToolLoading::AtOnce, &rates),
            forecast(many).dollars(ToolLoading::OnDemand, &rates),
        );
        assert!(at_once > 2.0 * on_demand && on_demand > 0.0, "{at_once} {on_demand}");
    }

    proptest! {
        #[test]
        fn longer_declarations_never_speak_against_searching(input in input(), more in 0usize..100_000) {
            let longer = ToolLoadingInput { declared_tokens: input.declared_tokens + more, ..input };
            if forecast(input).cheaper() == ToolLoading::OnDemand {
                prop_assert_eq!(forecast(longer).cheaper(), ToolLoading::OnDemand);
            }
        }

        #[test]
        fn a_longer_list_of_names_never_speaks_for_searching(input in input(), more in 0usize..10_000) {
            let longer = ToolLoadingInput { listed_tokens: input.listed_tokens + more, ..input };
            if forecast(input).cheaper() == ToolLoading::AtOnce {
                prop_assert_eq!(forecast(longer).cheaper(), ToolLoading::AtOnce);
            }
        }

        #[test]
        fn few_tools_are_always_declared(tokens in 0usize..1_000_000, requests in 0u32..100_000) {
            let few = ToolLoadingInput {
                tools: FEW_TOOLS - 1,
                declared_tokens: tokens,
                listed_tokens: 100,
                requests,
            };
            prop_assert_eq!(forecast(few).cheaper(), ToolLoading::AtOnce);
        }

        #[test]
        fn searching_is_chosen_only_where_it_costs_less(input in input()) {
            let forecast = forecast(input);
            if forecast.cheaper() == ToolLoading::OnDemand {
                prop_assert!(forecast.on_demand < forecast.at_once);
            }
        }
    }
}
