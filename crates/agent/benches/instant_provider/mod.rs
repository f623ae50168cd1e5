//! An agent whose provider answers at once, so that benchmarks measure everything else.

#![allow(dead_code, reason = "each benchmark uses some of it")]

use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hardpan_agent::expand::Expansions;
use hardpan_agent::{
    Agent, AgentSettings, ClientFactory, ContextSource, Conversation, DenyAll, Input, InputOutcome,
    InputSource, ObserveRequest, RunEnd, Setup,
};
use hardpan_context::{LayoutName, PromptTexts, Snapshot, Target};
use hardpan_models::Catalogue;
use hardpan_prompt::{
    AgentMessage, Item, ItemKind, Json, MessageBody, MessagePart, Thinking, Tool as Declaration, ToolCall,
    Volatility,
};
use hardpan_providers::{
    ApiKey, CapabilityCache, Client, Endpoint, HttpRequest, HttpResponse, RetryPolicy, Transport,
    TransportError,
};
use hardpan_session::{Entry, Header};
use hardpan_tools::{Effect, Scope, Tool, ToolInvocation, ToolOutcome, ToolRegistry};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The model that is asked.
pub const MODEL: &str = "claude-sonnet-5";

/// Text that looks like code, different for every `seed`.
pub fn code(seed: usize, lines: usize) -> String {
    let line = |n: usize| {
        format!("    let value_{n} = compute({seed}, {n}) + offset_{}; // step {n}\n", (seed * 31 + n) % 97)
    };
    format!("fn part_{seed}() {{\n{}}}\n", (0..lines).map(line).collect::<String>())
}

/// A transport that answers at once. Of every `turns` answers, all but the last call a tool. The
/// common part of the answers is built beforehand: a provider's work is not the agent's.
pub struct InstantProvider {
    turns: usize,
    asked: AtomicUsize,
    /// The text of an answer, in pieces.
    text: Vec<Bytes>,
}

fn frame(event: &Value) -> Bytes {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()).into()
}

impl InstantProvider {
    pub fn new(turns: usize) -> Arc<Self> {
        let start =
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
        let piece = |n: usize| {
            let delta = json!({"type": "text_delta", "text": format!("piece {n} ")});
            json!({"type": "content_block_delta", "index": 0, "delta": delta})
        };
        let stop = json!({"type": "content_block_stop", "index": 0});
        let text = [start].into_iter().chain((0..40).map(piece)).chain([stop]);
        Arc::new(InstantProvider {
            turns,
            asked: AtomicUsize::new(0),
            text: text.map(|event| frame(&event)).collect(),
        })
    }

    /// Reports the whole prompt as cached: half a token per byte is more than there are.
    fn answer(&self, bytes: usize) -> Vec<Bytes> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let usage = json!({"input_tokens": 10, "cache_read_input_tokens": bytes / 2, "cache_creation_input_tokens": 500});
        let mut frames = vec![frame(
            &json!({"type": "message_start", "message": {"id": "m", "model": MODEL, "usage": usage}}),
        )];
        frames.extend(self.text.iter().cloned());
        let last = (number + 1).is_multiple_of(self.turns);
        if !last {
            let call =
                json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": "look", "input": {}});
            frames.push(frame(&json!({"type": "content_block_start", "index": 1, "content_block": call})));
            let arguments = format!("{{\"path\": \"src/part_{number}.rs\"}}");
            let delta = json!({"type": "input_json_delta", "partial_json": arguments});
            frames.push(frame(&json!({"type": "content_block_delta", "index": 1, "delta": delta})));
            frames.push(frame(&json!({"type": "content_block_stop", "index": 1})));
        }
        let reason = if last { "end_turn" } else { "tool_use" };
        frames.push(frame(&json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 120}})));
        frames.push(frame(&json!({"type": "message_stop"})));
        frames
    }
}

impl Transport for InstantProvider {
    fn send(
        &self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + '_>> {
        let body = Box::pin(futures_util::stream::iter(self.answer(request.body.len()).into_iter().map(Ok)));
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Box::pin(std::future::ready(Ok(HttpResponse { status: 200, headers, body })))
    }
}

struct InstantClients(Arc<InstantProvider>);

impl ClientFactory for InstantClients {
    fn client(&self, _target: &Target, _session: &str) -> Result<Client, String> {
        let endpoint = Endpoint {
            base_url: "http://instant".into(),
            key: Some(ApiKey::new("any")),
            ..Endpoint::default()
        };
        Ok(Client::new(
            self.0.clone(),
            endpoint,
            RetryPolicy::default(),
            Arc::new(CapabilityCache::default()),
        ))
    }
}

/// Some open files, of which one may change.
#[derive(Default)]
pub struct Files {
    pub count: usize,
    /// What the first file says now.
    pub changing: Mutex<String>,
}

