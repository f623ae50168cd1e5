//! Request bodies of Anthropic Messages.
//!
//! Content is always written as a list, never as a string, so that moving a breakpoint changes
//! nothing but the marker itself.

use hardpan_prompt::{
    Block, CacheLifetime, Call, Content, Image, Prompt, PromptMessage, Reasoning, ResultPart, Role, Segment,
    Thinking, Tool, ToolBlock, ToolChange, ToolChangeAction, ToolOutcome, ToolResult, WebSearch,
};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::codec::RequestContext;
use crate::serialize::{CacheControl, JoinedSegments, LazyList};

/// The whole body. `messages` serializes as the list of messages: fresh ones, or encoded before.
pub struct Body<'a, M> {
    pub prompt: &'a Prompt,
    pub context: &'a RequestContext<'a>,
    pub messages: M,
}

/// Serializes the messages of a prompt.
pub fn messages(prompt: &Prompt) -> impl Serialize {
    LazyList(|| prompt.messages.iter().map(Message))
}

impl<M: Serialize> Serialize for Body<'_, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Every field is named, so that a new one forces a decision here.
        let Prompt {
            model,
            max_tokens,
            thinking,
            effort,
            drop_stale_reasoning,
            tools,
            system,
            messages: _,  // as messages
            system_id: _, // Anthropic knows no message ids
            web_search,
            left_out: _,
        } = self.prompt;
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("model", model)?;
        body.serialize_entry("max_tokens", max_tokens)?;
        body.serialize_entry("stream", &true)?;
        let plain_thinking = self.context.plain_thinking;
        if let Some(mut thinking) = thinking_field(*thinking, *drop_stale_reasoning) {
            if let Some(fields) = thinking.as_object_mut().filter(|_| plain_thinking) {
                fields.shift_remove("display");
            }
            body.serialize_entry("thinking", &thinking)?;
        }
        if let Some(effort) = effort.filter(|_| !plain_thinking) {
            body.serialize_entry("output_config", &serde_json::json!({"effort": effort}))?;
        }
        if !system.is_empty() {
            body.serialize_entry("system", &LazyList(|| system.iter().map(WireBlock)))?;
        }
        body.serialize_entry("messages", &self.messages)?;
        if !tools.is_empty() || web_search.is_some() {
            body.serialize_entry("tools", &ToolList { tools, web_search: *web_search })?;
        }
        body.end()
    }
}

/// The field `thinking`. Reasoning is asked for as a summary, which costs the same as hiding it.
fn thinking_field(thinking: Thinking, drop_stale: bool) -> Option<serde_json::Value> {
    let mut field = match thinking {
        Thinking::Unspecified => return None,
        Thinking::Disabled => serde_json::json!({"type": "disabled"}),
        Thinking::BetweenTools => serde_json::json!({"type": "between_tools"}),
        Thinking::Adaptive => serde_json::json!({"type": "adaptive", "display": "summarized"}),
        Thinking::Budget(tokens) => serde_json::json!({"type": "enabled", "budget_tokens": tokens}),
    };
    if drop_stale && thinking.is_on() {
        field["block_binding"] = serde_json::json!({"prefix_mismatch_behavior": "drop_block"});
    }
    Some(field)
}

/// Serializes one message of the prompt.
pub struct Message<'a>(pub &'a PromptMessage);

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PromptMessage { role, blocks, id: _, documents: _, turn_scoped, effort } = self.0;
        let mut message = serializer.serialize_map(None)?;
        message.serialize_entry("role", role_name(*role))?;
        message.serialize_entry("content", &LazyList(|| blocks.iter().map(WireBlock)))?;
        if *turn_scoped {
            message.serialize_entry("clear_at", "next_user_message")?;
        }
        if let Some(effort) = effort {
            message.serialize_entry("output_config", &serde_json::json!({"effort": effort}))?;
        }
        message.end()
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
    }
}

struct WireBlock<'a>(&'a Block);

