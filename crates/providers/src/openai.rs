//! OpenAI Chat Completions, and all servers that speak it.
//!
//! A server that understands markers gets content as lists, always; one that does not gets plain strings, which many of
//! them demand, unless there is an image. Text blocks of one message are then joined by a newline.

use hardpan_models::{Markers, Wire};
use hardpan_prompt::{
    Block, Call, Content, Image, Lifetime, Prompt, ResultPart, Role, Segment, ToolBlock, ToolResult, Turn,
};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::pieces::{CacheControl, DataUrl, Joined, Lines, List};

/// The whole body, with its messages as a list.
pub struct Body<'a, M> {
    pub prompt: &'a Prompt,
    pub wire: &'a Wire,
    pub messages: M,
}

/// The system prompt, and the messages after it.
pub struct Messages<'a, T> {
    system: Option<Message<'a>>,
    rest: Vec<T>,
}

impl<'a> Messages<'a, Message<'a>> {
    /// The messages of a prompt.
    pub fn of(prompt: &'a Prompt, wire: &'a Wire) -> Self {
        let mut rest = Vec::with_capacity(prompt.turns.len());
        prompt.turns.iter().for_each(|turn| split(turn, wire, &mut rest));
        Messages { system: system(prompt, wire), rest }
    }
}

impl<'a, T> Messages<'a, T> {
    /// The system prompt, and messages that were made before.
    pub fn after_system(prompt: &'a Prompt, wire: &'a Wire, rest: Vec<T>) -> Self {
        Messages { system: system(prompt, wire), rest }
    }
}

impl<T: Serialize> Serialize for Messages<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        self.system.iter().try_for_each(|system| list.serialize_element(system))?;
        self.rest.iter().try_for_each(|message| list.serialize_element(message))?;
        list.end()
    }
}

/// The message that holds the system prompt.
fn system<'a>(prompt: &'a Prompt, wire: &'a Wire) -> Option<Message<'a>> {
    let parts: Vec<Part<'_>> = prompt.system.iter().filter_map(part).collect();
    let id = prompt.system_id.as_deref();
    (!prompt.system.is_empty()).then(|| Message { role: "system", id, ..Message::new(wire, parts) })
}

impl<M: Serialize> Serialize for Body<'_, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Every field is named, so that a new one forces a decision here.
        let Prompt {
            model,
            max_tokens,
            thinking: _,
            tools,
            system: _, // these three as messages
            system_id: _,
            turns: _,
            web_search,
            left_out: _,
        } = self.prompt;
        let wire = self.wire;
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("model", model)?;
        body.serialize_entry("messages", &self.messages)?;
        if !tools.is_empty() {
            body.serialize_entry("tools", &List(|| tools.iter().map(WireTool)))?;
        }
        body.serialize_entry(wire.max_tokens_field.name(), max_tokens)?;
        body.serialize_entry("stream", &true)?;
        if wire.stream_usage {
            body.serialize_entry("stream_options", &serde_json::json!({"include_usage": true}))?;
        }
        if wire.include_reasoning {
            body.serialize_entry("include_reasoning", &true)?;
        }
        if let (Some(search), Some(plugin)) = (web_search, &wire.web_search_plugin) {
            let plugin = serde_json::json!([{"id": plugin, "max_results": search.max_results}]);
            body.serialize_entry("plugins", &plugin)?;
        }
        body.end()
    }
}

