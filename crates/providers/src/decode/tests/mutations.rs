//! Damaged bodies are parsed or rejected, and never panic.

use hardpan_models::Protocol;
use hardpan_prompt::validate::{ValidationRules, find_violations};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::codec;
use crate::decode::{RequestKind, decode_request};

fn bodies() -> [(Protocol, Value); 4] {
    let marker = json!({"type": "ephemeral", "ttl": "1h"});
    let anthropic = json!({
        "model": "m", "max_tokens": 9, "stream": true, "system": [{"type": "text", "text": "s", "cache_control": marker}],
        "thinking": {"type": "enabled", "budget_tokens": 5}, "tool_choice": {"type": "tool", "name": "t"},
        "tools": [{"name": "t", "input_schema": {"type": "object"}}, {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}],
        "messages": [
            {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAYAAACddGYa"}}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "h", "signature": "s"}, {"type": "tool_use", "id": "i", "name": "t", "input": {"a": [1]}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content": [{"type": "text", "text": "x"}], "is_error": true}]},
        ],
    });
    let openai = json!({
        "model": "m", "max_tokens": 9, "stream": true, "stream_options": {"include_usage": true}, "stop": ["x"], "tool_choice": "auto",
        "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "i", "type": "function", "function": {"name": "t", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "i", "content": [{"type": "text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}}]},
        ],
    });
    let gemini = json!({
        "model": "models/m", "systemInstruction": {"parts": [{"text": "s"}]},
        "generationConfig": {"maxOutputTokens": 9, "stopSequences": ["x"], "temperature": 1, "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "LOW"}},
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["t"]}},
        "tools": [{"functionDeclarations": [{"name": "t", "parametersJsonSchema": {"type": "object"}}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "x"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
            {"role": "model", "parts": [{"text": "h", "thought": true}, {"functionCall": {"id": "i", "name": "t", "args": {"a": [1]}}, "thoughtSignature": "cw=="}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "i", "name": "t", "response": {"output": "x"}, "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}}]},
        ],
    });
    let responses = json!({
        "model": "m", "instructions": "s", "max_output_tokens": 99, "stream": true, "store": false,
        "prompt_cache_key": "k", "prompt_cache_options": {"mode": "explicit", "ttl": "30m"},
        "reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"],
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object", "properties": {}, "additionalProperties": false}, "strict": false}},
        "tools": [{"type": "function", "name": "t", "description": "d", "parameters": {"type": "object"}, "strict": false},
                  {"type": "web_search", "search_context_size": "low"},
                  {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
                  {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "u"}]}],
        "tool_choice": {"type": "function", "name": "t"},
        "input": [
            {"type": "additional_tools", "role": "developer", "tools": []},
            {"role": "developer", "content": "s"},
            {"role": "user", "content": [{"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}, {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "h"}], "encrypted_content": "g"},
            {"type": "message", "id": "msg_1", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "b", "annotations": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "i", "name": "t", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "j", "name": "c", "input": "x"},
            {"type": "function_call_output", "call_id": "i", "output": [{"type": "input_text", "text": "x"}]},
            {"type": "custom_tool_call_output", "call_id": "j", "output": "y"},
            {"type": "configuration_update", "reasoning": {"effort": "low"}},
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
            {"type": "compaction_trigger"},
        ],
    });
    [
        (Protocol::Anthropic, anthropic),
        (Protocol::Openai, openai),
        (Protocol::OpenaiResponses, responses),
        (Protocol::Gemini, gemini),
    ]
}

/// The JSON pointer of every value of a body, such as `/messages/0/role`.
fn pointers(value: &Value, way: &str, all: &mut Vec<String>) {
    all.push(way.to_owned());
    match value {
        Value::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(index, value)| pointers(value, &format!("{way}/{index}"), all));
        }
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| pointers(value, &format!("{way}/{key}"), all));
        }
        _ => {}
    }
}

