//! Messages and their blocks.

use std::sync::Arc;

use hardpan_prompt::{
    Block, CacheLifetime, Call, Content, Hash, Image, ItemKind, Json, PromptMessage, Reasoning, Region,
    ResultPart, Role, Text, ToolBlock, ToolChange, ToolChangeAction, ToolOutcome, ToolResult,
};
use serde_json::Value;

use super::tools::inline_tool;
use super::{gate, read_effort};
use crate::anthropic::betas;
use crate::anthropic::fields::{AnthropicFields, SourceBlock, SpecialBlock};
use crate::anthropic::known_fields;
use crate::decode::node::{ExpectedType, Node};
use crate::decode::{
    DecodeError, DecodeErrorKind, cache_control, image, origin, segments, text_block, without_marker,
};

/// The types of blocks that a message may contain.
const BLOCKS: [&str; 23] = [
    "advisor_tool_result",
    "bash_code_execution_tool_result",
    "browser_state",
    "code_execution_tool_result",
    "compaction",
    "container_upload",
    "document",
    "fallback",
    "image",
    "mcp_tool_listing",
    "mcp_tool_result",
    "mcp_tool_use",
    "redacted_thinking",
    "search_result",
    "server_tool_use",
    "text",
    "text_editor_code_execution_tool_result",
    "thinking",
    "tool_result",
    "tool_search_tool_result",
    "tool_use",
    "web_fetch_tool_result",
    "web_search_tool_result",
];
/// The types of blocks that a tool result may contain.
const PARTS: [&str; 5] = ["document", "image", "search_result", "text", "tool_reference"];

pub fn system(node: &Node<'_>) -> Result<Vec<Block>, DecodeError> {
    if let Some(text) = node.value.as_str() {
        return Ok(string_content(text, ItemKind::System));
    }
    let block = |node: &Node<'_>| {
        node.record()?.required("type")?.one_of(&["text"])?;
        text(node, ItemKind::System)
    };
    node.list(ExpectedType::TextOrRecords)?.iter().map(block).collect()
}

/// String content is short for one text block; the empty string is none.
fn string_content(text: &str, kind: ItemKind) -> Vec<Block> {
    if text.is_empty() { Vec::new() } else { vec![text_block(text, kind)] }
}

/// Reads the messages, one after the other.
pub struct MessageReader<'f> {
    pub fields: &'f mut AnthropicFields,
    /// Index of the message that is being read.
    pub index: usize,
}

