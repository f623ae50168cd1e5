//! [`ToolFinder`]: finds and calls the tools of servers whose schemas no request declares.
//!
//! Requests declare two tools instead: `tool_search`, whose description names the servers' tools, and
//! `mcp_call`. A tool that a server lists later is found and called at once, and nothing before it changes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use futures_util::future::{BoxFuture, join_all};
use hardpan_economy::tool_listing::SEARCH_TOOL;
use hardpan_mcp::{ServerName, ServerTool, check_arguments, without_nulls};
use hardpan_prompt::{Json, Tool as Declaration, ToolCall};
use hardpan_tools::{
    Effect, InnerCall, OnDemandSources, Tool, ToolInvocation, ToolOutcome, ToolRegistry, ToolSource,
};
use serde_json::{Map, Value, json};

use super::tool_search::{describe_tools, find_tools, list_tools};
use super::{McpServer, server_source};

/// The tool that calls them.
pub(super) const CALL_TOOL: &str = "mcp_call";

const SEARCH_TEXT: &str = "Find tools of MCP servers. The answer has their descriptions and the schemas of their arguments; call them with mcp_call. Search before the first call of a tool.";

const CALL_TEXT: &str = "Call a tool of an MCP server that tool_search has described.";

/// Who brings the two tools. It sorts before all servers.
pub(crate) fn finder_source() -> ToolSource {
    ToolSource::named("mcp")
}

/// The servers whose tools are found by searches.
pub(super) struct ToolFinder {
    registry: ToolRegistry,
    servers: OnceLock<Vec<Weak<McpServer>>>,
    chosen: Mutex<BTreeSet<ServerName>>,
    /// What the registered search tool lists.
    listing: Mutex<Option<String>>,
}

impl ToolFinder {
    pub fn new(registry: ToolRegistry) -> Self {
        let (servers, chosen, listing) = (OnceLock::new(), Mutex::default(), Mutex::default());
        ToolFinder { registry, servers, chosen, listing }
    }

    /// Lets it know all servers of the conversation; once.
    pub fn connect(&self, servers: &[Arc<McpServer>]) {
        let _ = self.servers.set(servers.iter().map(Arc::downgrade).collect());
    }

    /// Whether the tools of a server are found by searches.
    pub fn has(&self, server: &ServerName) -> bool {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner).contains(server)
    }

    /// Finds the tools of exactly these servers by searches; those of the others are declared.
    pub fn choose(self: &Arc<Self>, servers: BTreeSet<ServerName>) {
        let sources = servers.iter().map(server_source).collect();
        let caller = (!servers.is_empty()).then(|| CALL_TOOL.into());
        *self.chosen.lock().unwrap_or_else(PoisonError::into_inner) = servers;
        self.registry.set_on_demand(OnDemandSources { sources, caller });
        self.refresh();
    }

    /// Registers the two tools with the list as it is now, or removes them. Nothing changes where the list
    /// is the same.
    pub fn refresh(self: &Arc<Self>) {
        let servers = self.chosen();
        let listing = (!servers.is_empty()).then(|| {
            let lists: Vec<(ServerName, Option<Vec<ServerTool>>)> =
                servers.iter().map(|server| (server.name.clone(), server.listed().clone())).collect();
            list_tools(&lists)
        });
        let mut known = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == listing {
            return;
        }
        let tools: Vec<Arc<dyn Tool>> = match &listing {
            None => Vec::new(),
            Some(listing) => {
                let (search, call) = declarations(listing);
                let finder = Arc::downgrade(self);
                vec![
                    Arc::new(ToolSearch { finder: finder.clone(), declaration: search }),
                    Arc::new(ToolCaller { finder, declaration: call }),
                ]
            }
        };
        // A name that an extension has taken is told with its next call.
        let _ = self.registry.replace_source(&finder_source(), tools);
        *known = listing;
    }

    fn chosen(&self) -> Vec<Arc<McpServer>> {
        let servers = self.servers.get().into_iter().flatten().filter_map(Weak::upgrade);
        servers.filter(|server| self.has(&server.name)).collect()
    }

    fn tools(&self) -> Vec<ServerTool> {
        self.chosen().iter().flat_map(|server| server.listed().clone().unwrap_or_default()).collect()
    }

    /// A tool by the name that the model knows, or as `server.tool`.
    fn find(&self, name: &str) -> Option<ServerTool> {
        let is_named = |server: &ServerName, tool: &ServerTool| {
            tool.exposed_name == name
                || name.split_once('.').is_some_and(|(of, inner)| of == server.as_str() && inner == tool.name)
        };
        self.chosen().iter().find_map(|server| {
            let tools = server.listed();
            tools.iter().flatten().find(|tool| is_named(&server.name, tool)).cloned()
        })
    }

    /// Waits for the servers that have listed nothing yet; each has a limit of its own.
    async fn wait_for_lists(&self) {
        let unknown: Vec<Arc<McpServer>> =
            self.chosen().into_iter().filter(|server| server.listed().is_none()).collect();
        // One that fails has told so.
        join_all(unknown.iter().map(McpServer::connect)).await;
    }
}

