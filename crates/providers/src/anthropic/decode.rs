//! Parses bodies of Anthropic Messages.

mod messages; // messages and their blocks
mod tools; // declared tools and `tool_choice`

use hardpan_prompt::{Effort, Json, Thinking};
use serde_json::Value;

use super::betas;
use super::dialect::AnthropicDialect;
use super::fields::{AnthropicFields, DiagnosticsRequest, GatedField, MismatchBehavior, ThinkingDisplay};
use super::known_fields;
use crate::decode::node::{ExpectedType, Node};
use crate::decode::{
    DecodeError, DecodedRequest, RequestKind, cache_control, parse_json, passthrough_fields,
};
use messages::MessageReader;

/// The largest value of each sampling parameter.
const MAX_SAMPLING: [f64; 3] = [1.0, 1.0, f64::MAX];

const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// Parses the body of a request to `messages` or `messages/count_tokens`.
pub fn decode_request(kind: RequestKind, body: &[u8]) -> Result<DecodedRequest, DecodeError> {
    let value = parse_json(&AnthropicDialect, body)?;
    let body = Node::root(&AnthropicDialect, &value);
    let body = body.record()?;
    let mut decoded = DecodedRequest::default();
    decoded.prompt.model = body.required("model")?.text()?.into();
    let messages = body.required("messages")?;
    if let Some(tools) = body.optional("tools") {
        tools::read_tools(&tools, &mut decoded)?;
    }
    for (index, message) in messages.list(ExpectedType::Records)?.iter().enumerate() {
        let mut reader = MessageReader { fields: &mut decoded.anthropic, index };
        decoded.prompt.messages.push(reader.message(message)?);
    }
    if let Some(system) = body.optional("system") {
        decoded.prompt.system = messages::system(&system)?;
    }
    decoded.prompt.max_tokens = u32::MAX;
    if let Some(thinking) = body.optional("thinking") {
        read_thinking(&thinking, &mut decoded)?;
    }
    if let Some(choice) = body.optional("tool_choice") {
        tools::read_tool_choice(&choice, &mut decoded)?;
    }
    if let Some(config) = body.non_null("output_config") {
        decoded.prompt.effort = read_effort(&config, known_fields::OUTPUT_CONFIG)?;
        for name in ["format", "task_budget"] {
            let sent = config.non_null(name).map(|node| Json::new(node.value));
            decoded.anthropic.output_config.extend(sent.map(|json| (name, json)));
        }
        if let Some(budget) = config.non_null("task_budget") {
            gate(&mut decoded.anthropic, &budget, betas::TASK_BUDGET);
        }
    }
    decoded.automatic_cache = cache_control(body)?;
    decoded.citations = has_citations(messages.value);
    decoded.other = passthrough_fields(body, known_fields::OTHER);
    read_new_fields(body, &mut decoded.anthropic)?;
    // `temperature` and the like are read for both kinds: a server refuses them in both.
    for (name, most) in known_fields::SAMPLING.iter().zip(MAX_SAMPLING) {
        let number = body.optional(name).map(|number| number.number_up_to(most)).transpose()?;
        decoded.anthropic.sampling.extend(number.map(|number| (*name, number)));
    }
    let known = [known_fields::READ, known_fields::OTHER, known_fields::SAMPLING].concat();
    if kind == RequestKind::Count {
        body.reject_unknown_fields(&known)?;
        return Ok(decoded);
    }
    decoded.prompt.max_tokens = body.required("max_tokens")?.integer(0)?;
    decoded.stream = body.optional("stream").map_or(Ok(false), |stream| stream.flag())?;
    decoded.stop_sequences = body.optional("stop_sequences").map_or(Ok(Vec::new()), |stop| stop.texts())?;
    if let Some(diagnostics) = body.non_null("diagnostics") {
        let previous = diagnostics.record()?.non_null("previous_message_id");
        let previous_message_id = previous.map(|id| id.text().map(str::to_owned)).transpose()?;
        diagnostics.reject_unknown_fields(known_fields::DIAGNOSTICS)?;
        decoded.anthropic.diagnostics = Some(DiagnosticsRequest { previous_message_id });
    }
    body.non_null("metadata").map(|metadata| metadata.object()).transpose()?;
    let for_answer = [known_fields::READ_FOR_ANSWER, known_fields::OTHER_FOR_ANSWER].concat();
    body.reject_unknown_fields(&[known, for_answer].concat())?;
    decoded.other.extend(passthrough_fields(body, known_fields::OTHER_FOR_ANSWER));
    Ok(decoded)
}