impl MessageReader<'_> {
    pub fn message(&mut self, message: &Node<'_>) -> Result<PromptMessage, DecodeError> {
        let role = match message.record()?.required("role")?.one_of(&["user", "assistant", "system"])? {
            "system" => return self.system_message(message),
            "assistant" => Role::Assistant,
            _ => Role::User,
        };
        let content = message.required("content")?;
        let blocks = match content.value.as_str() {
            Some(text) => string_content(text, ItemKind::History),
            None => {
                let nodes = content.list(ExpectedType::TextOrRecords)?;
                let blocks = nodes.iter().enumerate().map(|(index, node)| self.block(node, index, role));
                blocks.collect::<Result<_, _>>()?
            }
        };
        message.reject_unknown_fields(known_fields::MESSAGE)?;
        Ok(PromptMessage::new(role, blocks))
    }

    /// A system message inside the conversation: text, tools that come and go, the effort from the
    /// next user message on.
    fn system_message(&mut self, message: &Node<'_>) -> Result<PromptMessage, DecodeError> {
        let content = message.required("content")?;
        let blocks = match content.value.as_str() {
            Some(text) => string_content(text, ItemKind::System),
            None => {
                let nodes = content.list(ExpectedType::TextOrRecords)?;
                let blocks = nodes.iter().enumerate().map(|(index, node)| self.system_block(node, index));
                blocks.collect::<Result<_, _>>()?
            }
        };
        let mut turn_scoped = false;
        if let Some(moment) = message.non_null("clear_at") {
            turn_scoped = moment.one_of(&["next_user_message", "never"])? == "next_user_message";
            gate(self.fields, &moment, betas::CLEAR_AT);
        }
        let mut effort = None;
        if let Some(config) = message.non_null("output_config") {
            effort = read_effort(&config, known_fields::MESSAGE_OUTPUT_CONFIG)?;
            gate(self.fields, &config, betas::MESSAGE_EFFORT);
        }
        message.reject_unknown_fields(known_fields::SYSTEM_MESSAGE)?;
        Ok(PromptMessage { turn_scoped, effort, ..PromptMessage::new(Role::System, blocks) })
    }

    fn system_block(&mut self, node: &Node<'_>, index: usize) -> Result<Block, DecodeError> {
        let tag = node.tag(&["text", "tool_addition", "tool_removal"])?;
        let node = &node.as_variant(tag);
        if tag == "text" {
            return text(node, ItemKind::System);
        }
        let is_addition = tag == "tool_addition";
        let known =
            if is_addition { &["tool_definition", "tool_reference"][..] } else { &["tool_reference"] };
        let tool = node.required("tool")?;
        let mut breakpoint = cache_control(node)?;
        let action = if tool.tag(known)? == "tool_definition" {
            gate(self.fields, node, betas::INLINE_TOOLS);
            let definition = tool.required("definition")?;
            let is_deferred = definition.value["defer_loading"] == true;
            let ToolBlock { tool, breakpoint: inner, .. } = inline_tool(&definition)?;
            if inner.is_some() && (is_deferred || breakpoint.is_some()) {
                let problem = if is_deferred { "a deferred tool" } else { "a definition in a marked block" };
                return Err(definition.invalid_value(&format!("{problem} cannot carry cache_control")));
            }
            breakpoint = breakpoint.or(inner);
            if is_deferred {
                self.fields.inline_tools.push(tool.name);
                return self.deferred_change(node, index);
            }
            self.check_tool_kind(&definition, &tool.name)?;
            self.fields.declared_tools.push(tool.name.clone());
            ToolChangeAction::Define(tool)
        } else {
            gate(self.fields, node, betas::TOOL_CHANGES);
            let name = tool.required("name")?.text()?;
            match is_addition {
                _ if !self.fields.is_declared(name) => return self.deferred_change(node, index),
                true => ToolChangeAction::Restore(name.into()),
                false => ToolChangeAction::Remove(name.into()),
            }
        };
        node.reject_unknown_fields(known_fields::TOOL_CHANGE)?;
        let content = Content::ToolChange(ToolChange::new(action));
        Ok(Block { breakpoint, ..Block::new(Region::Log, content) })
    }

    /// A tool may only be replaced by one of its kind: defined by the client, or by Anthropic.
    fn check_tool_kind(&mut self, definition: &Node<'_>, name: &Arc<str>) -> Result<(), DecodeError> {
        let is_typed = definition.non_null("type").is_some_and(|tag| tag.value != "custom");
        if self.fields.is_declared(name) && self.fields.typed_tools.contains(name) != is_typed {
            let message = format!("Tool name '{name}' is already used by a tool of another type");
            let error = definition.reject(DecodeErrorKind::Unsupported, message);
            return Err(DecodeError { code: Some("tool_name_conflict"), ..error });
        }
        self.fields.typed_tools.extend(is_typed.then(|| name.clone()));
        Ok(())
    }

    /// A deferred tool that comes or goes. Its definition is in the prompt from here on.
    fn deferred_change(&mut self, node: &Node<'_>, index: usize) -> Result<Block, DecodeError> {
        self.fields.special_blocks.insert((self.index, index), SpecialBlock::DeferredToolChange);
        self.json_as_text(node)
    }

    fn block(&mut self, node: &Node<'_>, index: usize, role: Role) -> Result<Block, DecodeError> {
        let path = node.path();
        let tag = node.tag(&BLOCKS)?;
        let node = &node.as_variant(tag);
        let in_answer = role == Role::Assistant;
        let has_citations =
            tag == "text" && node.value["citations"].as_array().is_some_and(|list| !list.is_empty());
        if tag == "document" || has_citations {
            let citations = has_citations.then(|| Json::new(&node.value["citations"]));
            self.fields.sources.push(SourceBlock {
                path,
                in_answer,
                is_document: tag == "document",
                citations,
            });
        }
        let (content, known): (Content, &[&str]) = match tag {
            "text" => return text(node, ItemKind::History),
            "image" => {
                (Content::Image(image_from_source(node)?, origin(ItemKind::History)), known_fields::IMAGE)
            }
            "thinking" | "redacted_thinking" => return reasoning(node, tag),
            "tool_use" => (Content::Call(tool_call(node)?), known_fields::TOOL_USE),
            "tool_result" => return self.tool_result(node),
            _ => {
                let special = self.special_block(node, tag)?;
                self.fields.special_blocks.insert((self.index, index), special);
                return self.json_as_text(node);
            }
        };
        let breakpoint = cache_control(node)?;
        node.reject_unknown_fields(known)?;
        Ok(Block { breakpoint, ..Block::new(Region::Log, content) })
    }

    /// What a block is that a prompt cannot represent.
    fn special_block(&mut self, node: &Node<'_>, tag: &str) -> Result<SpecialBlock, DecodeError> {
        Ok(match tag {
            "compaction" => {
                gate(self.fields, node, betas::COMPACTION_BLOCK);
                match node.required("content")?.value {
                    Value::Null => SpecialBlock::FailedCompaction,
                    _ if node.non_null("signature").is_some() => SpecialBlock::SignedCompaction,
                    _ => SpecialBlock::Compaction,
                }
            }
            "server_tool_use" | "mcp_tool_use" => {
                node.required("id")?.text()?;
                node.required("name")?.text()?;
                node.required("input")?.object()?;
                SpecialBlock::ServerToolUse
            }
            _ if tag.ends_with("_tool_result") => {
                node.required("tool_use_id")?.text()?;
                node.required("content")?;
                SpecialBlock::ServerToolResult
            }
            _ => SpecialBlock::Other,
        })
    }

    /// A block type that a [`Prompt`](hardpan_prompt::Prompt) cannot represent becomes a text block
    /// with the block's JSON, and with the definitions of the tools that it refers to. A file counts
    /// by its size.
    fn json_as_text(&mut self, node: &Node<'_>) -> Result<Block, DecodeError> {
        let breakpoint = cache_control(node)?;
        let mut text = match node.value["type"].as_str() {
            Some("document") => document_text(node)?,
            _ => Json::new(&without_marker(node.value)).as_str().to_owned(),
        };
        for name in references(node.value) {
            match self.fields.deferred_tools.get(name) {
                Some(tool) => text.extend(["\n", &tool.name, &tool.description, tool.parameters.as_str()]),
                None if self.fields.is_declared(name) || self.fields.is_deferred(name) => {}
                None => {
                    let message = format!("Tool reference '{name}' not found in available tools");
                    let error = node.reject(DecodeErrorKind::Unsupported, message);
                    return Err(DecodeError { code: Some("tool_reference_unresolved"), ..error });
                }
            }
        }
        Ok(Block { breakpoint, ..text_block(&text, ItemKind::History) })
    }

    /// A tool result. A marker on one of its parts counts for the whole block, which is what is cached.
    fn tool_result(&mut self, node: &Node<'_>) -> Result<Block, DecodeError> {
        let call_id = node.required("tool_use_id")?.text()?.into();
        let mut breakpoint = cache_control(node)?;
        let mut parts = Vec::new();
        match node.optional("content") {
            Some(Node { value: Value::String(text), .. }) if text.is_empty() => {}
            Some(Node { value: Value::String(text), .. }) => {
                parts.push(ResultPart::Text(segments(text, ItemKind::History)));
            }
            Some(content) => {
                for node in content.list(ExpectedType::TextOrRecords)? {
                    let (part, marker) = self.result_part(&node)?;
                    parts.push(part);
                    breakpoint = breakpoint.or(marker);
                }
            }
            None => {}
        }
        let failed = node.optional("is_error").map_or(Ok(false), |flag| flag.flag())?;
        node.reject_unknown_fields(known_fields::TOOL_RESULT)?;
        let outcome = if failed { ToolOutcome::Failed } else { ToolOutcome::Done };
        let result = ToolResult { call_id, parts, outcome, origin: origin(ItemKind::History) };
        Ok(Block { breakpoint, ..Block::new(Region::Log, Content::Result(result)) })
    }

    fn result_part(&mut self, node: &Node<'_>) -> Result<(ResultPart, Option<CacheLifetime>), DecodeError> {
        let tag = node.tag(&PARTS)?;
        let node = &node.as_variant(tag);
        if tag == "image" {
            let (image, breakpoint) = (image_from_source(node)?, cache_control(node)?);
            node.reject_unknown_fields(known_fields::IMAGE)?;
            return Ok((ResultPart::Image(image), breakpoint));
        }
        let block = if tag == "text" { text(node, ItemKind::History)? } else { self.json_as_text(node)? };
        let Content::Text(segments) = block.content.into_content() else {
            return Err(node.invalid_value("this is no text"));
        };
        Ok((ResultPart::Text(segments), block.breakpoint))
    }
}

