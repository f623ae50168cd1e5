//! [`LoadingPlan`]: of which servers requests declare the tools, and what that costs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_agent::Conversation;
use hardpan_context::Target;
use hardpan_economy::{Rates, ToolLoading, ToolLoadingForecast, ToolLoadingInput};
use hardpan_mcp::{ServerName, ServerTool, ToolLoadingSetting};
use hardpan_prompt::{Text, TokenCounter, Tool as Declaration};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::deferred_tools::declarations;
use super::tool_search::list_tools;

/// The session entry that stores the [`StoredLoading`].
const LOADING_ENTRY: &str = "hardpan.mcp";

/// How many tools requests declare in place of those that searches find.
const FINDER_TOOLS: usize = 2;

/// A server and its list, as far as it is known.
pub(super) struct ListedServer {
    pub name: ServerName,
    pub setting: ToolLoadingSetting,
    pub tools: Option<Vec<ServerTool>>,
}

/// How the tools of a conversation's servers are loaded.
#[derive(Clone, Debug)]
pub struct LoadingPlan {
    /// The servers whose tools are found by searches.
    pub on_demand: BTreeSet<ServerName>,
    /// Those of them that settings would have declared, if a request took so many tools.
    pub beyond_limit: BTreeSet<ServerName>,
    /// How many tools a request takes; none if there is no limit.
    pub max_tools: Option<usize>,
    /// Tools of the servers for which the price decides.
    pub tools: usize,
    /// Tokens of their declarations.
    pub declared_tokens: usize,
    /// How many requests the prices are for.
    pub requests: u32,
    /// Dollars if requests declare them; none if no price is known.
    pub at_once_dollars: Option<f64>,
    /// Dollars if searches find them.
    pub on_demand_dollars: Option<f64>,
}

/// What the tokens of a declaration are, as a request has it.
pub fn declaration_tokens(tool: &ServerTool, counter: &TokenCounter) -> usize {
    counter.count(&Text::new(format!("{}\n{}\n{}", tool.exposed_name, tool.description, tool.parameters)))
}

fn tokens_of(tool: &Declaration, counter: &TokenCounter) -> usize {
    let parameters = tool.parameters.value();
    counter.count(&Text::new(format!("{}\n{}\n{parameters}", tool.name, tool.description)))
}

impl LoadingPlan {
    /// The plan for a new conversation: what the settings say, else what costs less, as long as requests
    /// take all tools that are declared, with so many others.
    pub(super) fn new(servers: &[ListedServer], others: usize, target: &Target, requests: u32) -> Self {
        let of = |setting: ToolLoadingSetting| servers.iter().filter(move |server| server.setting == setting);
        let mut on_demand: BTreeSet<ServerName> =
            of(ToolLoadingSetting::Search).map(|server| server.name.clone()).collect();
        let counter = TokenCounter::new(target.vocabulary());
        let priced: Vec<&ListedServer> = servers.iter().collect();
        let undecided: Vec<&ListedServer> = of(ToolLoadingSetting::Auto).collect();
        let input_of = |servers: &[&ListedServer]| {
            let tools = || servers.iter().flat_map(|server| server.tools.iter().flatten());
            let lists: Vec<_> =
                servers.iter().map(|server| (server.name.clone(), server.tools.clone())).collect();
            let (search, call) = declarations(&list_tools(&lists));
            ToolLoadingInput {
                tools: tools().count(),
                declared_tokens: tools().map(|tool| declaration_tokens(tool, &counter)).sum(),
                listed_tokens: tokens_of(&search, &counter) + tokens_of(&call, &counter),
                requests,
            }
        };
        let rates = Rates::for_model(&target.model, &target.profile, 0);
        let input = input_of(&priced);
        let forecast = ToolLoadingForecast::new(&input, &rates);
        let is_cheaper = match undecided.len() == priced.len() {
            true => forecast.cheaper(),
            false => ToolLoadingForecast::new(&input_of(&undecided), &rates).cheaper(),
        };
        if is_cheaper == ToolLoading::OnDemand {
            on_demand.extend(undecided.iter().map(|server| server.name.clone()));
        }
        let max_tools = target.profile.protocol.traits().max_tools;
        let beyond_limit = max_tools.map(|max| keep_limit(&mut on_demand, servers, others, max));
        let dollars = |loading| target.model.price.is_known().then(|| forecast.dollars(loading, &rates));
        LoadingPlan {
            on_demand,
            beyond_limit: beyond_limit.unwrap_or_default(),
            max_tools,
            tools: input.tools,
            declared_tokens: input.declared_tokens,
            requests,
            at_once_dollars: dollars(ToolLoading::AtOnce),
            on_demand_dollars: dollars(ToolLoading::OnDemand),
        }
    }
}