/// Where each block of the prompt is in the body: tools, then system, then messages.
pub fn addresses(prompt: &Prompt, wire: &Wire) -> Vec<String> {
    let mut addresses: Vec<String> = (0..prompt.tools.len()).map(|index| format!("tools[{index}]")).collect();
    let mut next = 0;
    if !prompt.system.is_empty() {
        let form = Form::of(wire, &prompt.system.iter().filter_map(part).collect::<Vec<_>>());
        addresses.extend((0..prompt.system.len()).map(|index| form.address(0, index)));
        next = 1;
    }
    for turn in &prompt.turns {
        let mut messages = Vec::new();
        split(turn, wire, &mut messages);
        let results = messages.iter().take_while(|message| message.answers.is_some()).count();
        let rest = next + results;
        // Images that a result cannot hold stand before the turn's own text.
        let own = turn.blocks.iter().filter_map(part).count();
        let parts = messages.get(results).map_or(&[][..], |message| &message.parts);
        let (mut text, form) = (parts.len() - own, Form::of(wire, parts));
        let (mut result, mut call) = (0, 0);
        for block in &turn.blocks {
            addresses.push(match *block.content {
                Content::Result(_) => {
                    result += 1;
                    Form::of(wire, &messages[result - 1].parts).address(next + result - 1, 0)
                }
                Content::Call(_) => {
                    call += 1;
                    format!("messages[{rest}].tool_calls[{}]", call - 1)
                }
                Content::Reasoning(_) => {
                    format!("messages[{rest}].{}", wire.reasoning_field.name().unwrap_or("content"))
                }
                Content::Text(_) | Content::Image(..) => {
                    text += 1;
                    form.address(rest, text - 1)
                }
            });
        }
        next += messages.len();
    }
    addresses
}

/// How a message's content is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A list of parts.
    List,
    /// One string.
    Text,
}

impl Form {
    /// A list wherever markers are understood, else only around an image; of nothing, there is no list.
    fn of(wire: &Wire, parts: &[Part<'_>]) -> Self {
        let has_image = parts.iter().any(|part| matches!(part, Part::Image(..)));
        if !parts.is_empty() && (wire.markers != Markers::None || has_image) {
            Form::List
        } else {
            Form::Text
        }
    }

    fn address(self, message: usize, part: usize) -> String {
        match self {
            Form::List => format!("messages[{message}].content[{part}]"),
            Form::Text => format!("messages[{message}].content"),
        }
    }
}

/// A message of the request: one turn may make several.
pub struct Message<'a> {
    wire: &'a Wire,
    role: &'static str,
    id: Option<&'a str>,
    parts: Vec<Part<'a>>,
    reasoning: Vec<&'a str>,
    calls: Vec<&'a Call>,
    answers: Option<&'a str>,
    documents: &'a [std::sync::Arc<str>],
}

/// Text or an image, with its breakpoint.
enum Part<'a> {
    Text(&'a [Segment], Option<Lifetime>),
    Image(&'a Image, Option<Lifetime>),
}

fn part(block: &Block) -> Option<Part<'_>> {
    match &*block.content {
        Content::Text(segments) => Some(Part::Text(segments, block.breakpoint)),
        Content::Image(image, _) => Some(Part::Image(image, block.breakpoint)),
        Content::Reasoning(_) | Content::Call(_) | Content::Result(_) => None,
    }
}

impl<'a> Message<'a> {
    fn new(wire: &'a Wire, parts: Vec<Part<'a>>) -> Self {
        let (reasoning, calls) = (Vec::new(), Vec::new());
        Message { wire, role: "user", id: None, parts, reasoning, calls, answers: None, documents: &[] }
    }
}

