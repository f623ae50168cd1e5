//! Request bodies of the Responses API.
//!
//! Content is always written as a list of parts, never as a string, so that moving a breakpoint
//! changes nothing but the marker itself.

use hardpan_models::{MarkerFormat, ProviderProfile};
use hardpan_prompt::{
    Block, CacheLifetime, Call, Content, Effort, Image, Json, Prompt, PromptMessage, Reasoning, ResultPart,
    Role, Segment, ToolBlock, ToolResult,
};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use crate::codec::RequestContext;
use crate::serialize::{DataUrl, JoinedSegments, LazyList, caches_markers_only};

/// The smallest `max_output_tokens` that the server takes.
const MIN_OUTPUT_TOKENS: u32 = 16;

/// The whole body. `input` serializes as the list of items: fresh ones, or encoded before.
pub struct Body<'a, I> {
    pub prompt: &'a Prompt,
    pub profile: &'a ProviderProfile,
    pub context: &'a RequestContext<'a>,
    pub input: I,
}

/// The list of items: the system prompt as a developer message, if there is one, and the rest.
pub struct Input<'a, T> {
    system: Option<Item<'a>>,
    rest: Vec<T>,
}

impl<'a, T> Input<'a, T> {
    pub fn new(prompt: &'a Prompt, profile: &'a ProviderProfile, rest: Vec<T>) -> Self {
        let parts: Vec<&Block> = prompt.system.iter().collect();
        let kind = ItemKind::Message { role: "developer", phase: None, parts };
        let system = (!prompt.system.is_empty()).then_some(Item { kind, markers: profile.markers });
        Input { system, rest }
    }
}

impl<T: Serialize> Serialize for Input<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        self.system.iter().try_for_each(|system| list.serialize_element(system))?;
        self.rest.iter().try_for_each(|item| list.serialize_element(item))?;
        list.end()
    }
}

impl<I: Serialize> Serialize for Body<'_, I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Every field is named, so that a new one forces a decision here.
        let Prompt {
            model,
            max_tokens,
            thinking: _, // these models know effort only
            effort,
            tools,
            system: _, // as an item, like the messages
            system_id: _,
            messages: _,
            web_search,
            drop_stale_reasoning: _, // Anthropic's
            left_out: _,
        } = self.prompt;
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("model", model)?;
        body.serialize_entry("stream", &true)?;
        body.serialize_entry("store", &false)?;
        body.serialize_entry("include", &["reasoning.encrypted_content"])?;
        body.serialize_entry("max_output_tokens", max_tokens.max(&MIN_OUTPUT_TOKENS))?;
        body.serialize_entry("reasoning", &ReasoningField(*effort))?;
        let options = CacheOptions::new(self.prompt, self.profile, self.context);
        if options != CacheOptions::default() {
            body.serialize_entry("prompt_cache_options", &options)?;
        }
        if !tools.is_empty() || web_search.is_some() {
            let search = web_search.map(|_| WireTool::Search);
            body.serialize_entry("tools", &LazyList(|| tools.iter().map(WireTool::Declared).chain(search)))?;
            body.serialize_entry("parallel_tool_calls", &true)?;
        }
        body.serialize_entry("input", &self.input)?;
        body.end()
    }
}

/// The field `prompt_cache_options`.
#[derive(Default, PartialEq, Serialize)]
struct CacheOptions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    /// The answer whose request the server compares this one with, to tell why its cache entry was
    /// not read. It says so for any answer of the last while, stored or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison_response_id: Option<&'a str>,
}

impl<'a> CacheOptions<'a> {
    fn new(prompt: &Prompt, profile: &ProviderProfile, context: &RequestContext<'a>) -> Self {
        if context.plain || profile.markers != MarkerFormat::PromptCacheBreakpoint {
            return CacheOptions::default();
        }
        CacheOptions {
            mode: caches_markers_only(prompt, profile).then_some("explicit"),
            comparison_response_id: context.previous_answer.filter(|_| profile.diagnostics),
        }
    }
}

/// The field `reasoning`. A summary costs nothing; without reasoning there is none.
struct ReasoningField(Option<Effort>);

impl Serialize for ReasoningField {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(effort) = self.0 {
            map.serialize_entry("effort", &effort)?;
        }
        if self.0 != Some(Effort::None) {
            map.serialize_entry("summary", "auto")?;
        }
        map.end()
    }
}

/// One item of the input, without an id.
pub struct Item<'a> {
    kind: ItemKind<'a>,
    markers: MarkerFormat,
}