/// Has searches find the tools of more servers if requests would declare too many: first where the settings
/// leave it open, then of the largest. Returns those that the settings would have declared.
fn keep_limit(
    on_demand: &mut BTreeSet<ServerName>,
    servers: &[ListedServer],
    others: usize,
    max: usize,
) -> BTreeSet<ServerName> {
    let count = |server: &ListedServer| server.tools.as_ref().map_or(0, Vec::len);
    let is_too_much = |on_demand: &BTreeSet<ServerName>| {
        let finder = if on_demand.is_empty() { 0 } else { FINDER_TOOLS };
        let declared = servers.iter().filter(|server| !on_demand.contains(&server.name));
        others + finder + declared.map(count).sum::<usize>() > max
    };
    let of = |setting: ToolLoadingSetting| servers.iter().filter(move |server| server.setting == setting);
    if is_too_much(on_demand) {
        on_demand.extend(of(ToolLoadingSetting::Auto).map(|server| server.name.clone()));
    }
    let mut declared: Vec<&ListedServer> = of(ToolLoadingSetting::All).collect();
    declared.sort_by_key(|server| Reverse(count(server)));
    let mut moved = BTreeSet::new();
    for server in declared {
        if !is_too_much(on_demand) {
            break;
        }
        on_demand.insert(server.name.clone());
        moved.insert(server.name.clone());
    }
    moved
}

/// How a conversation began, as its session stores it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StoredLoading {
    on_demand: BTreeSet<String>,
    at_once: BTreeSet<String>,
}

impl StoredLoading {
    pub const ENTRY: &'static str = LOADING_ENTRY;

    pub fn new<'a>(servers: impl Iterator<Item = &'a ServerName>, on_demand: &BTreeSet<ServerName>) -> Self {
        let (on_demand, at_once): (Vec<&ServerName>, Vec<&ServerName>) =
            servers.partition(|server| on_demand.contains(server));
        let names = |names: Vec<&ServerName>| names.into_iter().map(ToString::to_string).collect();
        StoredLoading { on_demand: names(on_demand), at_once: names(at_once) }
    }

    /// How a conversation began; none if it has yet to begin. One that stored nothing declared all tools.
    pub fn of(conversation: &Conversation) -> Option<Self> {
        Self::read(&conversation.custom, !conversation.messages.is_empty())
    }

    pub fn read(custom: &BTreeMap<Arc<str>, Value>, has_begun: bool) -> Option<Self> {
        let stored = custom.get(LOADING_ENTRY).and_then(|stored| serde_json::from_value(stored.clone()).ok());
        has_begun.then(|| stored.unwrap_or_default())
    }

    /// Whether requests declared the tools of all servers.
    pub fn is_at_once(&self) -> bool {
        self.on_demand.is_empty()
    }

    /// The servers that are searched. One that came later is searched where others are.
    pub fn on_demand<'a>(&self, servers: impl Iterator<Item = &'a ServerName>) -> BTreeSet<ServerName> {
        let is_searched = |server: &&ServerName| {
            self.on_demand.contains(server.as_str())
                || !self.is_at_once() && !self.at_once.contains(server.as_str())
        };
        servers.filter(is_searched).cloned().collect()
    }
}
