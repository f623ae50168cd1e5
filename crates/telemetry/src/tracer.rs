//! [`AgentTracer`]: from the events of one agent to spans and measurements.
//!
//! | event | becomes |
//! |---|---|
//! | `agent_start` … `agent_end` | a span `invoke_agent NAME`, the root of a trace or below the call that started a sub-agent |
//! | `before_provider_request` … `message_end` of an answer | a span `chat MODEL` |
//! | `tool_execution_start` … `tool_execution_end` | a span `execute_tool NAME` |
//!
//! Requests beside the conversation (compactions, summaries of branches, pings, what servers and extensions ask a
//! model) raise no events: each becomes a span `chat MODEL` when it is billed.

use std::sync::Arc;

use hardpan_agent::AgentEvent;
use hardpan_agent::events::{
    AgentEnd, BeforeProviderRequest, MessageEnd, ResponseIdentity, RunEnd, ToolExecutionEnd,
    ToolExecutionStart,
};
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart, TokenUsage};
use hardpan_session::RequestRecord;
use serde_json::{Value, json};

use crate::metrics::MetricKind;
use crate::settings::ContentCapture;
use crate::span::{
    Attribute, AttributeValue, Span, SpanContext, SpanId, SpanKind, SpanStatus, TraceId, UnixNanos,
};

/// The longest name of a tool, and the longest id of a call, that is passed on: a model writes both.
const MAX_NAME: usize = 100;

/// What an event led to.
#[derive(Debug, Default, PartialEq)]
pub struct TracerOutput {
    /// Operations that ended.
    pub spans: Vec<Span>,
    /// Values to record.
    pub measurements: Vec<(MetricKind, Vec<Attribute>, f64)>,
    /// A tool call that began, and its span: what a sub-agent's run is part of.
    pub call: Option<(Arc<str>, SpanContext)>,
}

/// Makes a text fit to be sent: without keys.
pub type TextFilter = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Follows one agent.
pub struct AgentTracer {
    content: ContentCapture,
    filter: TextFilter,
    /// Random numbers for ids.
    ids: Box<dyn FnMut() -> u64 + Send>,
    /// The call that started this agent, if it is a sub-agent.
    parent: Option<SpanContext>,
    session: Arc<str>,
    agent_name: String,
    run: Option<OpenRun>,
    request: Option<OpenRequest>,
    calls: Vec<OpenCall>,
}

struct OpenRun {
    context: SpanContext,
    start: UnixNanos,
    /// Provider and model of the last request.
    target: Option<(String, String)>,
    usage: TokenUsage,
    dollars: f64,
}

struct OpenRequest {
    context: SpanContext,
    start: UnixNanos,
    provider: String,
    model: String,
}

struct OpenCall {
    context: SpanContext,
    start: UnixNanos,
    call_id: Arc<str>,
    arguments: Option<String>,
}

impl AgentTracer {
    /// A tracer of an agent, or of a sub-agent that the call `parent` started. `ids` gives random
    /// numbers; `filter` is for texts, which are sent only if `content` says so.
    pub fn new(
        content: ContentCapture,
        parent: Option<SpanContext>,
        ids: impl FnMut() -> u64 + Send + 'static,
        filter: TextFilter,
    ) -> Self {
        AgentTracer {
            content,
            filter,
            ids: Box::new(ids),
            parent,
            session: "".into(),
            agent_name: String::new(),
            run: None,
            request: None,
            calls: Vec::new(),
        }
    }

    /// Says which session the next run is part of, and the name of the agent that runs.
    pub fn set_identity(&mut self, session: Arc<str>, agent_name: String) {
        self.session = session;
        self.agent_name = agent_name;
    }

    /// What an event at this time leads to.
    pub fn observe(&mut self, event: &AgentEvent, at: UnixNanos) -> TracerOutput {
        let mut output = TracerOutput::default();
        match event {
            AgentEvent::AgentStart(_) => self.begin_run(at),
            AgentEvent::BeforeProviderRequest(request) => self.begin_request(request, at, &mut output),
            AgentEvent::MessageEnd(ended) => self.end_request(ended, at, &mut output),
            AgentEvent::ToolExecutionStart(started) => self.begin_call(started, at, &mut output),
            AgentEvent::ToolExecutionEnd(ended) => self.end_call(ended, at, &mut output),
            AgentEvent::AgentEnd(ended) => self.end_run(ended, at, &mut output),
            _ => {}
        }
        output
    }