fn text(node: &Node<'_>, kind: ItemKind) -> Result<Block, DecodeError> {
    let block = text_block(node.required("text")?.text()?, kind);
    let breakpoint = cache_control(node)?;
    node.reject_unknown_fields(known_fields::TEXT)?;
    Ok(Block { breakpoint, ..block })
}

fn reasoning(node: &Node<'_>, tag: &str) -> Result<Block, DecodeError> {
    let origin = origin(ItemKind::History);
    let reasoning = if tag == "thinking" {
        let (text, signature) = (node.required("thinking")?.text()?, node.required("signature")?.text()?);
        node.reject_unknown_fields(known_fields::THINKING)?;
        Reasoning { text: Text::new(text), signature: Some(signature.into()), redacted: None, origin }
    } else {
        let data = node.required("data")?.text()?;
        node.reject_unknown_fields(known_fields::REDACTED_THINKING)?;
        Reasoning { text: Text::default(), signature: None, redacted: Some(data.into()), origin }
    };
    Ok(Block::new(Region::Log, Content::Reasoning(reasoning)))
}

fn tool_call(node: &Node<'_>) -> Result<Call, DecodeError> {
    let (id, name) = (node.required("id")?.text()?.into(), node.required("name")?.text()?.into());
    let arguments = Json::new(node.required("input")?.object()?);
    Ok(Call { id, name, arguments, origin: origin(ItemKind::History) })
}

