//! A client that sends back every answer as it came is never refused.

use hardpan_models::{Catalogue, Model, ThinkingOff};
use hardpan_simulator::{Account, AdaptiveThinking, AnthropicSettings, EngineSettings};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::anthropic_requests::{Anthropic, assistant, request, user};
use crate::providers::scripted;

fn models() -> Vec<&'static Model> {
    let models = Catalogue::builtin().models();
    models.filter(|model| model.provider == "anthropic" && !model.gone).collect()
}

/// The thinking settings that a model takes.
fn thinking_forms(model: &Model) -> Vec<Value> {
    let support = &model.thinking;
    let mut forms = vec![json!({})];
    if support.adaptive {
        forms.push(json!({"thinking": {"type": "adaptive"}}));
        forms.push(json!({"thinking": {"type": "adaptive", "display": "summarized"}}));
        forms.push(json!({"thinking": {"type": "adaptive", "display": "omitted"}}));
    }
    if support.budget {
        forms.push(json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}));
    }
    match support.off {
        ThinkingOff::Unspecified | ThinkingOff::Disabled => {
            forms.push(json!({"thinking": {"type": "disabled"}}));
        }
        ThinkingOff::BetweenTools => forms.push(json!({"thinking": {"type": "between_tools"}})),
        ThinkingOff::Never => {}
    }
    for effort in &support.efforts {
        if support.max_effort_when_off.is_none_or(|most| *effort <= most) {
            forms.push(json!({"output_config": {"effort": effort}}));
        }
    }
    forms
}

/// A turn of a script: whether it reasons, speaks and calls tools.
fn turn() -> impl Strategy<Value = String> {
    (any::<bool>(), any::<bool>(), 0..4_usize).prop_map(|(reasons, speaks, calls)| {
        let mut parts = Vec::new();
        if reasons {
            parts.push("reasoning: I wonder.".to_owned());
        }
        if speaks || calls == 0 {
            parts.push("text: Well.".to_owned());
        }
        if calls > 0 {
            let call = "{name: read, arguments: {path: a, lines: [1, 2.5], deep: {b: null}}}";
            parts.push(format!("tool_calls: [{}]", vec![call; calls].join(", ")));
        }
        format!("{{{}}}", parts.join(", "))
    })
}

/// What follows an answer: results for its calls, or the next question.
fn reply(answer: &Value, number: usize) -> Value {
    let results: Vec<Value> = answer["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|block| block["type"] == "tool_use")
        .map(|block| json!({"type": "tool_result", "tool_use_id": block["id"], "content": "Done."}))
        .collect();
    if results.is_empty() {
        user(&format!("Question {number}?"))
    } else {
        json!({"role": "user", "content": results})
    }
}

/// The content of a streamed answer, put together as a client does.
fn streamed_content(stream: &str) -> Value {
    let mut blocks: Vec<Value> = Vec::new();
    let mut arguments = String::new();
    for line in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(line).unwrap();
        let delta = &event["delta"];
        match event["type"].as_str().unwrap() {
            "content_block_start" => blocks.push(event["content_block"].clone()),
            "content_block_delta" => {
                let block = blocks.last_mut().unwrap();
                let mut append = |field: &str| {
                    let text =
                        format!("{}{}", block[field].as_str().unwrap(), delta[field].as_str().unwrap());
                    block[field] = json!(text);
                };
                match delta["type"].as_str().unwrap() {
                    "text_delta" => append("text"),
                    "thinking_delta" => append("thinking"),
                    "signature_delta" => append("signature"),
                    _ => arguments.push_str(delta["partial_json"].as_str().unwrap()),
                }
            }
            "content_block_stop" if !arguments.is_empty() => {
                blocks.last_mut().unwrap()["input"] = serde_json::from_str(&arguments).unwrap();
                arguments.clear();
            }
            _ => {}
        }
    }
    Value::Array(blocks)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_may_come_back(
        which in any::<prop::sample::Index>(),
        form in any::<prop::sample::Index>(),
        turns in prop::collection::vec(turn(), 2..7),
        is_streamed in any::<bool>(),
        (is_new, thinks) in any::<(bool, bool)>(),
    ) {
        let model = *which.get(&models());
        let thinking = form.get(&thinking_forms(model)).clone();
        let script = format!("turns: [{}]\ndefault: {{text: End.}}", turns.join(", "));
        let anthropic = AnthropicSettings {
            account: if is_new { Account::New } else { Account::Old },
            adaptive_thinking: if thinks { AdaptiveThinking::Always } else { AdaptiveThinking::AsScripted },
            ..AnthropicSettings::default()
        };
        let server = Anthropic::new(EngineSettings { anthropic, ..scripted(&script) });
        let mut messages = vec![user("Question 0?")];
        for number in 1..=turns.len() + 1 {
            let mut body = request(&model.id, thinking.clone());
            body["messages"] = json!(messages);
            body["stream"] = json!(is_streamed);
            let reply_ = server.send_to("/v1/messages", &body);
            let text = String::from_utf8(reply_.body.bytes()).unwrap();
            prop_assert_eq!(reply_.status, 200, "{} {}: {}", model.id, thinking, text);
            let content = if is_streamed {
                streamed_content(&text)
            } else {
                serde_json::from_str::<Value>(&text).unwrap()["content"].clone()
            };
            messages.push(assistant(&content));
            messages.push(reply(&json!({"content": content}), number));
        }
    }
}