    /// What a request leads to that was billed to this agent's conversation. Those of its turns are known by
    /// their events, and those of sub-agents are told by the sub-agents themselves.
    pub fn observe_bill(&mut self, record: &RequestRecord) -> TracerOutput {
        let mut output = TracerOutput::default();
        let session = record.extra.get("session").and_then(Value::as_str);
        let is_told_elsewhere = session.is_some_and(|session| session != &*self.session);
        if &*record.purpose == "turn" || is_told_elsewhere {
            return output;
        }
        let span = SpanId((self.ids)());
        let parent = self.run.as_ref().map(|run| run.context).or(self.parent);
        let trace = match parent {
            Some(parent) => parent.trace,
            None => TraceId(u128::from((self.ids)()) << 64 | u128::from((self.ids)())),
        };
        let start = UnixNanos::try_from(record.started.as_nanosecond()).unwrap_or_default();
        let end = start.saturating_add(record.ended_ms.unwrap_or_default().saturating_mul(1_000_000));
        let (provider, model) = (provider_name(&record.provider).to_owned(), record.model.to_string());
        let request = OpenRequest { context: SpanContext { trace, span }, start, provider, model };
        let mut purpose = vec![Attribute::new("hardpan.request.purpose", &*record.purpose)];
        let asker = record.extra.get("agent").and_then(Value::as_str);
        purpose.extend(asker.map(|asker| Attribute::new("hardpan.request.asker", plain_name(asker))));
        let dollars = record.dollars;
        let mut attributes = request.attributes(&self.session);
        attributes.extend(purpose);
        attributes.extend(usage_attributes(&record.usage, dollars));
        let measured = request.measured(None);
        output.measurements.extend(usage_measurements(&measured, &record.usage, dollars));
        output.measurements.push(duration(measured, start, end));
        if let Some(run) = &mut self.run {
            run.usage += record.usage;
            run.dollars += dollars;
        }
        output.spans.push(Span {
            context: request.context,
            parent: parent.map(|parent| parent.span),
            name: format!("chat {}", request.model),
            kind: SpanKind::Client,
            start,
            end,
            attributes,
            status: SpanStatus::Unset,
        });
        output
    }

    fn begin_run(&mut self, at: UnixNanos) {
        let trace = self.parent.map(|parent| parent.trace);
        let trace =
            trace.unwrap_or_else(|| TraceId(u128::from((self.ids)()) << 64 | u128::from((self.ids)())));
        let context = SpanContext { trace, span: SpanId((self.ids)()) };
        let usage = TokenUsage::default();
        self.run = Some(OpenRun { context, start: at, target: None, usage, dollars: 0.0 });
        self.request = None;
        self.calls.clear();
    }

    fn begin_request(&mut self, request: &BeforeProviderRequest, at: UnixNanos, output: &mut TracerOutput) {
        // One that nothing came of: the agent sends another.
        self.fail_request(at, "no_answer", None, output);
        let span = SpanId((self.ids)());
        let Some(run) = &mut self.run else { return };
        let (provider, model) = (provider_name(&request.provider).to_owned(), request.model.clone());
        run.target = Some((provider.clone(), model.clone()));
        let context = SpanContext { trace: run.context.trace, span };
        self.request = Some(OpenRequest { context, start: at, provider, model });
    }