enum ItemKind<'a> {
    /// Texts and images, side by side in the prompt.
    Message {
        role: &'static str,
        phase: Option<&'static str>,
        parts: Vec<&'a Block>,
    },
    /// A change of the effort, from here on.
    Effort(Effort),
    Reasoning(&'a Reasoning),
    /// A search of the server's own.
    Provider(&'a Json),
    Call(&'a Call),
    Output(&'a ToolResult, Option<CacheLifetime>),
}

/// The items of a prompt message: its blocks in order, neighbouring texts and images as one message.
pub fn items<'a>(message: &'a PromptMessage, profile: &ProviderProfile) -> Vec<Item<'a>> {
    // A message for one turn is one for good here.
    let PromptMessage { role, blocks, id: _, documents: _, turn_scoped: _, effort } = message;
    let markers = profile.markers;
    let is_call = |block: &Block| matches!(*block.content, Content::Call(_));
    // The server tells what the model says on the way from what it says in the end.
    let phase = || if blocks.iter().any(is_call) { "commentary" } else { "final_answer" };
    let (role, phase) = match role {
        Role::User => ("user", None),
        Role::System => ("developer", None),
        Role::Assistant => ("assistant", profile.message_phase.then(phase)),
    };
    let mut items: Vec<Item<'_>> = Vec::new();
    items.extend(effort.map(|effort| Item { kind: ItemKind::Effort(effort), markers }));
    for block in blocks {
        let kind = match &*block.content {
            Content::Text(_) | Content::Image(..) => {
                if let Some(Item { kind: ItemKind::Message { parts, .. }, .. }) = items.last_mut() {
                    parts.push(block);
                    continue;
                }
                ItemKind::Message { role, phase, parts: vec![block] }
            }
            Content::Reasoning(reasoning) => ItemKind::Reasoning(reasoning),
            Content::Call(call) => ItemKind::Call(call),
            Content::Result(result) => ItemKind::Output(result, block.breakpoint),
            Content::Provider(block) => ItemKind::Provider(&block.json),
            Content::ToolChange(_) => continue, // Anthropic's alone
        };
        items.push(Item { kind, markers });
    }
    items
}

/// The address of each block in the body: tools, then system, then messages.
pub fn block_addresses(prompt: &Prompt, profile: &ProviderProfile) -> Vec<String> {
    let mut addresses: Vec<String> = (0..prompt.tools.len()).map(|index| format!("tools[{index}]")).collect();
    addresses.extend((0..prompt.system.len()).map(|part| format!("input[0].content[{part}]")));
    let first = usize::from(!prompt.system.is_empty());
    let items = prompt.messages.iter().flat_map(|message| items(message, profile));
    for (next, item) in (first..).zip(items) {
        match &item.kind {
            ItemKind::Message { parts, .. } => {
                addresses.extend((0..parts.len()).map(|part| format!("input[{next}].content[{part}]")));
            }
            ItemKind::Reasoning(_) | ItemKind::Provider(_) | ItemKind::Call(_) => {
                addresses.push(format!("input[{next}]"));
            }
            ItemKind::Output(..) => addresses.push(format!("input[{next}].output")),
            ItemKind::Effort(_) => {}
        }
    }
    addresses
}

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let markers = self.markers;
        let mut item = serializer.serialize_map(None)?;
        match &self.kind {
            ItemKind::Message { role, phase, parts } => {
                item.serialize_entry("type", "message")?;
                item.serialize_entry("role", role)?;
                if let Some(phase) = phase {
                    item.serialize_entry("phase", phase)?;
                }
                let is_said = *role == "assistant";
                let parts = || parts.iter().filter_map(|block| WirePart::from_block(block, is_said, markers));
                item.serialize_entry("content", &LazyList(parts))?;
            }
            ItemKind::Effort(effort) => {
                item.serialize_entry("type", "configuration_update")?;
                item.serialize_entry("reasoning", &serde_json::json!({"effort": effort}))?;
            }
            ItemKind::Reasoning(Reasoning { text, signature, redacted, origin: _ }) => {
                item.serialize_entry("type", "reasoning")?;
                let summary = Some(text).filter(|text| !text.is_empty());
                let summary =
                    || summary.map(|text| serde_json::json!({"type": "summary_text", "text": text.as_str()}));
                item.serialize_entry("summary", &LazyList(summary))?;
                if let Some(encrypted) = signature.as_ref().or(redacted.as_ref()) {
                    item.serialize_entry("encrypted_content", encrypted)?;
                }
            }
            ItemKind::Provider(json) => {
                // As all items, without its id: with one, the server wants the reasoning before it.
                for (name, value) in json.value().as_object().into_iter().flatten() {
                    if name != "id" {
                        item.serialize_entry(name, value)?;
                    }
                }
            }
            ItemKind::Call(Call { id, name, arguments, origin: _ }) => {
                item.serialize_entry("type", "function_call")?;
                item.serialize_entry("call_id", id)?;
                item.serialize_entry("name", name)?;
                item.serialize_entry("arguments", arguments.as_str())?;
            }
            ItemKind::Output(result, breakpoint) => {
                // The API has no mark for a failure: the text says it.
                let ToolResult { call_id, parts, outcome: _, origin: _ } = result;
                item.serialize_entry("type", "function_call_output")?;
                item.serialize_entry("call_id", call_id)?;
                if parts.is_empty() {
                    item.serialize_entry("output", "")?;
                } else {
                    let last = parts.len() - 1;
                    let part = |(index, part)| {
                        WirePart::from_result(part, breakpoint.filter(|_| index == last), markers)
                    };
                    item.serialize_entry("output", &LazyList(|| parts.iter().enumerate().map(part)))?;
                }
            }
        }
        item.end()
    }
}

