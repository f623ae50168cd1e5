//! Request bodies of Gemini's `generateContent`.
//!
//! A signature is a [`Reasoning`] without text: it goes out with the part that follows it, which is
//! the part it came with, or with an empty text at the end of its message. Results go into a message
//! of their own, before the rest of theirs.

use hardpan_models::ProviderProfile;
use hardpan_prompt::{
    Block, Call, Content, Effort, Image, Json, Prompt, PromptMessage, Reasoning, ResultPart, Role, Segment,
    Thinking, ToolBlock, ToolOutcome, ToolResult,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::SKIP_SIGNATURES;
use crate::serialize::{JoinedLines, JoinedSegments, LazyList};

/// The whole body. `contents` serializes as the list of messages: fresh ones, or encoded before.
pub struct Body<'a, M> {
    pub prompt: &'a Prompt,
    pub profile: &'a ProviderProfile,
    pub contents: M,
}

impl<M: Serialize> Serialize for Body<'_, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Every field is named, so that a new one forces a decision here.
        let Prompt {
            model: _, // in the path
            max_tokens,
            thinking,
            effort,
            tools,
            system,
            messages: _,  // as contents
            system_id: _, // Gemini knows no message ids
            web_search,
            drop_stale_reasoning: _, // Anthropic's alone
            left_out: _,
        } = self.prompt;
        let mut body = serializer.serialize_map(None)?;
        if !system.is_empty() {
            body.serialize_entry("systemInstruction", &SystemInstruction(system))?;
        }
        let search = web_search.map(|_| ToolEntry::Search);
        let entries: Vec<ToolEntry<'_>> =
            (!tools.is_empty()).then_some(ToolEntry::Declarations(tools)).into_iter().chain(search).collect();
        if !entries.is_empty() {
            body.serialize_entry("tools", &entries)?;
        }
        if !tools.is_empty() && web_search.is_some() {
            // The server refuses its own tools beside declared ones without it.
            body.serialize_entry("toolConfig", &json!({"includeServerSideToolInvocations": true}))?;
        }
        body.serialize_entry("contents", &self.contents)?;
        let mut config = Map::new();
        config.insert("maxOutputTokens".into(), json!(max_tokens));
        if let Some(thinking) = thinking_config(*thinking, *effort, self.profile) {
            config.insert("thinkingConfig".into(), thinking);
        }
        body.serialize_entry("generationConfig", &config)?;
        body.end()
    }
}

/// The field `thinkingConfig`. The server refuses a level together with a budget.
fn thinking_config(thinking: Thinking, effort: Option<Effort>, profile: &ProviderProfile) -> Option<Value> {
    let mut config = Map::new();
    match (thinking, effort) {
        (Thinking::Disabled, _) => drop(config.insert("thinkingBudget".into(), json!(0))),
        (Thinking::Budget(tokens), _) => drop(config.insert("thinkingBudget".into(), json!(tokens))),
        (Thinking::Adaptive | Thinking::BetweenTools | Thinking::Unspecified, Some(effort)) => {
            config.insert("thinkingLevel".into(), json!(thinking_level(effort)));
        }
        (Thinking::Adaptive | Thinking::BetweenTools | Thinking::Unspecified, None) => {}
    }
    if profile.include_reasoning && thinking != Thinking::Disabled {
        config.insert("includeThoughts".into(), json!(true));
    }
    (!config.is_empty()).then_some(Value::Object(config))
}

fn thinking_level(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal => "MINIMAL",
        Effort::Low => "LOW",
        Effort::Medium => "MEDIUM",
        Effort::High | Effort::XHigh | Effort::Max => "HIGH",
    }
}

/// The messages of a prompt.
pub fn contents<'a>(prompt: &'a Prompt, profile: &ProviderProfile) -> Vec<WireContent<'a>> {
    let split = |(index, message): (usize, &'a PromptMessage)| {
        split_message(message, CallNames { earlier: &prompt.messages[..index] }, profile).contents
    };
    prompt.messages.iter().enumerate().flat_map(split).collect()
}