    fn end_request(&mut self, ended: &MessageEnd, at: UnixNanos, output: &mut TracerOutput) {
        let MessageBody::Assistant { content, stop_reason, .. } = &*ended.message.body else { return };
        let (Some(run), Some(request)) = (&mut self.run, self.request.take()) else { return };
        let facts = ended.message.facts.as_deref();
        let mut attributes = request.attributes(&self.session);
        attributes.extend(response_attributes(ended.response.as_ref()));
        let mut status = SpanStatus::Unset;
        let reason = stop_reason.as_deref().map(finish_reason);
        if let Some(reason) = reason {
            let reasons = AttributeValue::Texts(vec![reason.to_owned()]);
            attributes.push(Attribute { name: "gen_ai.response.finish_reasons", value: reasons });
        }
        let error_type = reason.filter(|reason| ["error", "aborted"].contains(reason));
        let mut measured = request.measured(ended.response.as_ref());
        if let Some(error_type) = error_type {
            attributes.push(Attribute::new("error.type", error_type));
            let said = facts.and_then(|facts| facts.error.as_deref()).unwrap_or_default();
            let said = if self.content == ContentCapture::On { (self.filter)(said) } else { String::new() };
            status = SpanStatus::Error(said);
        }
        if let Some((usage, dollars)) = facts.and_then(|facts| facts.usage) {
            attributes.extend(usage_attributes(&usage, dollars));
            output.measurements.extend(usage_measurements(&measured, &usage, dollars));
            run.usage += usage;
            run.dollars += dollars;
        }
        if self.content == ContentCapture::On {
            let message = message_json("assistant", content, reason, &self.filter);
            attributes.push(Attribute::new("gen_ai.output.messages", json!([message]).to_string()));
        }
        measured.extend(error_type.map(|error_type| Attribute::new("error.type", error_type)));
        output.measurements.push(duration(measured, request.start, at));
        let name = format!("chat {}", request.model);
        output.spans.push(Span {
            context: request.context,
            parent: Some(run.context.span),
            name,
            kind: SpanKind::Client,
            start: request.start,
            end: at,
            attributes,
            status,
        });
    }

    /// Ends a request that has no answer.
    fn fail_request(
        &mut self,
        at: UnixNanos,
        error_type: &'static str,
        message: Option<&str>,
        output: &mut TracerOutput,
    ) {
        let (Some(run), Some(request)) = (&self.run, self.request.take()) else { return };
        let mut attributes = request.attributes(&self.session);
        attributes.push(Attribute::new("error.type", error_type));
        let mut measured = request.measured(None);
        measured.push(Attribute::new("error.type", error_type));
        output.measurements.push(duration(measured, request.start, at));
        output.spans.push(Span {
            context: request.context,
            parent: Some(run.context.span),
            name: format!("chat {}", request.model),
            kind: SpanKind::Client,
            start: request.start,
            end: at,
            attributes,
            status: self.failure(message),
        });
    }

    fn begin_call(&mut self, started: &ToolExecutionStart, at: UnixNanos, output: &mut TracerOutput) {
        let span = SpanId((self.ids)());
        let Some(run) = &self.run else { return };
        let context = SpanContext { trace: run.context.trace, span };
        let is_captured = self.content == ContentCapture::On;
        let arguments = is_captured.then(|| (self.filter)(&started.args.to_string()));
        let call_id = started.call_id.clone();
        output.call = Some((call_id.clone(), context));
        self.calls.push(OpenCall { context, start: at, call_id, arguments });
    }

    fn end_call(&mut self, ended: &ToolExecutionEnd, at: UnixNanos, output: &mut TracerOutput) {
        let Some(index) = self.calls.iter().position(|call| call.call_id == ended.call_id) else { return };
        let Some(run) = &self.run else { return };
        let call = self.calls.remove(index);
        let tool = plain_name(&ended.tool_name);
        let mut attributes = vec![
            Attribute::new("gen_ai.operation.name", "execute_tool"),
            Attribute::new("gen_ai.tool.name", tool),
            Attribute::new("gen_ai.tool.type", "function"),
            Attribute::new("gen_ai.tool.call.id", plain_name(&ended.call_id)),
            Attribute::new("gen_ai.conversation.id", &*self.session),
        ];
        let mut measured = vec![
            Attribute::new("gen_ai.operation.name", "execute_tool"),
            Attribute::new("gen_ai.tool.name", tool),
        ];
        let mut status = SpanStatus::Unset;
        if ended.is_error {
            attributes.push(Attribute::new("error.type", "tool_error"));
            measured.push(Attribute::new("error.type", "tool_error"));
            status = SpanStatus::Error(String::new());
        }
        if let Some(arguments) = call.arguments {
            attributes.push(Attribute::new("gen_ai.tool.call.arguments", arguments));
            let result = parts_json(&ended.content, &self.filter);
            attributes.push(Attribute::new("gen_ai.tool.call.result", Value::from(result).to_string()));
        }
        output.measurements.push(duration(measured, call.start, at));
        output.spans.push(Span {
            context: call.context,
            parent: Some(run.context.span),
            name: format!("execute_tool {tool}"),
            kind: SpanKind::Internal,
            start: call.start,
            end: at,
            attributes,
            status,
        });
    }

