//! The items of an answer.

use std::collections::BTreeMap;

use hardpan_prompt::Json;
use hardpan_providers::decode::DecodedRequest;
use serde_json::{Value, json};

use super::seal::seal;
use crate::answer::{FinishReason, SimulatedAnswer, SimulatedPart};
use crate::engine::AcceptedRequest;
use crate::found_page::{FoundPage, split_cited};
use crate::wire::{AnswerHead, make_id};

/// How a declared tool is called.
#[derive(Clone, Debug, Default)]
struct ToolForm {
    is_custom: bool,
    namespace: Option<String>,
}

/// The complete items of an answer.
pub fn output_items(request: &AcceptedRequest, answer: &SimulatedAnswer, head: &AnswerHead) -> Vec<Value> {
    if request.compacts {
        return vec![compaction_item(request, head)];
    }
    let forms = tool_forms(&request.decoded);
    let is_call = |part: &SimulatedPart| matches!(part, SimulatedPart::Call { .. });
    let phase = if answer.parts.iter().any(is_call) { "commentary" } else { "final_answer" };
    let last = answer.parts.len().saturating_sub(1);
    let item = |(index, part): (usize, &SimulatedPart)| {
        let is_cut = index == last && is_incomplete(&answer.stop);
        let status = if is_cut { "incomplete" } else { "completed" };
        match part {
            SimulatedPart::Reasoning(text) => {
                let summary = match wants_summary(&request.decoded) {
                    true => json!([{"type": "summary_text", "text": text}]),
                    false => json!([]),
                };
                let id = make_id("rs_", head.number, index);
                json!({"id": id, "type": "reasoning", "summary": summary, "encrypted_content": seal(text)})
            }
            SimulatedPart::Search(query) => {
                let id = make_id("ws_", head.number, index);
                let action = json!({"type": "search", "query": query, "queries": [query]});
                json!({"id": id, "type": "web_search_call", "status": status, "action": action})
            }
            SimulatedPart::Text(text) => {
                let part = match answer.stop {
                    FinishReason::Refusal => json!({"type": "refusal", "refusal": text}),
                    _ => {
                        let page = FoundPage::before(&answer.parts[..index]);
                        let annotations: Vec<Value> = page.iter().map(|page| citation(page, text)).collect();
                        json!({"type": "output_text", "annotations": annotations, "logprobs": [], "text": text})
                    }
                };
                let id = make_id("msg_", head.number, index);
                let mut item = json!({
                    "id": id, "type": "message", "status": status, "content": [part], "role": "assistant",
                });
                if request.profile.message_phase {
                    item["phase"] = json!(phase);
                }
                item
            }
            SimulatedPart::Call { id, name, arguments } => {
                let call_id = id.clone().unwrap_or_else(|| make_id("call_", head.number, index));
                let ToolForm { is_custom, namespace } = forms.get(name).cloned().unwrap_or_default();
                let mut item = if is_custom {
                    let id = make_id("ctc_", head.number, index);
                    json!({"id": id, "type": "custom_tool_call", "status": status, "input": raw_input(arguments), "call_id": call_id, "name": name})
                } else {
                    let id = make_id("fc_", head.number, index);
                    json!({"id": id, "type": "function_call", "status": status, "arguments": arguments, "call_id": call_id, "name": name})
                };
                if let Some(namespace) = namespace {
                    item["namespace"] = json!(namespace);
                }
                item
            }
        }
    };
    answer.parts.iter().enumerate().map(item).collect()
}

/// The citation of a page: the text but for its first word.
fn citation(page: &FoundPage, text: &str) -> Value {
    let (own, cited) = split_cited(text);
    let (start, length) = (own.chars().count(), cited.chars().count());
    json!({
        "type": "url_citation", "start_index": start, "end_index": start + length,
        "url": page.url, "title": page.title,
    })
}

/// Whether an answer ends at a limit.
pub fn is_incomplete(stop: &FinishReason) -> bool {
    matches!(stop, FinishReason::Length | FinishReason::Window)
}

fn wants_summary(decoded: &DecodedRequest) -> bool {
    decoded.other.get("reasoning").is_some_and(|reasoning| {
        let reasoning = reasoning.value();
        reasoning["summary"].is_string() || reasoning["generate_summary"].is_string()
    })
}

/// The text of a custom call: a script writes it as the argument `input`.
fn raw_input(arguments: &str) -> String {
    let fields: Option<Value> = serde_json::from_str(arguments).ok();
    let text = fields.as_ref().and_then(|fields| fields["input"].as_str());
    text.unwrap_or(arguments).to_owned()
}

/// The declared tools by name, wherever they were declared.
fn tool_forms(decoded: &DecodedRequest) -> BTreeMap<String, ToolForm> {
    let field = decoded.other.get("tools").map(Json::value);
    let items = decoded.items.iter().map(Json::value);
    let added = items.filter(|item| item["type"] == "additional_tools").map(|mut item| item["tools"].take());
    let mut forms = BTreeMap::new();
    for tools in field.into_iter().chain(added) {
        for tool in tools.as_array().into_iter().flatten() {
            let namespace = tool["name"].as_str().filter(|_| tool["type"] == "namespace").map(str::to_owned);
            let inner = tool["tools"].as_array().filter(|_| namespace.is_some());
            for tool in inner.map_or_else(|| vec![tool], |tools| tools.iter().collect()) {
                let form = ToolForm { is_custom: tool["type"] == "custom", namespace: namespace.clone() };
                forms.extend(tool["name"].as_str().map(|name| (name.to_owned(), form)));
            }
        }
    }
    forms
}

/// The item that stands for a whole conversation.
pub fn compaction_item(request: &AcceptedRequest, head: &AnswerHead) -> Value {
    let conversation: String = request.decoded.items.iter().map(Json::as_str).collect();
    json!({"id": make_id("cmp_", head.number, 0), "type": "compaction", "encrypted_content": seal(&conversation)})
}