/// The address of each block in the body: tools, then system, then messages.
pub fn block_addresses(prompt: &Prompt, profile: &ProviderProfile) -> Vec<String> {
    let tools = (0..prompt.tools.len()).map(|index| format!("tools[0].functionDeclarations[{index}]"));
    let system = (0..prompt.system.len()).map(|index| format!("systemInstruction.parts[{index}]"));
    let mut addresses: Vec<String> = tools.chain(system).collect();
    let mut first = 0;
    for (index, message) in prompt.messages.iter().enumerate() {
        let names = CallNames { earlier: &prompt.messages[..index] };
        let SplitMessage { contents, places } = split_message(message, names, profile);
        let address =
            |place: &PartPlace| format!("contents[{}].parts[{}]", first + place.content, place.part);
        addresses.extend(places.iter().map(address));
        first += contents.len();
    }
    addresses
}

/// Where the names of called tools are found: results go out with the name of their call.
#[derive(Clone, Copy)]
pub struct CallNames<'a> {
    /// The messages before the one with the results.
    pub earlier: &'a [PromptMessage],
}

impl<'a> CallNames<'a> {
    /// The name of the call's tool. A result without a call is refused before it is sent.
    fn name_of(self, id: &str) -> &'a str {
        let mut blocks = self.earlier.iter().rev().flat_map(|message| &message.blocks);
        let name = blocks.find_map(|block| match &*block.content {
            Content::Call(call) if *call.id == *id => Some(&*call.name),
            _ => None,
        });
        name.unwrap_or("unknown")
    }
}

/// A prompt message as the body has it.
pub struct SplitMessage<'a> {
    /// Its messages in the body: at most two.
    pub contents: Vec<WireContent<'a>>,
    /// Where each of its blocks is.
    places: Vec<PartPlace>,
}

#[derive(Clone, Copy, Default)]
struct PartPlace {
    content: usize,
    part: usize,
}

/// One message of the body.
pub struct WireContent<'a> {
    role: &'static str,
    parts: Vec<WirePart<'a>>,
}

/// One part of a message, with its signature.
struct WirePart<'a> {
    data: PartData<'a>,
    signature: Option<&'a str>,
}

enum PartData<'a> {
    Text(&'a [Segment]),
    /// No text, only a signature.
    Empty,
    /// A summary of reasoning.
    Thought(&'a str),
    Image(&'a Image),
    Call(&'a Call),
    /// A part of the server's own search, as it came.
    Provider(&'a Json),
    Result {
        result: &'a ToolResult,
        name: &'a str,
        has_images: bool,
    },
}

/// Converts a prompt message.
pub fn split_message<'a>(
    message: &'a PromptMessage,
    names: CallNames<'a>,
    profile: &ProviderProfile,
) -> SplitMessage<'a> {
    match message.role {
        // System messages are refused before they are sent.
        Role::User | Role::System => split_user_message(&message.blocks, names, profile),
        Role::Assistant => split_model_message(&message.blocks, profile),
    }
}

/// Results, then images that they cannot contain and everything else.
fn split_user_message<'a>(
    blocks: &'a [Block],
    names: CallNames<'a>,
    profile: &ProviderProfile,
) -> SplitMessage<'a> {
    let has_images = profile.tool_result_images;
    let (mut results, mut rest) = (Vec::new(), Vec::new());
    for block in blocks {
        let Content::Result(result) = &*block.content else { continue };
        let name = names.name_of(&result.call_id);
        results.push(WirePart::new(PartData::Result { result, name, has_images }));
        let images = result.parts.iter().filter_map(part_image).filter(|_| !has_images);
        rest.extend(images.map(|image| WirePart::new(PartData::Image(image))));
    }
    let rest_at = usize::from(!results.is_empty());
    let mut places = Vec::with_capacity(blocks.len());
    let mut next_result = 0;
    for block in blocks {
        let data = match &*block.content {
            Content::Result(_) => {
                places.push(PartPlace { content: 0, part: next_result });
                next_result += 1;
                continue;
            }
            Content::Text(segments) => Some(PartData::Text(segments)),
            Content::Image(image, _) => Some(PartData::Image(image)),
            // The model's alone, and Anthropic's.
            Content::Reasoning(_) | Content::Call(_) | Content::ToolChange(_) | Content::Provider(_) => None,
        };
        places.push(PartPlace { content: rest_at, part: rest.len() });
        rest.extend(data.map(WirePart::new));
    }
    let contents = [results, rest].into_iter().filter(|parts| !parts.is_empty());
    SplitMessage { contents: contents.map(|parts| WireContent { role: "user", parts }).collect(), places }
}