    fn end_run(&mut self, ended: &AgentEnd, at: UnixNanos, output: &mut TracerOutput) {
        let (end, error_type, message) = match &ended.stop {
            RunEnd::Done => ("done", None, None),
            RunEnd::Aborted => ("aborted", None, None),
            RunEnd::Length => ("length", None, None),
            RunEnd::Refused => ("refused", None, None),
            RunEnd::Looping { .. } => ("looping", Some("looping"), None),
            RunEnd::TooLong { message } => ("too_long", Some("context_too_long"), Some(message)),
            RunEnd::Error { message } => ("error", Some("request_failed"), Some(message)),
        };
        let message = message.map(String::as_str);
        self.fail_request(at, error_type.unwrap_or(end), message, output);
        let Some(run) = self.run.take() else { return };
        let mut attributes = vec![Attribute::new("gen_ai.operation.name", "invoke_agent")];
        let mut measured = attributes.clone();
        if let Some((provider, model)) = run.target {
            let target = [
                Attribute::new("gen_ai.provider.name", provider),
                Attribute::new("gen_ai.request.model", model),
            ];
            attributes.extend(target.clone());
            measured.extend(target);
        }
        attributes.push(Attribute::new("gen_ai.agent.name", self.agent_name.as_str()));
        attributes.push(Attribute::new("gen_ai.conversation.id", &*self.session));
        attributes.push(Attribute::new("hardpan.run.end", end));
        attributes.extend(usage_attributes(&run.usage, run.dollars));
        let mut status = SpanStatus::Unset;
        if let Some(error_type) = error_type {
            attributes.push(Attribute::new("error.type", error_type));
            measured.push(Attribute::new("error.type", error_type));
            status = self.failure(message);
        }
        if self.content == ContentCapture::On {
            let of = |is_answer: bool| {
                let said =
                    ended.messages.iter().filter_map(|message| run_message(message, is_answer, &self.filter));
                said.collect::<Vec<_>>()
            };
            attributes.push(Attribute::new("gen_ai.input.messages", Value::from(of(false)).to_string()));
            let answer: Vec<Value> = of(true).pop().into_iter().collect();
            attributes.push(Attribute::new("gen_ai.output.messages", Value::from(answer).to_string()));
        }
        output.measurements.push(duration(measured, run.start, at));
        output.spans.push(Span {
            context: run.context,
            parent: self.parent.map(|parent| parent.span),
            name: format!("invoke_agent {}", self.agent_name),
            kind: SpanKind::Internal,
            start: run.start,
            end: at,
            attributes,
            status,
        });
    }

    /// The status of what failed. A provider's message may quote the conversation.
    fn failure(&self, message: Option<&str>) -> SpanStatus {
        let message = message.filter(|_| self.content == ContentCapture::On);
        SpanStatus::Error(message.map(|message| (self.filter)(message)).unwrap_or_default())
    }
}

impl OpenRequest {
    fn attributes(&self, session: &str) -> Vec<Attribute> {
        vec![
            Attribute::new("gen_ai.operation.name", "chat"),
            Attribute::new("gen_ai.provider.name", self.provider.as_str()),
            Attribute::new("gen_ai.request.model", self.model.as_str()),
            Attribute::new("gen_ai.conversation.id", session),
        ]
    }

    /// The attributes of its measurements.
    fn measured(&self, response: Option<&ResponseIdentity>) -> Vec<Attribute> {
        let mut attributes = vec![
            Attribute::new("gen_ai.operation.name", "chat"),
            Attribute::new("gen_ai.provider.name", self.provider.as_str()),
            Attribute::new("gen_ai.request.model", self.model.as_str()),
        ];
        attributes.extend(
            response_attributes(response).into_iter().filter(|one| one.name == "gen_ai.response.model"),
        );
        attributes
    }
}

fn response_attributes(response: Option<&ResponseIdentity>) -> Vec<Attribute> {
    let Some(ResponseIdentity { id, model }) = response else { return Vec::new() };
    let known = [("gen_ai.response.id", id), ("gen_ai.response.model", model)];
    let known = known.into_iter().filter(|(_, text)| !text.is_empty());
    known.map(|(name, text)| Attribute::new(name, &**text)).collect()
}