fn strange() -> Vec<Value> {
    let numbers = [json!(-1), json!(0), json!(1e300), json!(-0.5), json!(u64::MAX), json!(i64::MIN)];
    let passthrough_fields = [
        json!(null),
        json!(true),
        json!(""),
        json!("x"),
        json!("text"),
        json!("system"),
        json!([]),
        json!({}),
        json!([[]]),
        json!([{}]),
        json!({"type": "text"}),
        json!({"type": 5}),
    ];
    numbers.into_iter().chain(passthrough_fields).collect()
}

/// Parses a body with all decoders: the result can be validated, or the error has a message.
fn survive(body: &[u8]) {
    for protocol in Protocol::ALL {
        match decode_request(protocol, body) {
            Ok(decoded) => {
                let rules = match protocol {
                    Protocol::Anthropic => ValidationRules::anthropic(),
                    Protocol::Openai => ValidationRules::openai(),
                    Protocol::OpenaiResponses => ValidationRules::openai_responses(),
                    Protocol::Gemini => ValidationRules::gemini(),
                };
                find_violations(&decoded.prompt, &rules);
            }
            Err(error) => assert!(!error.message.trim_matches([':', ' ']).is_empty(), "{error:?}"),
        }
    }
    let _ = codec(Protocol::Anthropic).decode_request(RequestKind::Count, "", body);
    let _ = codec(Protocol::Gemini).decode_request(RequestKind::Count, "", body);
    let _ = codec(Protocol::Gemini).decode_request(RequestKind::Store, "", body);
}

#[test]
fn every_value_may_be_any_other() {
    for (protocol, body) in bodies() {
        assert!(decode_request(protocol, body.to_string().as_bytes()).is_ok());
        let mut all = Vec::new();
        pointers(&body, "", &mut all);
        for pointer in all {
            for value in strange() {
                let mut body = body.clone();
                *body.pointer_mut(&pointer).unwrap() = value;
                survive(body.to_string().as_bytes());
            }
        }
    }
}

#[test]
fn every_field_may_be_missing_and_none_may_be_added() {
    for (protocol, body) in bodies() {
        let mut all = Vec::new();
        pointers(&body, "", &mut all);
        for pointer in all {
            let fields: Vec<String> = body
                .pointer(&pointer)
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(|map| map.keys().cloned())
                .collect();
            for field in fields {
                let mut less = body.clone();
                less.pointer_mut(&pointer).unwrap().as_object_mut().unwrap().shift_remove(&field);
                survive(less.to_string().as_bytes());
            }
            let mut more = body.clone();
            let Some(object) = more.pointer_mut(&pointer).and_then(Value::as_object_mut) else { continue };
            object.insert("surprise".to_owned(), json!(1));
            // Arguments and schemas are the client's own, and so is what a typed tool is told.
            let own = ["/input", "/input_schema", "/parameters", "/tools/1"];
            let geminis = ["/args", "/response", "/parametersJsonSchema"];
            let responses = ["/schema", "/schema/properties", "/action"];
            let is_free = own.iter().chain(&geminis).chain(&responses).any(|end| pointer.ends_with(end));
            let is_refused = decode_request(protocol, more.to_string().as_bytes()).is_err();
            assert_eq!(is_refused, !is_free, "{protocol:?} {pointer}");
        }
    }
}

#[test]
fn a_deep_body_is_refused() {
    let depth = 100_000;
    let body = format!("{{\"messages\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    for protocol in Protocol::ALL {
        assert!(decode_request(protocol, body.as_bytes()).is_err(), "{protocol:?}");
    }
    survive(body.as_bytes());
}

proptest! {
    #[test]
    fn damaged_bytes_are_survived(which in 0..3_usize, cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..6)) {
        let mut body = bodies()[which].1.to_string().into_bytes();
        for (index, byte, how) in cuts {
            let at = index.index(body.len().max(1));
            match how {
                0 => body.truncate(at),
                1 if at < body.len() => body[at] = byte,
                _ => body.insert(at.min(body.len()), byte),
            }
        }
        survive(&body);
    }
}