/// The messages of a turn: results by themselves, then images that a result cannot hold, then the rest.
pub fn split<'a>(turn: &'a Turn, wire: &'a Wire, messages: &mut Vec<Message<'a>>) {
    let Turn { role, blocks, id, documents } = turn;
    let mut images = Vec::new();
    for block in blocks {
        let Content::Result(ToolResult { call_id, parts, .. }) = &*block.content else { continue };
        let mut held: Vec<Part<'_>> = Vec::new();
        for part in parts {
            match part {
                ResultPart::Text(segments) => held.push(Part::Text(segments, None)),
                ResultPart::Image(image) if wire.tool_result_images => held.push(Part::Image(image, None)),
                ResultPart::Image(image) => images.push(Part::Image(image, None)),
            }
        }
        // A result of nothing but images that it cannot hold ends with the last of them.
        let last = held.last_mut().or(images.last_mut().filter(|_| !parts.is_empty()));
        if let Some(Part::Text(_, breakpoint) | Part::Image(_, breakpoint)) = last {
            *breakpoint = block.breakpoint;
        }
        messages.push(Message { role: "tool", answers: Some(call_id), ..Message::new(wire, held) });
    }
    let parts: Vec<Part<'_>> = images.into_iter().chain(blocks.iter().filter_map(part)).collect();
    let calls = |block: &'a Block| if let Content::Call(call) = &*block.content { Some(call) } else { None };
    let reasoning = |block: &'a Block| match &*block.content {
        Content::Reasoning(reasoning) => Some(reasoning.text.as_str()),
        _ => None,
    };
    let message = Message {
        role: if *role == Role::User { "user" } else { "assistant" },
        id: id.as_deref(),
        calls: blocks.iter().filter_map(calls).collect(),
        reasoning: blocks.iter().filter_map(reasoning).collect(),
        documents: if wire.document_context { documents } else { &[] },
        ..Message::new(wire, parts)
    };
    if !message.parts.is_empty() || !message.calls.is_empty() {
        messages.push(message);
    }
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Message { wire, role, id, parts, reasoning, calls, answers, documents } = self;
        let mut message = serializer.serialize_map(None)?;
        message.serialize_entry("role", role)?;
        if let Some(id) = id.filter(|_| wire.message_ids) {
            message.serialize_entry("message_id", id)?;
        }
        if let Some(call) = answers {
            message.serialize_entry("tool_call_id", call)?;
        }
        if parts.is_empty() {
            // A tool that answers nothing still answers; a message of calls alone has no content.
            let empty = answers.map(|_| "");
            message.serialize_entry("content", &empty)?;
        } else if Form::of(wire, parts) == Form::List {
            message.serialize_entry(
                "content",
                &List(|| parts.iter().map(|part| WirePart { part, markers: wire.markers })),
            )?;
        } else {
            let texts = parts.iter().filter_map(|part| match part {
                Part::Text(segments, _) => Some(*segments),
                Part::Image(..) => None,
            });
            message.serialize_entry("content", &Lines(texts.collect()))?;
        }
        // DeepSeek refuses a message of calls without its reasoning, even an empty one.
        if let Some(field) = wire.reasoning_field.name().filter(|_| !reasoning.is_empty()) {
            message.serialize_entry(field, &reasoning.join("\n"))?;
        }
        if !calls.is_empty() {
            message.serialize_entry("tool_calls", &List(|| calls.iter().map(|call| WireCall(call))))?;
        }
        if !documents.is_empty() {
            message.serialize_entry("documentContext", &serde_json::json!({"documentIds": documents}))?;
        }
        message.end()
    }
}

struct WirePart<'a> {
    part: &'a Part<'a>,
    markers: Markers,
}

impl Serialize for WirePart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct ImageUrl<'a> {
            url: DataUrl<'a>,
        }
        let mut map = serializer.serialize_map(None)?;
        let breakpoint = match self.part {
            Part::Text(segments, breakpoint) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", &Joined(segments))?;
                breakpoint
            }
            Part::Image(image, breakpoint) => {
                map.serialize_entry("type", "image_url")?;
                map.serialize_entry("image_url", &ImageUrl { url: DataUrl(image) })?;
                breakpoint
            }
        };
        match (self.markers, breakpoint) {
            (Markers::CacheControl, Some(lifetime)) => {
                map.serialize_entry("cache_control", &CacheControl(*lifetime))?;
            }
            (Markers::PromptCacheBreakpoint, Some(_)) => {
                map.serialize_entry("prompt_cache_breakpoint", &serde_json::json!({"mode": "explicit"}))?;
            }
            _ => {}
        }
        map.end()
    }
}

struct WireCall<'a>(&'a Call);

impl Serialize for WireCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Function<'a> {
            name: &'a str,
            arguments: &'a str,
        }
        let Call { id, name, arguments, origin: _ } = self.0;
        let mut call = serializer.serialize_map(None)?;
        call.serialize_entry("id", id)?;
        call.serialize_entry("type", "function")?;
        call.serialize_entry("function", &Function { name, arguments: arguments.as_str() })?;
        call.end()
    }
}

struct WireTool<'a>(&'a ToolBlock);

impl Serialize for WireTool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Function<'a> {
            name: &'a str,
            description: &'a str,
            parameters: &'a hardpan_prompt::Json,
        }
        // A breakpoint on a tool has no form here; the layouts put none there.
        let ToolBlock { place: _, tool, breakpoint: _ } = self.0;
        let function =
            Function { name: &tool.name, description: &tool.description, parameters: &tool.parameters };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &function)?;
        map.end()
    }
}