/// Tokens as the conventions count them: those of the cache are part of the input.
fn usage_attributes(usage: &TokenUsage, dollars: f64) -> Vec<Attribute> {
    let mut attributes = vec![
        Attribute::new("gen_ai.usage.input_tokens", usage.prompt()),
        Attribute::new("gen_ai.usage.output_tokens", usage.output),
        Attribute::new("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
        Attribute::new("gen_ai.usage.cache_creation.input_tokens", usage.cache_written()),
    ];
    attributes
        .extend(usage.reasoning.map(|tokens| Attribute::new("gen_ai.usage.reasoning.output_tokens", tokens)));
    attributes.push(Attribute { name: "hardpan.cost", value: AttributeValue::Number(dollars) });
    attributes
}

fn usage_measurements(
    common: &[Attribute],
    usage: &TokenUsage,
    dollars: f64,
) -> Vec<(MetricKind, Vec<Attribute>, f64)> {
    let types = [
        ("input", usage.prompt()),
        ("output", usage.output),
        ("cache_read", usage.cache_read),
        ("cache_creation", usage.cache_written()),
    ];
    let with_type = |token_type: &str| {
        let mut attributes = common.to_vec();
        attributes.push(Attribute::new("gen_ai.token.type", token_type));
        attributes
    };
    let tokens =
        types.into_iter().map(|(name, tokens)| (MetricKind::TokenUsage, with_type(name), tokens as f64));
    let mut measurements: Vec<_> = tokens.collect();
    if usage.prompt() > 0 {
        let rate = usage.cache_read as f64 / usage.prompt() as f64;
        measurements.push((MetricKind::CacheHitRate, common.to_vec(), rate));
    }
    measurements.push((MetricKind::Cost, common.to_vec(), dollars));
    measurements
}

fn duration(
    attributes: Vec<Attribute>,
    start: UnixNanos,
    end: UnixNanos,
) -> (MetricKind, Vec<Attribute>, f64) {
    (MetricKind::OperationDuration, attributes, end.saturating_sub(start) as f64 / 1e9)
}

/// The conventions' word for why an answer ended, where they have one.
fn finish_reason(word: &str) -> &str {
    match word {
        "end" | "stop_sequence" => "stop",
        "tool_use" => "tool_call",
        "refusal" => "content_filter",
        word => word,
    }
}

/// The conventions' name of a provider, where they have one.
fn provider_name(id: &str) -> &str {
    match id {
        "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        "moonshot" => "moonshot_ai",
        id => id,
    }
}

/// A name that a model wrote, if it is one: anything else may be a text.
fn plain_name(name: &str) -> &str {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.:|/".contains(letter);
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_plain) { name } else { "_OTHER" }
}

/// A message of a run in the form of the conventions: one of the model, or one that it was sent.
fn run_message(message: &AgentMessage, is_answer: bool, filter: &TextFilter) -> Option<Value> {
    match &*message.body {
        MessageBody::User { content } | MessageBody::Custom { content, .. } if !is_answer => {
            Some(message_json("user", content, None, filter))
        }
        MessageBody::Assistant { content, stop_reason, .. } if is_answer => {
            Some(message_json("assistant", content, stop_reason.as_deref().map(finish_reason), filter))
        }
        _ => None,
    }
}

fn message_json(role: &str, content: &[MessagePart], finish: Option<&str>, filter: &TextFilter) -> Value {
    let mut message = json!({"role": role, "parts": parts_json(content, filter)});
    if let Some(finish) = finish {
        message["finish_reason"] = finish.into();
    }
    message
}

fn parts_json(content: &[MessagePart], filter: &TextFilter) -> Vec<Value> {
    let part = |part: &MessagePart| match part {
        MessagePart::Text { text } => Some(json!({"type": "text", "content": filter(text.as_str())})),
        MessagePart::Reasoning { text, .. } => {
            Some(json!({"type": "reasoning", "content": filter(text.as_str())}))
        }
        MessagePart::ToolCall(call) => {
            let arguments: Value = filter(call.arguments.as_str()).into();
            Some(json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments}))
        }
        // The bytes of a picture are too many.
        MessagePart::Image(_) => Some(json!({"type": "text", "content": "[image]"})),
        MessagePart::ProviderBlock(_) | MessagePart::Sources { .. } => None,
    };
    content.iter().filter_map(part).collect()
}