/// What requests declare instead of the servers' tools.
pub(super) fn declarations(listing: &str) -> (Declaration, Declaration) {
    let declaration = |name: &str, description: String, parameters: Value| Declaration {
        name: name.into(),
        description: description.as_str().into(),
        parameters: Json::new(&parameters),
        snippet: None,
        guidelines: Vec::new(),
    };
    let search = declaration(
        SEARCH_TOOL,
        format!("{SEARCH_TEXT}\n\n{listing}"),
        json!({"type": "object", "properties": {"query": {
            "type": "string",
            "description": "Full names of tools, separated by commas, or words that describe what you need"
        }}, "required": ["query"]}),
    );
    let call = declaration(
        CALL_TOOL,
        CALL_TEXT.to_owned(),
        json!({"type": "object", "properties": {
            "tool": {"type": "string", "description": "Full name of the tool"},
            "arguments": {"type": "object", "description": "Arguments, as its schema says"}
        }, "required": ["tool", "arguments"]}),
    );
    (search, call)
}

/// `tool_search`.
struct ToolSearch {
    finder: Weak<ToolFinder>,
    declaration: Declaration,
}

impl Tool for ToolSearch {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// It answers from lists that servers have given.
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let arguments = call.arguments.value();
            let Some(query) = arguments["query"].as_str().filter(|query| !query.trim().is_empty()) else {
                return ToolOutcome::failed("Say in `query` which tools you look for: names, or words.");
            };
            let Some(finder) = self.finder.upgrade() else { return gone() };
            finder.wait_for_lists().await;
            let tools = finder.tools();
            let found = find_tools(query, &tools);
            match found.is_empty() {
                true => ToolOutcome::failed(format!(
                    "None of the {} tools fits. Use other words, or full names from the description of {SEARCH_TOOL}.",
                    tools.len()
                )),
                false => ToolOutcome::text(describe_tools(&found)),
            }
        })
    }
}

/// `mcp_call`. A call that is complete is resolved to the tool that it names before it runs; what runs here
/// says what is wrong with the others.
struct ToolCaller {
    finder: Weak<ToolFinder>,
    declaration: Declaration,
}

/// The arguments of the inner call. Some models write them as a text.
fn inner_arguments(arguments: &Value) -> Option<Map<String, Value>> {
    match &arguments["arguments"] {
        Value::Object(inner) => Some(inner.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        Value::Null => Some(Map::new()),
        _ => None,
    }
}

/// A call as faces show it: one of `mcp_call` as the call that it stands for, by what it says alone.
pub fn shown_call(call: &ToolCall) -> Cow<'_, ToolCall> {
    let arguments = call.arguments.value();
    match (&*call.name, arguments["tool"].as_str(), inner_arguments(&arguments)) {
        (CALL_TOOL, Some(name), Some(inner)) if !name.is_empty() => Cow::Owned(ToolCall {
            name: name.into(),
            arguments: Json::new(&Value::Object(inner)),
            ..call.clone()
        }),
        _ => Cow::Borrowed(call),
    }
}

impl Tool for ToolCaller {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// The tool that it calls is asked about; it does nothing itself.
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }

    fn inner_call(&self, arguments: &Value) -> Option<InnerCall> {
        let tool = self.finder.upgrade()?.find(arguments["tool"].as_str()?)?;
        let inner = without_nulls(&tool.parameters, inner_arguments(arguments)?);
        check_arguments(&tool.parameters, &inner).ok()?;
        Some(InnerCall { name: tool.exposed_name.as_str().into(), arguments: Value::Object(inner) })
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let arguments = call.arguments.value();
            let Some(finder) = self.finder.upgrade() else { return gone() };
            let name = arguments["tool"].as_str().unwrap_or_default();
            let Some(tool) = finder.find(name) else {
                return ToolOutcome::failed(format!(
                    "There is no tool {name:?} here. Find its name with {SEARCH_TOOL}."
                ));
            };
            let problem = match inner_arguments(&arguments) {
                None => "`arguments` must be an object".to_owned(),
                Some(inner) => {
                    match check_arguments(&tool.parameters, &without_nulls(&tool.parameters, inner)) {
                        Err(problem) => problem.to_string(),
                        Ok(()) => {
                            return ToolOutcome::failed(format!(
                                "{} cannot be used here.",
                                tool.exposed_name
                            ));
                        }
                    }
                }
            };
            let schema = &tool.parameters;
            ToolOutcome::failed(format!(
                "{} was not called: {problem}. The schema of its arguments: {schema}",
                tool.exposed_name
            ))
        })
    }
}

fn gone() -> ToolOutcome {
    ToolOutcome::failed("The conversation has no servers any more.")
}
