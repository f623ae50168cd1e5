//! Rules that look at one thing at a time: the request's limits, a tool, a block.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Block, Call, Content, Image, Prompt, Reasoning, ResultPart, Role, Segment, Thinking, Tool};

use super::{
    Acceptance, Location, MIN_THINKING_TOKENS, MessageForm, ValidationRules, Violation, located_blocks,
};

/// Checks that the token limits leave room for an answer, and for thinking before it.
pub(super) fn check_numbers(prompt: &Prompt, rules: &ValidationRules, found: &mut Vec<Violation>) {
    if prompt.max_tokens == 0 && rules.warming == Acceptance::Rejected {
        found.push(Violation::NoRoom);
    }
    let (Thinking::Budget(budget), MessageForm::Blocks) = (prompt.thinking, rules.form) else { return };
    if budget < MIN_THINKING_TOKENS {
        found.push(Violation::ThinkingTooSmall { budget });
    }
    if budget >= prompt.max_tokens {
        found.push(Violation::ThinkingOverMax { budget, max_tokens: prompt.max_tokens });
    }
}

/// Checks the names and schemas of the declared tools.
pub(super) fn check_tools(prompt: &Prompt, rules: &ValidationRules, found: &mut Vec<Violation>) {
    let mut names = BTreeSet::new();
    for (index, block) in prompt.tools.iter().enumerate() {
        let at = Location::Tool(index);
        check_tool(at, &block.tool, rules, found);
        if !names.insert(&block.tool.name) {
            found.push(Violation::ToolTwice { at, name: block.tool.name.to_string() });
        }
    }
}

/// Checks the name and the schema of a tool, declared or defined in a message.
pub(super) fn check_tool(at: Location, tool: &Tool, rules: &ValidationRules, found: &mut Vec<Violation>) {
    check_name(at, &tool.name, rules, found);
    if rules.form != MessageForm::Blocks {
        return;
    }
    let parameters = tool.parameters.value();
    if !parameters.get("type").is_some_and(|kind| kind == "object") {
        found.push(Violation::ToolSchema { at, name: tool.name.to_string() });
    }
    // Names further down may be any.
    let properties = parameters.get("properties").and_then(Value::as_object);
    for name in properties.into_iter().flat_map(|properties| properties.keys()) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
            found.push(Violation::ArgumentName { at, tool: tool.name.to_string(), name: name.clone() });
        }
    }
}

/// Checks every block by itself, and that no message is empty.
pub(super) fn check_blocks(prompt: &Prompt, rules: &ValidationRules, found: &mut Vec<Violation>) {
    for (index, block) in prompt.system.iter().enumerate() {
        check_role(Location::System(index), block, None, found);
        check_block(Location::System(index), block, rules, found);
    }
    if prompt.messages.is_empty() {
        found.push(Violation::NoMessages);
    }
    for (message, turn) in prompt.messages.iter().enumerate() {
        // An OpenAI message of nothing but reasoning has neither content nor calls.
        let counts = |b: &Block| {
            rules.form != MessageForm::ToolMessages || !matches!(*b.content, Content::Reasoning(_))
        };
        if !turn.blocks.iter().any(counts) && !turn.only_sets_effort() {
            found.push(Violation::EmptyMessage { at: Location::Message(message) });
        }
        for (block, content) in turn.blocks.iter().enumerate() {
            let at = Location::Block { message, block };
            check_role(at, content, Some(turn.role), found);
            check_block(at, content, rules, found);
        }
    }
}

/// Checks that the block may be in a message of this role; `None` stands for the system prompt.
fn check_role(at: Location, block: &Block, role: Option<Role>, found: &mut Vec<Violation>) {
    let (what, home) = match *block.content {
        Content::Text(_) => return,
        Content::Image(..) => ("image", Role::User),
        Content::Result(_) => ("tool_result", Role::User),
        Content::Reasoning(_) => ("thinking", Role::Assistant),
        Content::Call(_) => ("tool_use", Role::Assistant),
        Content::ToolChange(_) => ("tool_addition and tool_removal", Role::System),
        Content::Provider(_) => ("web search", Role::Assistant),
    };
    if role != Some(home) {
        let home = match home {
            Role::User => "user messages",
            Role::Assistant => "assistant messages",
            Role::System => "system messages",
        };
        found.push(Violation::Misplaced { at, what, home });
    }
}

fn check_block(at: Location, block: &Block, rules: &ValidationRules, found: &mut Vec<Violation>) {
    match &*block.content {
        Content::Text(segments) => check_text(at, segments, rules, found),
        Content::Image(..) | Content::Provider(_) => {}
        Content::Reasoning(reasoning) => check_reasoning(at, reasoning, rules, found),
        Content::Call(call) => check_call(at, call, rules, found),
        Content::ToolChange(_) => {}
        Content::Result(result) => {
            check_id(at, &result.call_id, rules, found);
            for part in &result.parts {
                if let ResultPart::Text(segments) = part {
                    check_text(at, segments, rules, found);
                }
            }
        }
    }
    if block.has_image() {
        images(block).filter_map(|image| image.check().err()).for_each(|reason| {
            found.push(Violation::RefusedImage { at, reason });
        });
    }
}

