//! Request bodies of OpenAI Chat Completions, for OpenAI and all compatible servers.
//!
//! Servers that support cache markers always get content as lists. The others get plain strings,
//! which many of them require, unless a message has an image; the text blocks of a message are then
//! joined by newlines.

use hardpan_models::{MarkerFormat, ProviderProfile};
use hardpan_prompt::{
    Block, CacheLifetime, Call, Content, Image, Prompt, PromptMessage, ResultPart, Role, Segment, ToolBlock,
    ToolResult,
};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::serialize::{CacheControl, DataUrl, JoinedLines, JoinedSegments, LazyList, caches_markers_only};

/// The whole body. `messages` serializes as the list of messages: fresh ones, or encoded before.
pub struct Body<'a, M> {
    pub prompt: &'a Prompt,
    pub profile: &'a ProviderProfile,
    pub messages: M,
}

/// The list of messages: the system prompt, if there is one, and the rest.
pub struct Messages<'a, T> {
    system: Option<Message<'a>>,
    rest: Vec<T>,
}

impl<'a> Messages<'a, Message<'a>> {
    /// Converts the messages of a prompt.
    pub fn from_prompt(prompt: &'a Prompt, profile: &'a ProviderProfile) -> Self {
        let mut rest = Vec::with_capacity(prompt.messages.len());
        prompt.messages.iter().for_each(|turn| split_message(turn, profile, &mut rest));
        Messages { system: system_message(prompt, profile), rest }
    }
}

impl<'a, T> Messages<'a, T> {
    /// The system prompt of `prompt`, followed by messages that are already encoded.
    pub fn after_system(prompt: &'a Prompt, profile: &'a ProviderProfile, rest: Vec<T>) -> Self {
        Messages { system: system_message(prompt, profile), rest }
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
fn system_message<'a>(prompt: &'a Prompt, profile: &'a ProviderProfile) -> Option<Message<'a>> {
    let parts: Vec<ContentPart<'_>> = prompt.system.iter().filter_map(content_part).collect();
    let id = prompt.system_id.as_deref();
    (!prompt.system.is_empty()).then(|| Message { role: "system", id, ..Message::new(profile, parts) })
}

impl<M: Serialize> Serialize for Body<'_, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Every field is named, so that a new one forces a decision here.
        let Prompt {
            model,
            max_tokens,
            thinking: _, // Chat Completions knows effort only
            effort,
            drop_stale_reasoning: _, // reasoning is not signed
            tools,
            system: _, // these three as messages
            system_id: _,
            messages: _,
            web_search,
            left_out: _,
        } = self.prompt;
        let profile = self.profile;
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("model", model)?;
        body.serialize_entry("messages", &self.messages)?;
        if !tools.is_empty() {
            body.serialize_entry("tools", &LazyList(|| tools.iter().map(WireTool)))?;
        }
        body.serialize_entry(profile.max_tokens_field.name(), max_tokens)?;
        body.serialize_entry("stream", &true)?;
        if profile.stream_usage {
            body.serialize_entry("stream_options", &serde_json::json!({"include_usage": true}))?;
        }
        if caches_markers_only(self.prompt, profile) {
            body.serialize_entry("prompt_cache_options", &serde_json::json!({"mode": "explicit"}))?;
        }
        if let Some(effort) = effort {
            body.serialize_entry("reasoning_effort", effort)?;
        }
        if profile.include_reasoning {
            body.serialize_entry("include_reasoning", &true)?;
        }
        if let (Some(search), Some(plugin)) = (web_search, &profile.web_search_plugin) {
            let plugin = serde_json::json!([{"id": plugin, "max_results": search.max_results}]);
            body.serialize_entry("plugins", &plugin)?;
        }
        body.end()
    }
}