impl Serialize for WireBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Block { region: _, content, breakpoint } = self.0;
        if let Content::Provider(block) = &**content {
            return block.json.serialize(serializer); // as it came, and never with a marker
        }
        let mut block = serializer.serialize_map(None)?;
        match &**content {
            Content::Provider(_) => {}
            Content::Text(segments) => write_text(&mut block, segments)?,
            Content::Image(picture, _) => write_image(&mut block, picture)?,
            Content::Reasoning(reasoning) => write_reasoning(&mut block, reasoning)?,
            Content::Call(Call { id, name, arguments, origin: _ }) => {
                block.serialize_entry("type", "tool_use")?;
                block.serialize_entry("id", id)?;
                block.serialize_entry("name", name)?;
                block.serialize_entry("input", arguments)?;
            }
            Content::Result(ToolResult { call_id, parts, outcome, origin: _ }) => {
                block.serialize_entry("type", "tool_result")?;
                block.serialize_entry("tool_use_id", call_id)?;
                match &parts[..] {
                    [ResultPart::Text(segments)] => {
                        block.serialize_entry("content", &JoinedSegments(segments))?;
                    }
                    parts => block.serialize_entry("content", &LazyList(|| parts.iter().map(WirePart)))?,
                }
                if *outcome == ToolOutcome::Failed {
                    block.serialize_entry("is_error", &true)?;
                }
            }
            Content::ToolChange(ToolChange { action, origin: _ }) => write_tool_change(&mut block, action)?,
        }
        write_marker(&mut block, *breakpoint)?;
        block.end()
    }
}

fn write_marker<M: SerializeMap>(block: &mut M, breakpoint: Option<CacheLifetime>) -> Result<(), M::Error> {
    breakpoint.map_or(Ok(()), |lifetime| block.serialize_entry("cache_control", &CacheControl(lifetime)))
}

fn write_text<M: SerializeMap>(block: &mut M, segments: &[Segment]) -> Result<(), M::Error> {
    block.serialize_entry("type", "text")?;
    block.serialize_entry("text", &JoinedSegments(segments))
}

fn write_image<M: SerializeMap>(block: &mut M, image: &Image) -> Result<(), M::Error> {
    #[derive(serde::Serialize)]
    struct Source<'a> {
        r#type: &'static str,
        media_type: &'static str,
        data: &'a str,
    }
    block.serialize_entry("type", "image")?;
    let source = Source { r#type: "base64", media_type: image.media_type.name(), data: &image.data };
    block.serialize_entry("source", &source)
}

fn write_reasoning<M: SerializeMap>(block: &mut M, reasoning: &Reasoning) -> Result<(), M::Error> {
    let Reasoning { text, signature, redacted, origin: _ } = reasoning;
    if let Some(data) = redacted {
        block.serialize_entry("type", "redacted_thinking")?;
        return block.serialize_entry("data", data);
    }
    block.serialize_entry("type", "thinking")?;
    block.serialize_entry("thinking", text)?;
    block.serialize_entry("signature", signature)
}

fn write_tool_change<M: SerializeMap>(block: &mut M, action: &ToolChangeAction) -> Result<(), M::Error> {
    #[derive(serde::Serialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum WireChange<'a> {
        ToolDefinition { definition: Definition<'a> },
        ToolReference { name: &'a str },
    }
    let (kind, tool) = match action {
        ToolChangeAction::Define(tool) => {
            ("tool_addition", WireChange::ToolDefinition { definition: Definition(tool, None) })
        }
        ToolChangeAction::Restore(name) => ("tool_addition", WireChange::ToolReference { name }),
        ToolChangeAction::Remove(name) => ("tool_removal", WireChange::ToolReference { name }),
    };
    block.serialize_entry("type", kind)?;
    block.serialize_entry("tool", &tool)
}

struct WirePart<'a>(&'a ResultPart);

impl Serialize for WirePart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut part = serializer.serialize_map(None)?;
        match self.0 {
            ResultPart::Text(segments) => write_text(&mut part, segments)?,
            ResultPart::Image(picture) => write_image(&mut part, picture)?,
        }
        part.end()
    }
}

/// The declared tools, and the server's own search after them.
struct ToolList<'a> {
    tools: &'a [ToolBlock],
    web_search: Option<WebSearch>,
}

impl Serialize for ToolList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        self.tools.iter().try_for_each(|tool| list.serialize_element(&declaration(tool)))?;
        if let Some(WebSearch { max_results }) = self.web_search {
            let (kind, name) = ("web_search_20250305", "web_search");
            list.serialize_element(
                &serde_json::json!({"type": kind, "name": name, "max_uses": max_results}),
            )?;
        }
        list.end()
    }
}

fn declaration(block: &ToolBlock) -> Definition<'_> {
    let ToolBlock { region: _, tool, breakpoint } = block;
    Definition(tool, *breakpoint)
}

/// The definition of a tool, and its breakpoint.
struct Definition<'a>(&'a Tool, Option<CacheLifetime>);

impl Serialize for Definition<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Definition(tool, breakpoint) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &tool.name)?;
        map.serialize_entry("description", &tool.description)?;
        map.serialize_entry("input_schema", &tool.parameters)?;
        write_marker(&mut map, *breakpoint)?;
        map.end()
    }
}