fn check_text(at: Location, segments: &[Segment], rules: &ValidationRules, found: &mut Vec<Violation>) {
    if rules.form != MessageForm::Blocks {
        return;
    }
    if segments.iter().all(|s| s.text.is_empty()) {
        found.push(Violation::EmptyText { at });
    } else if segments.iter().all(|s| s.text.trim().is_empty()) {
        found.push(Violation::BlankText { at });
    }
}

fn check_reasoning(at: Location, reasoning: &Reasoning, rules: &ValidationRules, found: &mut Vec<Violation>) {
    let proof = reasoning.redacted.as_deref().or(reasoning.signature.as_deref());
    let needs_proof = matches!(rules.form, MessageForm::Blocks | MessageForm::Items);
    if needs_proof && proof.unwrap_or_default().is_empty() {
        found.push(Violation::Unsigned { at });
    }
}

fn check_call(at: Location, call: &Call, rules: &ValidationRules, found: &mut Vec<Violation>) {
    check_id(at, &call.id, rules, found);
    check_name(at, &call.name, rules, found);
    if !call.arguments.is_object() {
        found.push(Violation::Arguments { at, id: call.id.to_string() });
    }
}

fn check_name(at: Location, name: &str, rules: &ValidationRules, found: &mut Vec<Violation>) {
    let is_valid = match rules.form {
        MessageForm::Blocks | MessageForm::ToolMessages | MessageForm::Items => is_identifier(name),
        MessageForm::Parts => is_function_name(name),
    };
    if name.is_empty() || name.len() > 64 || !is_valid {
        found.push(Violation::ToolName { at, name: name.to_string() });
    }
}

fn check_id(at: Location, id: &str, rules: &ValidationRules, found: &mut Vec<Violation>) {
    match rules.form {
        MessageForm::Blocks if id.is_empty() || !is_identifier(id) => {
            found.push(Violation::CallId { at, id: id.to_string() });
        }
        MessageForm::ToolMessages | MessageForm::Parts | MessageForm::Items if id.is_empty() => {
            found.push(Violation::EmptyCallId { at });
        }
        MessageForm::Blocks | MessageForm::ToolMessages | MessageForm::Parts | MessageForm::Items => {}
    }
    if let Some(max) = rules.max_call_id.filter(|max| id.chars().count() > *max) {
        found.push(Violation::LongCallId { at, id: id.to_string(), max });
    }
}

/// Whether a text consists of letters, digits, `_` and `-` only.
fn is_identifier(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Whether a text is a letter or `_`, followed by letters, digits, `_`, `.`, `:` and `-` (Gemini).
fn is_function_name(text: &str) -> bool {
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    begins && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte))
}

/// Checks the number of images in the whole request, those in tool results included.
pub(super) fn check_image_count(prompt: &Prompt, rules: &ValidationRules, found: &mut Vec<Violation>) {
    let all: Vec<Location> =
        located_blocks(prompt).flat_map(|(at, block)| images(block).map(move |_| at)).collect();
    if let Some(at) = all.get(rules.max_images) {
        found.push(Violation::TooManyImages { at: *at, found: all.len(), max: rules.max_images });
    }
}

fn images(block: &Block) -> impl Iterator<Item = &Image> {
    let (own, parts) = match &*block.content {
        Content::Image(image, _) => (Some(image), &[][..]),
        Content::Result(result) => (None, &result.parts[..]),
        Content::Text(_)
        | Content::Reasoning(_)
        | Content::Call(_)
        | Content::ToolChange(_)
        | Content::Provider(_) => (None, &[][..]),
    };
    own.into_iter().chain(parts.iter().filter_map(|part| match part {
        ResultPart::Image(image) => Some(image),
        ResultPart::Text(_) => None,
    }))
}

/// Checks that no calls or results are sent without a declared tool.
pub(super) fn check_tools_declared(prompt: &Prompt, rules: &ValidationRules, found: &mut Vec<Violation>) {
    // The provider's web search is a declared tool too.
    let declared = !prompt.tools.is_empty() || prompt.web_search.is_some();
    if declared || rules.undeclared_tools == Acceptance::Accepted {
        return;
    }
    let of_a_tool = |block: &Block| matches!(*block.content, Content::Call(_) | Content::Result(_));
    if let Some((at, _)) = located_blocks(prompt).find(|(_, block)| of_a_tool(block)) {
        found.push(Violation::NoToolsDeclared { at });
    }
}