impl ContextSource for Files {
    fn observe(&self, request: &ObserveRequest) -> Snapshot {
        let mut snapshot = Snapshot::empty(request.now);
        snapshot.working_directory = Some("/project".into());
        snapshot.items = (0..self.count).map(|n| file(n, code(n, 20))).collect();
        let changing = self.changing.lock().expect("the text").clone();
        if !changing.is_empty() {
            snapshot.items.push(file(self.count, changing));
        }
        snapshot
    }
}

fn file(n: usize, body: String) -> Item {
    let path = format!("src/part_{n}.rs");
    Item {
        key: format!("file:{path}").into(),
        id: format!("P{n}").into(),
        kind: ItemKind::File,
        title: path.as_str().into(),
        body: body.into(),
        changed_at_ms: 0,
        volatility: Volatility::Slow,
        tier: None,
        unchanged_responses: None,
        shown_by: None,
    }
}

/// A tool that does nothing.
struct LookTool(Declaration);

impl Tool for LookTool {
    fn declaration(&self) -> &Declaration {
        &self.0
    }
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }
    fn run<'a>(&'a self, _call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(std::future::ready(ToolOutcome::text("There is nothing to see.")))
    }
}

fn look_up() -> Arc<dyn Tool> {
    let parameters =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    Arc::new(LookTool(Declaration {
        name: "look".into(),
        description: "Looks at a file.".into(),
        parameters: Json::new(&parameters),
        snippet: None,
        guidelines: Vec::new(),
    }))
}

/// An agent for a conversation in this folder, with the usual tools.
pub fn agent(
    layout: LayoutName,
    provider: Arc<InstantProvider>,
    files: Arc<Files>,
    conversation: Conversation,
) -> Agent {
    let target = Target::new(Catalogue::builtin(), None, MODEL).expect("the catalogue has it");
    let mut tools = hardpan_tools::read_only_tools();
    tools.push(look_up());
    let setup = Setup {
        texts: Arc::new(PromptTexts::builtin().expect("the built-in texts are valid")),
        context_source: files,
        client_factory: Arc::new(InstantClients(provider)),
        approval_handler: Arc::new(DenyAll),
        clock: Arc::new(now),
        tools: ToolRegistry::built_in(tools),
        shell: None,
        scope: Scope::new(Path::new("/"), Path::new("/")),
        expansions: Expansions::discover(&[], &[]),
        target,
        layout,
        thinking: Thinking::Off,
        settings: AgentSettings::default(),
    };
    Agent::new(setup, conversation)
}

#[allow(clippy::disallowed_methods, reason = "the agent's clock is the machine's")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// The header of a session of this name.
pub fn header(id: &str) -> Header {
    Header { id: id.into(), time: None, cwd: "/project".into(), extra: Default::default() }
}

/// Prompts, and asserts that the run ends normally.
pub async fn prompt(agent: &Agent, text: &str) {
    let input =
        Input { text: text.into(), below: None, images: Vec::new(), source: InputSource::Rpc, id: None };
    let outcome = agent.prompt(input).await.expect("the prompt is taken");
    assert_eq!(outcome, InputOutcome::Ran(RunEnd::Done));
}

/// The entries of a conversation: questions, calls, results, answers.
pub fn entries(messages: usize) -> Vec<Entry> {
    let mut parent: Option<String> = None;
    let body = |n: usize| {
        let call = || format!("call_{}", n / 4).into();
        match n % 4 {
            0 => MessageBody::User {
                content: vec![MessagePart::text(format!(
                    "Please look at part {n} and tell me what it does."
                ))],
            },
            2 => MessageBody::ToolResult {
                call_id: call(),
                tool_name: Some("look".into()),
                content: vec![MessagePart::text(code(n, 15))],
                is_error: false,
                not_run: None,
            },
            kind => {
                let mut content =
                    vec![MessagePart::text(format!("It computes {n} values in a row.\n{}", code(n, 2)))];
                if kind == 1 {
                    let arguments = Json::new(&json!({"path": format!("src/part_{n}.rs")}));
                    content.push(MessagePart::ToolCall(ToolCall {
                        id: call(),
                        name: "look".into(),
                        arguments,
                        result: None,
                    }));
                }
                let stop_reason = Some(if kind == 1 { "tool_use".into() } else { "end".into() });
                MessageBody::Assistant {
                    content,
                    provider: Some("anthropic".into()),
                    model: Some(MODEL.into()),
                    stop_reason,
                }
            }
        }
    };
    let entry = |n: usize| {
        let message = AgentMessage::new(format!("m{n}").as_str(), body(n));
        let entry = Entry::message(parent.as_deref(), message);
        parent = Some(format!("m{n}"));
        entry
    };
    (0..messages).map(entry).collect()
}