/// The address of each block in the body: tools, then system, then messages.
pub fn block_addresses(prompt: &Prompt, profile: &ProviderProfile) -> Vec<String> {
    let mut addresses: Vec<String> = (0..prompt.tools.len()).map(|index| format!("tools[{index}]")).collect();
    let mut next = 0;
    if !prompt.system.is_empty() {
        let form = ContentForm::for_parts(
            profile,
            &prompt.system.iter().filter_map(content_part).collect::<Vec<_>>(),
        );
        addresses.extend((0..prompt.system.len()).map(|index| form.address(0, index)));
        next = 1;
    }
    for turn in &prompt.messages {
        let mut messages = Vec::new();
        split_message(turn, profile, &mut messages);
        let results = messages.iter().take_while(|message| message.answered_call.is_some()).count();
        let rest = next + results;
        // Images that a tool message cannot contain come before the message's own text.
        let own = turn.blocks.iter().filter_map(content_part).count();
        let parts = messages.get(results).map_or(&[][..], |message| &message.parts);
        let (mut text, form) = (parts.len() - own, ContentForm::for_parts(profile, parts));
        let (mut result, mut call) = (0, 0);
        for block in &turn.blocks {
            addresses.push(match *block.content {
                Content::Result(_) => {
                    result += 1;
                    ContentForm::for_parts(profile, &messages[result - 1].parts).address(next + result - 1, 0)
                }
                Content::Call(_) => {
                    call += 1;
                    format!("messages[{rest}].tool_calls[{}]", call - 1)
                }
                Content::Reasoning(_) => {
                    format!("messages[{rest}].{}", profile.reasoning_field.name().unwrap_or("content"))
                }
                // Other protocols' alone: no address is asked for.
                Content::ToolChange(_) | Content::Provider(_) => form.address(rest, text),
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
enum ContentForm {
    /// As a list of parts.
    List,
    /// As one string.
    Text,
}

impl ContentForm {
    /// A list if the server supports markers or a part is an image; never an empty list.
    fn for_parts(profile: &ProviderProfile, parts: &[ContentPart<'_>]) -> Self {
        let has_image = parts.iter().any(|part| matches!(part, ContentPart::Image(..)));
        if !parts.is_empty() && (profile.markers != MarkerFormat::None || has_image) {
            ContentForm::List
        } else {
            ContentForm::Text
        }
    }

    fn address(self, message: usize, part: usize) -> String {
        match self {
            ContentForm::List => format!("messages[{message}].content[{part}]"),
            ContentForm::Text => format!("messages[{message}].content"),
        }
    }
}

/// One message of the body. A [`PromptMessage`] may become several: see [`split_message`].
pub struct Message<'a> {
    profile: &'a ProviderProfile,
    role: &'static str,
    id: Option<&'a str>,
    parts: Vec<ContentPart<'a>>,
    reasoning: Vec<&'a str>,
    calls: Vec<&'a Call>,
    answered_call: Option<&'a str>,
    documents: &'a [std::sync::Arc<str>],
}

/// A text or an image, with its breakpoint.
enum ContentPart<'a> {
    Text(&'a [Segment], Option<CacheLifetime>),
    Image(&'a Image, Option<CacheLifetime>),
}

fn content_part(block: &Block) -> Option<ContentPart<'_>> {
    match &*block.content {
        Content::Text(segments) => Some(ContentPart::Text(segments, block.breakpoint)),
        Content::Image(image, _) => Some(ContentPart::Image(image, block.breakpoint)),
        Content::Reasoning(_)
        | Content::Call(_)
        | Content::Result(_)
        | Content::ToolChange(_)
        | Content::Provider(_) => None,
    }
}

impl<'a> Message<'a> {
    fn new(profile: &'a ProviderProfile, parts: Vec<ContentPart<'a>>) -> Self {
        let (reasoning, calls) = (Vec::new(), Vec::new());
        Message {
            profile,
            role: "user",
            id: None,
            parts,
            reasoning,
            calls,
            answered_call: None,
            documents: &[],
        }
    }
}

/// Converts a prompt message: one `tool` message for each result, then one message with images that
/// a result cannot contain and everything else.
pub fn split_message<'a>(
    turn: &'a PromptMessage,
    profile: &'a ProviderProfile,
    messages: &mut Vec<Message<'a>>,
) {
    // A change of effort within the conversation, and text for one turn only, are Anthropic's.
    let PromptMessage { role, blocks, id, documents, turn_scoped: _, effort: _ } = turn;
    let mut images = Vec::new();
    for block in blocks {
        let Content::Result(ToolResult { call_id, parts, .. }) = &*block.content else { continue };
        let mut held: Vec<ContentPart<'_>> = Vec::new();
        for part in parts {
            match part {
                ResultPart::Text(segments) => held.push(ContentPart::Text(segments, None)),
                ResultPart::Image(image) if profile.tool_result_images => {
                    held.push(ContentPart::Image(image, None));
                }
                ResultPart::Image(image) => images.push(ContentPart::Image(image, None)),
            }
        }
        // If a result consists of images that it cannot contain, the last of them ends it.
        let last = held.last_mut().or(images.last_mut().filter(|_| !parts.is_empty()));
        if let Some(ContentPart::Text(_, breakpoint) | ContentPart::Image(_, breakpoint)) = last {
            *breakpoint = block.breakpoint;
        }
        messages.push(Message { role: "tool", answered_call: Some(call_id), ..Message::new(profile, held) });
    }
    let parts: Vec<ContentPart<'_>> =
        images.into_iter().chain(blocks.iter().filter_map(content_part)).collect();
    let calls = |block: &'a Block| if let Content::Call(call) = &*block.content { Some(call) } else { None };
    let reasoning = |block: &'a Block| match &*block.content {
        Content::Reasoning(reasoning) => Some(reasoning.text.as_str()),
        _ => None,
    };
    let message = Message {
        role: match role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        },
        id: id.as_deref(),
        calls: blocks.iter().filter_map(calls).collect(),
        reasoning: blocks.iter().filter_map(reasoning).collect(),
        documents: if profile.document_context { documents } else { &[] },
        ..Message::new(profile, parts)
    };
    if !message.parts.is_empty() || !message.calls.is_empty() {
        messages.push(message);
    }
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Message { profile, role, id, parts, reasoning, calls, answered_call, documents } = self;
        let mut message = serializer.serialize_map(None)?;
        message.serialize_entry("role", role)?;
        if let Some(id) = id.filter(|_| profile.message_ids) {
            message.serialize_entry("message_id", id)?;
        }
        if let Some(call) = answered_call {
            message.serialize_entry("tool_call_id", call)?;
        }
        if parts.is_empty() {
            // An empty tool result is an empty string; a message with only calls has content null.
            let empty = answered_call.map(|_| "");
            message.serialize_entry("content", &empty)?;
        } else if ContentForm::for_parts(profile, parts) == ContentForm::List {
            message.serialize_entry(
                "content",
                &LazyList(|| parts.iter().map(|part| WirePart { part, markers: profile.markers })),
            )?;
        } else {
            let texts = parts.iter().filter_map(|part| match part {
                ContentPart::Text(segments, _) => Some(*segments),
                ContentPart::Image(..) => None,
            });
            message.serialize_entry("content", &JoinedLines(texts.collect()))?;
        }
        // DeepSeek rejects a message with calls but without its reasoning, even if that is empty.
        if let Some(field) = profile.reasoning_field.name().filter(|_| !reasoning.is_empty()) {
            message.serialize_entry(field, &reasoning.join("\n"))?;
        }
        if !calls.is_empty() {
            message.serialize_entry("tool_calls", &LazyList(|| calls.iter().map(|call| WireCall(call))))?;
        }
        if !documents.is_empty() {
            message.serialize_entry("documentContext", &serde_json::json!({"documentIds": documents}))?;
        }
        message.end()
    }
}

struct WirePart<'a> {
    part: &'a ContentPart<'a>,
    markers: MarkerFormat,
}

impl Serialize for WirePart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct ImageUrl<'a> {
            url: DataUrl<'a>,
        }
        let mut map = serializer.serialize_map(None)?;
        let breakpoint = match self.part {
            ContentPart::Text(segments, breakpoint) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", &JoinedSegments(segments))?;
                breakpoint
            }
            ContentPart::Image(image, breakpoint) => {
                map.serialize_entry("type", "image_url")?;
                map.serialize_entry("image_url", &ImageUrl { url: DataUrl(image) })?;
                breakpoint
            }
        };
        match (self.markers, breakpoint) {
            (MarkerFormat::CacheControl, Some(lifetime)) => {
                map.serialize_entry("cache_control", &CacheControl(*lifetime))?;
            }
            (MarkerFormat::PromptCacheBreakpoint, Some(_)) => {
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
        // This protocol has no breakpoints on tools; the layouts set none for it.
        let ToolBlock { region: _, tool, breakpoint: _ } = self.0;
        let function =
            Function { name: &tool.name, description: &tool.description, parameters: &tool.parameters };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &function)?;
        map.end()
    }
}