/// Notes that a field needs one of these beta headers.
fn gate(fields: &mut AnthropicFields, node: &Node<'_>, betas: &'static [&'static str]) {
    fields.gated.push(GatedField { path: node.path(), betas });
}

/// The effort in `output_config`, which may have these fields.
fn read_effort(config: &Node<'_>, known: &[&str]) -> Result<Option<Effort>, DecodeError> {
    let effort = config.record()?.non_null("effort").map(|effort| effort.one_of(&EFFORTS)).transpose()?;
    config.reject_unknown_fields(known)?;
    Ok(effort.and_then(|effort| effort.parse().ok()))
}

/// The fields of the last year that concern the request as a whole.
fn read_new_fields(body: &Node<'_>, fields: &mut AnthropicFields) -> Result<(), DecodeError> {
    if let Some(management) = body.non_null("context_management") {
        gate(fields, &management, betas::CONTEXT_MANAGEMENT);
        read_edits(&management, fields)?;
        fields.context_management = Some(Json::new(management.value));
    }
    if let Some(compaction) = body.non_null("compaction") {
        gate(fields, &compaction, betas::COMPACTION);
        compaction.tag(&["summarize"])?;
        compaction.reject_unknown_fields(known_fields::COMPACTION)?;
        fields.compaction = true;
    }
    if let Some(thread) = body.non_null("thread") {
        gate(fields, &thread, betas::THREADS);
        if thread.tag(&["continue", "create"])? == "continue" {
            thread.required("previous_message_id")?.text()?;
            thread.reject_unknown_fields(known_fields::THREAD_CONTINUE)?;
        } else {
            thread.reject_unknown_fields(known_fields::THREAD_CREATE)?;
        }
        fields.thread = Some(Json::new(thread.value));
        let sent = ["system", "tools", "messages"].map(|name| (name.to_owned(), body.value[name].clone()));
        fields.conversation = Some(Json::new(&Value::Object(sent.into_iter().collect())));
    }
    if let Some(fallbacks) = body.non_null("fallbacks") {
        gate(fields, &fallbacks, betas::FALLBACKS);
        fields.fallbacks = true;
        // The word stands for a list of the server's own.
        if fallbacks.value != "default" {
            for fallback in fallbacks.list(ExpectedType::Records)? {
                fallback.record()?.required("model")?.text()?;
                fallback.reject_unknown_fields(known_fields::FALLBACK)?;
            }
        }
    }
    let speed = body.non_null("speed").map(|speed| speed.one_of(&["standard", "fast"])).transpose()?;
    fields.speed = speed.map(Into::into);
    Ok(())
}

/// The edits of the context: `clear_thinking` comes first.
fn read_edits(management: &Node<'_>, fields: &mut AnthropicFields) -> Result<(), DecodeError> {
    const EDITS: [&str; 3] = ["clear_thinking_20251015", "clear_tool_uses_20250919", "compact_20260112"];
    management.record()?.reject_unknown_fields(known_fields::CONTEXT_MANAGEMENT)?;
    let Some(edits) = management.non_null("edits") else { return Ok(()) };
    for (index, edit) in edits.list(ExpectedType::Records)?.iter().enumerate() {
        let tag = edit.tag(&EDITS)?;
        if tag == EDITS[0] && index > 0 {
            return Err(edit.invalid_value("clear_thinking_20251015 must be the first edit"));
        }
        if tag == EDITS[2] {
            gate(fields, edit, betas::COMPACT_EDIT);
        }
    }
    Ok(())
}

/// Whether citations are enabled for any block.
fn has_citations(messages: &Value) -> bool {
    let contents =
        messages.as_array().into_iter().flatten().filter_map(|message| message["content"].as_array());
    contents.flatten().any(|block| block["citations"]["enabled"] == true)
}

fn read_thinking(node: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let tag = node.tag(&["adaptive", "between_tools", "disabled", "enabled"])?;
    let node = node.as_variant(tag);
    let known = match tag {
        "enabled" => {
            decoded.prompt.thinking = Thinking::Budget(node.required("budget_tokens")?.integer(0)?);
            known_fields::ENABLED_THINKING
        }
        "adaptive" => {
            decoded.prompt.thinking = Thinking::Adaptive;
            known_fields::ADAPTIVE_THINKING
        }
        "between_tools" => {
            decoded.prompt.thinking = Thinking::BetweenTools;
            known_fields::BETWEEN_TOOLS_THINKING
        }
        _ => {
            decoded.prompt.thinking = Thinking::Disabled;
            known_fields::DISABLED_THINKING
        }
    };
    node.reject_unknown_fields(known)?;
    let fields = &mut decoded.anthropic;
    if let Some(display) = node.non_null("display") {
        fields.display = Some(match display.one_of(&["summarized", "omitted", "updates"])? {
            "summarized" => ThinkingDisplay::Summarized,
            "omitted" => ThinkingDisplay::Omitted,
            _ => {
                gate(fields, &display, betas::DISPLAY_UPDATES);
                ThinkingDisplay::Updates
            }
        });
    }
    if let Some(binding) = node.non_null("block_binding") {
        gate(fields, &binding, betas::BINDING);
        if let Some(behavior) = binding.record()?.non_null("prefix_mismatch_behavior") {
            let drops = behavior.one_of(&["error", "drop_block"])? == "drop_block";
            fields.mismatch = Some(if drops { MismatchBehavior::DropBlock } else { MismatchBehavior::Error });
            decoded.prompt.drop_stale_reasoning = drops;
        }
        binding.reject_unknown_fields(known_fields::BLOCK_BINDING)?;
    }
    Ok(())
}
