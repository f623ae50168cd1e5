//! Encodes answers of the Responses API.

use hardpan_prompt::Json;
use serde_json::{Value, json};

use super::output::{compaction_item, output_items};
use super::response::{finished, in_progress, usage};
use crate::answer::SimulatedAnswer;
use crate::engine::AcceptedRequest;
use crate::server_codec::Endpoint;
use crate::wire::{AnswerHead, EventKind, StreamEvent, make_id, split_text};

/// The response object of a complete answer.
pub fn final_response(request: &AcceptedRequest, answer: &SimulatedAnswer, head: &AnswerHead) -> Value {
    finished(request, answer, head, output_items(request, answer, head))
}

pub fn answer_body(request: &AcceptedRequest, answer: &SimulatedAnswer, head: &AnswerHead) -> Value {
    if request.endpoint != Endpoint::Compact {
        return final_response(request, answer, head);
    }
    // What the user said stays; everything else becomes one item.
    let items = request.decoded.items.iter().map(Json::value);
    let mut output: Vec<Value> = items.filter(|item| item["role"] == "user").collect();
    for (index, item) in output.iter_mut().enumerate() {
        item["type"] = json!("message");
        item["status"] = json!("completed");
        if item["id"].is_null() {
            item["id"] = json!(make_id("msg_", head.number, index));
        }
        if let Some(text) = item["content"].as_str() {
            item["content"] = json!([{"type": "input_text", "text": text}]);
        }
    }
    output.push(compaction_item(request, head));
    json!({
        "id": make_id("resp_", head.number, 0),
        "object": "response.compaction",
        "created_at": head.created,
        "output": output,
        "usage": usage(head),
    })
}

pub fn answer_events(
    request: &AcceptedRequest,
    answer: &SimulatedAnswer,
    head: &AnswerHead,
) -> Vec<StreamEvent> {
    let options = request.decoded.other.get("stream_options").map(Json::value);
    let is_plain = options.is_some_and(|options| options["include_obfuscation"] == false);
    let mut events = Events { is_obfuscated: !is_plain, ..Events::default() };
    let beginning = in_progress(request, head);
    events.frame("response.created", json!({"response": beginning}));
    events.frame("response.in_progress", json!({"response": beginning}));
    let output = output_items(request, answer, head);
    for (index, item) in output.iter().enumerate() {
        events.item(index, item);
    }
    let last = finished(request, answer, head, output);
    let name = format!("response.{}", last["status"].as_str().unwrap_or("completed"));
    events.frame(&name, json!({"response": last})); // no marker follows it
    events.sent
}

#[derive(Default)]
struct Events {
    sent: Vec<StreamEvent>,
    is_obfuscated: bool,
}

impl Events {
    fn push(&mut self, kind: EventKind, name: &str, fields: Value) {
        let number = self.sent.len();
        let mut data = json!({"type": name, "sequence_number": number});
        if let (Value::Object(data), Value::Object(fields)) = (&mut data, fields) {
            data.extend(fields);
        }
        if kind == EventKind::Delta && self.is_obfuscated {
            // Of a length that does not tell how long the delta is.
            let noise = make_id("", number as u64, 0);
            data["obfuscation"] = json!(noise[..4 + number * 7 % 12]);
        }
        self.sent.push(StreamEvent { kind, bytes: format!("event: {name}\ndata: {data}\n\n").into() });
    }

    fn frame(&mut self, name: &str, fields: Value) {
        self.push(EventKind::Frame, name, fields);
    }

    /// The deltas of a text, and the event with the whole of it.
    fn text(&mut self, name: &str, place: &Value, field: &str, text: &str, more: &Value) {
        for piece in split_text(text).into_iter().filter(|piece| !piece.is_empty()) {
            self.push(
                EventKind::Delta,
                &format!("{name}.delta"),
                with(place, &[("delta", json!(piece))], more),
            );
        }
        self.frame(&format!("{name}.done"), with(place, &[(field, json!(text))], more));
    }

    fn item(&mut self, index: usize, item: &Value) {
        let mut shell = item.clone();
        let empty = [
            ("status", json!("in_progress")),
            ("content", json!([])),
            ("summary", json!([])),
            ("arguments", json!("")),
            ("input", json!("")),
            ("action", json!({"type": "search"})),
        ];
        for (name, value) in empty {
            if shell.get(name).is_some() {
                shell[name] = value;
            }
        }
        if let Some(encrypted) = item["encrypted_content"].as_str() {
            shell["encrypted_content"] = json!(encrypted[..6]); // complete at the end only
        }
        self.frame("response.output_item.added", json!({"output_index": index, "item": shell}));
        let place = json!({"item_id": item["id"], "output_index": index});
        match item["type"].as_str().unwrap_or_default() {
            "reasoning" => self.summaries(item, &place),
            "message" => self.contents(item, &place),
            "function_call" => {
                let text = item["arguments"].as_str().unwrap_or_default();
                self.text("response.function_call_arguments", &place, "arguments", text, &json!({}));
            }
            "custom_tool_call" => {
                let text = item["input"].as_str().unwrap_or_default();
                self.text("response.custom_tool_call_input", &place, "input", text, &json!({}));
            }
            "compaction" => self.frame("response.compaction.compacting", place),
            "web_search_call" => {
                for step in ["in_progress", "searching", "completed"] {
                    self.frame(&format!("response.web_search_call.{step}"), place.clone());
                }
            }
            _ => {}
        }
        self.frame("response.output_item.done", json!({"output_index": index, "item": item}));
    }

    fn summaries(&mut self, item: &Value, place: &Value) {
        for (index, part) in item["summary"].as_array().into_iter().flatten().enumerate() {
            let place = with(place, &[("summary_index", json!(index))], &json!({}));
            let shell = json!({"type": "summary_text", "text": ""});
            self.frame("response.reasoning_summary_part.added", with(&place, &[("part", shell)], &json!({})));
            let text = part["text"].as_str().unwrap_or_default();
            self.text("response.reasoning_summary_text", &place, "text", text, &json!({}));
            self.frame(
                "response.reasoning_summary_part.done",
                with(&place, &[("part", part.clone())], &json!({})),
            );
        }
    }

    fn contents(&mut self, item: &Value, place: &Value) {
        for (index, part) in item["content"].as_array().into_iter().flatten().enumerate() {
            let place = with(place, &[("content_index", json!(index))], &json!({}));
            let (name, field, more) = match part["type"] == "refusal" {
                true => ("response.refusal", "refusal", json!({})),
                false => ("response.output_text", "text", json!({"logprobs": []})),
            };
            let mut shell = part.clone();
            shell[field] = json!("");
            self.frame("response.content_part.added", with(&place, &[("part", shell)], &json!({})));
            let text = part[field].as_str().unwrap_or_default();
            self.text(name, &place, field, text, &more);
            for (number, annotation) in part["annotations"].as_array().into_iter().flatten().enumerate() {
                let fields = [("annotation_index", json!(number)), ("annotation", annotation.clone())];
                self.frame("response.output_text.annotation.added", with(&place, &fields, &json!({})));
            }
            self.frame("response.content_part.done", with(&place, &[("part", part.clone())], &json!({})));
        }
    }
}

/// An object with these fields besides its own.
fn with(place: &Value, fields: &[(&str, Value)], more: &Value) -> Value {
    let mut object = place.clone();
    fields.iter().for_each(|(name, value)| object[*name] = value.clone());
    more.as_object().into_iter().flatten().for_each(|(name, value)| object[name] = value.clone());
    object
}