/// The model's parts, each with the signature before it. The first call of a step needs one.
fn split_model_message<'a>(blocks: &'a [Block], profile: &ProviderProfile) -> SplitMessage<'a> {
    let mut parts: Vec<WirePart<'a>> = Vec::new();
    let mut places = Vec::with_capacity(blocks.len());
    let mut pending: Option<&'a str> = None;
    let mut is_first_call = true;
    for block in blocks {
        let data = match &*block.content {
            Content::Reasoning(Reasoning { text, signature, redacted: _, origin: _ }) => {
                if !text.is_empty() {
                    parts.push(WirePart::new(PartData::Thought(text)));
                }
                if let Some(earlier) = signature.as_deref().and_then(|newer| pending.replace(newer)) {
                    parts.push(WirePart { data: PartData::Empty, signature: Some(earlier) });
                }
                places.push(PartPlace { content: 0, part: parts.len() });
                continue;
            }
            Content::Text(segments) => PartData::Text(segments),
            Content::Image(image, _) => PartData::Image(image),
            Content::Call(call) => {
                if std::mem::take(&mut is_first_call) && profile.signed_calls {
                    pending = pending.or(Some(SKIP_SIGNATURES[0]));
                }
                PartData::Call(call)
            }
            Content::Provider(block) => PartData::Provider(&block.json),
            Content::Result(_) | Content::ToolChange(_) => {
                places.push(PartPlace { content: 0, part: parts.len() });
                continue; // never the model's
            }
        };
        places.push(PartPlace { content: 0, part: parts.len() });
        parts.push(WirePart { data, signature: pending.take() });
    }
    if pending.is_some() {
        parts.push(WirePart { data: PartData::Empty, signature: pending });
    }
    let contents = if parts.is_empty() { Vec::new() } else { vec![WireContent { role: "model", parts }] };
    SplitMessage { contents, places }
}

fn part_image(part: &ResultPart) -> Option<&Image> {
    match part {
        ResultPart::Image(image) => Some(image),
        ResultPart::Text(_) => None,
    }
}

impl Serialize for WireContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut content = serializer.serialize_map(None)?;
        content.serialize_entry("role", self.role)?;
        content.serialize_entry("parts", &self.parts)?;
        content.end()
    }
}

impl<'a> WirePart<'a> {
    fn new(data: PartData<'a>) -> Self {
        WirePart { data, signature: None }
    }
}

impl Serialize for WirePart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let PartData::Provider(json) = &self.data {
            return json.serialize(serializer); // with its own signature
        }
        let mut part = serializer.serialize_map(None)?;
        match &self.data {
            PartData::Provider(_) => {}
            PartData::Text(segments) => part.serialize_entry("text", &JoinedSegments(segments))?,
            PartData::Empty => part.serialize_entry("text", "")?,
            PartData::Thought(text) => {
                part.serialize_entry("text", text)?;
                part.serialize_entry("thought", &true)?;
            }
            PartData::Image(image) => part.serialize_entry("inlineData", &InlineData(image))?,
            PartData::Call(call) => part.serialize_entry("functionCall", &FunctionCall(call))?,
            PartData::Result { result, name, has_images } => {
                let response = FunctionResponse { result, name, has_images: *has_images };
                part.serialize_entry("functionResponse", &response)?;
            }
        }
        if let Some(signature) = self.signature {
            part.serialize_entry("thoughtSignature", signature)?;
        }
        part.end()
    }
}