struct WirePart<'a> {
    content: PartContent<'a>,
    marked: bool,
}

enum PartContent<'a> {
    /// A text, and the type of its part.
    Text(&'static str, &'a [Segment]),
    Image(&'a Image),
}

impl<'a> WirePart<'a> {
    /// The part of a text or an image. What the model said has a type of its own, and no marker.
    fn from_block(block: &'a Block, is_said: bool, markers: MarkerFormat) -> Option<Self> {
        let content = match &*block.content {
            Content::Text(segments) => {
                PartContent::Text(if is_said { "output_text" } else { "input_text" }, segments)
            }
            Content::Image(image, _) => PartContent::Image(image),
            Content::Reasoning(_)
            | Content::Call(_)
            | Content::Result(_)
            | Content::ToolChange(_)
            | Content::Provider(_) => {
                return None;
            }
        };
        let breakpoint = block.breakpoint.filter(|_| !is_said);
        Some(WirePart { content, marked: is_marked(breakpoint, markers) })
    }

    fn from_result(part: &'a ResultPart, breakpoint: Option<CacheLifetime>, markers: MarkerFormat) -> Self {
        let content = match part {
            ResultPart::Text(segments) => PartContent::Text("input_text", segments),
            ResultPart::Image(image) => PartContent::Image(image),
        };
        WirePart { content, marked: is_marked(breakpoint, markers) }
    }
}

fn is_marked(breakpoint: Option<CacheLifetime>, markers: MarkerFormat) -> bool {
    breakpoint.is_some() && markers == MarkerFormat::PromptCacheBreakpoint
}

impl Serialize for WirePart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut part = serializer.serialize_map(None)?;
        match &self.content {
            PartContent::Text(kind, segments) => {
                part.serialize_entry("type", kind)?;
                part.serialize_entry("text", &JoinedSegments(segments))?;
            }
            PartContent::Image(image) => {
                part.serialize_entry("type", "input_image")?;
                part.serialize_entry("image_url", &DataUrl(image))?;
            }
        }
        if self.marked {
            // The longer lifetime (12h) costs what no document says, so it is never asked for.
            part.serialize_entry("prompt_cache_breakpoint", &serde_json::json!({"mode": "explicit"}))?;
        }
        part.end()
    }
}

#[derive(Clone, Copy)]
enum WireTool<'a> {
    Declared(&'a ToolBlock),
    /// The server's own search of the web.
    Search,
}

impl Serialize for WireTool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // This protocol has no breakpoints on tools; the layouts set none for it.
        let mut map = serializer.serialize_map(None)?;
        let WireTool::Declared(ToolBlock { region: _, tool, breakpoint: _ }) = self else {
            map.serialize_entry("type", "web_search")?;
            return map.end();
        };
        map.serialize_entry("type", "function")?;
        map.serialize_entry("name", &tool.name)?;
        map.serialize_entry("description", &tool.description)?;
        map.serialize_entry("parameters", &tool.parameters)?;
        // Left out, it means true, which few schemas are fit for.
        map.serialize_entry("strict", &false)?;
        map.end()
    }
}