fn image_from_source(node: &Node<'_>) -> Result<Image, DecodeError> {
    let source = node.required("source")?;
    let tag = source.tag(&["base64", "file", "url"])?;
    let source = source.as_variant(tag);
    match tag {
        "url" => {
            let address = source.required("url")?.text()?;
            source.reject_unknown_fields(known_fields::IMAGE_URL)?;
            Ok(image::from_address(address))
        }
        "file" => Err(source.invalid_value("files cannot be referred to here; send the image as base64")),
        _ => {
            let media_type = source.required("media_type")?;
            let known = image::media_type(media_type.one_of(&image::MEDIA_TYPES)?);
            let data = source.required("data")?;
            let image =
                known.zip(Some(data.text()?)).and_then(|(known, data)| image::from_base64(known, data));
            source.reject_unknown_fields(known_fields::IMAGE_DATA)?;
            image.ok_or_else(|| data.invalid_value("Invalid base64 data"))
        }
    }
}

/// The pages of a file are not known here: so many bytes stand for one token.
const DOCUMENT_BYTES_PER_TOKEN: usize = 40;

/// A document: its JSON, or for a file a text of the size that it may have.
fn document_text(node: &Node<'_>) -> Result<String, DecodeError> {
    let source = node.required("source")?;
    if source.tag(&["base64", "content", "file", "text", "url"])? != "base64" {
        return Ok(Json::new(&without_marker(node.value)).as_str().to_owned());
    }
    source.required("media_type")?.one_of(&["application/pdf"])?;
    let data = source.required("data")?.text()?;
    let tokens = data.len() / 4 * 3 / DOCUMENT_BYTES_PER_TOKEN;
    Ok(format!("document {}{}", Hash::of(data.as_bytes()), " a".repeat(tokens)))
}

/// The names of the tools that a block refers to.
fn references(block: &Value) -> Vec<&str> {
    let tagged = |value: &Value| value["type"] == "tool_reference";
    let inner = block["content"]["tool_references"].as_array().into_iter().flatten();
    let all = inner.chain([block, &block["tool"]]).filter(|value| tagged(value));
    all.filter_map(|value| value["tool_name"].as_str().or_else(|| value["name"].as_str())).collect()
}