struct InlineData<'a>(&'a Image);

impl Serialize for InlineData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut data = serializer.serialize_map(None)?;
        data.serialize_entry("mimeType", self.0.media_type.name())?;
        data.serialize_entry("data", &self.0.data)?;
        data.end()
    }
}

struct FunctionCall<'a>(&'a Call);

impl Serialize for FunctionCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Call { id, name, arguments, origin: _ } = self.0;
        let mut call = serializer.serialize_map(None)?;
        call.serialize_entry("id", id)?;
        call.serialize_entry("name", name)?;
        call.serialize_entry("args", arguments)?;
        call.end()
    }
}

struct FunctionResponse<'a> {
    result: &'a ToolResult,
    name: &'a str,
    has_images: bool,
}

impl Serialize for FunctionResponse<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolResult { call_id, parts, outcome, origin: _ } = self.result;
        let mut response = serializer.serialize_map(None)?;
        response.serialize_entry("id", call_id)?;
        response.serialize_entry("name", self.name)?;
        response.serialize_entry("response", &ResponseObject { parts, outcome: *outcome })?;
        let images = || parts.iter().filter_map(part_image);
        if self.has_images && images().next().is_some() {
            #[derive(serde::Serialize)]
            #[serde(rename_all = "camelCase")]
            struct Part<'a> {
                inline_data: InlineData<'a>,
            }
            let images = LazyList(|| images().map(|image| Part { inline_data: InlineData(image) }));
            response.serialize_entry("parts", &images)?;
        }
        response.end()
    }
}

/// `{"output": …}` or `{"error": …}`.
struct ResponseObject<'a> {
    parts: &'a [ResultPart],
    outcome: ToolOutcome,
}

impl Serialize for ResponseObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let texts = self.parts.iter().filter_map(|part| match part {
            ResultPart::Text(segments) => Some(&segments[..]),
            ResultPart::Image(_) => None,
        });
        let field = match self.outcome {
            ToolOutcome::Done => "output",
            ToolOutcome::Failed => "error",
        };
        let mut object = serializer.serialize_map(Some(1))?;
        object.serialize_entry(field, &JoinedLines(texts.collect()))?;
        object.end()
    }
}

struct SystemInstruction<'a>(&'a [Block]);

impl Serialize for SystemInstruction<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let part = |block: &Block| match &*block.content {
            Content::Text(segments) => json!({"text": JoinedSegments(segments)}),
            _ => json!({"text": ""}), // only text is valid in a system prompt
        };
        let mut content = serializer.serialize_map(None)?;
        content.serialize_entry("parts", &LazyList(|| self.0.iter().map(part)))?;
        content.end()
    }
}

/// An element of `tools`.
enum ToolEntry<'a> {
    /// All declared tools.
    Declarations(&'a [ToolBlock]),
    /// The server's own search.
    Search,
}

impl Serialize for ToolEntry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            ToolEntry::Declarations(tools) => {
                map.serialize_entry("functionDeclarations", &LazyList(|| tools.iter().map(Declaration)))?;
            }
            ToolEntry::Search => map.serialize_entry("googleSearch", &json!({}))?,
        }
        map.end()
    }
}

struct Declaration<'a>(&'a ToolBlock);

impl Serialize for Declaration<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // This protocol has no breakpoints; the layouts set none for it.
        let ToolBlock { region: _, tool, breakpoint: _ } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &tool.name)?;
        map.serialize_entry("description", &tool.description)?;
        map.serialize_entry("parametersJsonSchema", &tool.parameters)?;
        map.end()
    }
}
