//! Bodies as the official SDKs and people with curl send them.

use hardpan_models::Protocol;
use hardpan_prompt::validate::{Acceptance, ValidationRules, validate};
use hardpan_prompt::{
    Block, CacheLifetime, Content, Effort, ItemKind, MediaType, Prompt, ResultPart, Role, Thinking,
    ToolOutcome, WebSearch,
};
use serde_json::{Value, json};

use crate::codec;
use crate::decode::{DecodedRequest, RAW_ARGUMENTS, RequestKind, decode_request};

fn anthropic(body: &Value) -> DecodedRequest {
    decode_request(Protocol::Anthropic, body.to_string().as_bytes()).unwrap()
}

fn openai(body: &Value) -> DecodedRequest {
    decode_request(Protocol::Openai, body.to_string().as_bytes()).unwrap()
}

fn text(block: &Block) -> String {
    let Content::Text(segments) = &*block.content else { panic!("{block:?} is no text") };
    segments.iter().map(|segment| segment.text.as_str()).collect()
}

fn texts(prompt: &Prompt) -> Vec<String> {
    prompt.blocks().map(text).collect()
}

/// A 3×2 PNG, as far as its header.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAYAAACddGYa";

#[test]
fn a_body_typed_by_hand_is_read() {
    let decoded = anthropic(&json!({
        "model": "claude-x", "max_tokens": 100, "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hello!"}, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Bye."}],
    }));
    assert_eq!(texts(&decoded.prompt), ["Be brief.", "Hello!", "Hi.", "Bye."]);
    assert_eq!(
        decoded.prompt.messages.iter().map(|turn| turn.role).collect::<Vec<_>>(),
        [Role::User, Role::Assistant, Role::User]
    );
    assert!(!decoded.stream && decoded.other.is_empty());
}

#[test]
fn an_echoed_answer_of_anthropics_is_read() {
    let decoded = anthropic(&json!({
        "model": "claude-x", "max_tokens": 4096, "stream": true, "temperature": 1.0, "top_k": 5,
        "metadata": {"user_id": "u"}, "stop_sequences": ["END"],
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
        "system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}, "cache_control": null}],
        "messages": [
            {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]},
            {"role": "assistant", "content": [
                {"signature": "sig", "thinking": "hm", "type": "thinking"},
                {"citations": null, "text": "Reading.", "type": "text"},
                {"id": "toolu_1", "input": {"path": "a"}, "name": "read", "type": "tool_use", "caller": {"type": "direct"}},
                {"id": "toolu_2", "input": {}, "name": "read", "type": "tool_use"},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": [
                    {"type": "text", "text": "no such file", "cache_control": {"type": "ephemeral"}}]},
                {"type": "tool_result", "tool_use_id": "toolu_2"},
            ]},
        ],
    }));
    let Prompt { messages, thinking, .. } = &decoded.prompt;
    assert_eq!(*thinking, Thinking::Budget(2000));
    let Content::Image(image, _) = &*messages[0].blocks[0].content else { panic!("no image") };
    assert_eq!((image.media_type, image.width, image.height), (MediaType::Png, Some(3), Some(2)));
    let Content::Result(result) = &*messages[2].blocks[0].content else { panic!("no result") };
    assert_eq!((result.outcome, result.parts.len()), (ToolOutcome::Failed, 1));
    let lifetimes: Vec<_> =
        decoded.prompt.breakpoints().iter().map(|point| (point.block, point.lifetime)).collect();
    assert_eq!(lifetimes, [(1, CacheLifetime::OneHour), (7, CacheLifetime::FiveMinutes)]);
    assert_eq!((decoded.parallel_tools, decoded.stop_sequences), (Some(false), vec!["END".to_owned()]));
    assert_eq!(decoded.other.keys().collect::<Vec<_>>(), ["metadata"]);
    assert_eq!(decoded.other["metadata"].as_str(), r#"{"user_id":"u"}"#);
    assert_eq!(validate(&decoded.prompt, &ValidationRules::anthropic()), Ok(()));
}

#[test]
fn tools_that_the_server_runs_keep_their_type() {
    let decoded = anthropic(&json!({
        "model": "claude-x", "max_tokens": 9, "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"},
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
        "tools": [
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "cache_control": {"type": "ephemeral"}},
            {"type": "bash_20250124", "name": "bash"},
            {"type": "custom", "name": "mine", "input_schema": {"type": "object"}, "strict": true},
        ],
        "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": [
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}]}, {"role": "user", "content": "!"}],
    }));
    let tools = &decoded.prompt.tools;
    assert!(tools[0].tool.description.contains("web_search_20250305"));
    assert!(!tools[0].tool.description.contains("cache_control"));
    assert_eq!((tools[0].breakpoint, &*tools[2].tool.name), (Some(CacheLifetime::FiveMinutes), "mine"));
    assert_eq!(decoded.server_tools.iter().map(|name| &**name).collect::<Vec<_>>(), ["web_search"]);
    assert_eq!(decoded.prompt.web_search, Some(WebSearch { max_results: 3 }));
    assert_eq!((decoded.prompt.thinking, decoded.prompt.effort), (Thinking::Adaptive, Some(Effort::High)));
    assert_eq!(decoded.automatic_cache, Some(CacheLifetime::OneHour));
    assert!(texts(&decoded.prompt)[1].contains("server_tool_use"));
    assert_eq!(validate(&decoded.prompt, &ValidationRules::anthropic()), Ok(()));
}

#[test]
fn documents_of_text_and_images_by_address_are_read() {
    let decoded = anthropic(
        &json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "D"}, "citations": {"enabled": true}},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.JPG?x=1"}},
        ]}]}),
    );
    assert!(decoded.citations);
    let Content::Image(image, _) = &*decoded.prompt.messages[0].blocks[1].content else { panic!("no image") };
    assert_eq!((image.media_type, image.width), (MediaType::Jpeg, None));
}

#[test]
fn a_count_needs_no_room_for_an_answer() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hello!"}], "thinking": {"type": "enabled", "budget_tokens": 9000}});
    let decoded = codec(Protocol::Anthropic)
        .decode_request(RequestKind::Count, "", body.to_string().as_bytes())
        .unwrap();
    assert_eq!(validate(&decoded.prompt, &ValidationRules::anthropic()), Ok(()));
    let body = json!({"model": "m", "max_tokens": 1, "messages": []});
    let error = codec(Protocol::Anthropic)
        .decode_request(RequestKind::Count, "", body.to_string().as_bytes())
        .unwrap_err();
    assert_eq!(error.message, "max_tokens: Extra inputs are not permitted");
}

#[test]
fn nothing_said_is_no_block() {
    let decoded = anthropic(
        &json!({"model": "m", "max_tokens": 1, "system": "", "messages": [{"role": "user", "content": ""}]}),
    );
    assert!(decoded.prompt.system.is_empty());
    let refusal = validate(&decoded.prompt, &ValidationRules::anthropic()).unwrap_err();
    assert_eq!(refusal.to_string(), "messages.0: all messages must have non-empty content");
}

#[test]
fn an_echoed_answer_of_openais_is_read() {
    let decoded = openai(&json!({
        "model": "gpt-x", "max_completion_tokens": 50, "stream": true, "stream_options": {"include_usage": true},
        "temperature": 0, "user": "u", "n": 1, "stop": "END", "reasoning_effort": "low", "parallel_tool_calls": false,
        "tool_choice": {"type": "function", "function": {"name": "read"}}, "prompt_cache_key": "k", "seed": null,
        "prompt_cache_options": {"mode": "explicit", "ttl": "30m"},
        "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}, "strict": false}}, {"type": "function", "function": {"name": "now"}}],
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "system", "content": [{"type": "text", "text": "Be kind.", "prompt_cache_breakpoint": {"mode": "explicit"}}]},
            {"role": "user", "name": "ann", "content": [
                {"type": "text", "text": "Look."},
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}"), "detail": "low"}}]},
            {"role": "assistant", "content": null, "refusal": null, "annotations": [], "audio": null, "function_call": null, "reasoning_content": "hm", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\": \"a\"}"}},
                {"index": 1, "id": "c2", "type": "function", "function": {"name": "read", "arguments": "{\"path"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}]},
            {"role": "assistant", "refusal": "No."},
            {"role": "system", "content": "Now be long."},
        ],
    }));
    let Prompt { system, messages, tools, .. } = &decoded.prompt;
    assert_eq!(system.iter().map(text).collect::<Vec<_>>(), ["Be brief.", "Be kind."]);
    assert_eq!((system[1].breakpoint, decoded.system_messages), (Some(CacheLifetime::FiveMinutes), 2));
    let [_, first, second] = &messages[1].blocks[..] else { panic!("{:?}", messages[1]) };
    let arguments = |block: &Block| match &*block.content {
        Content::Call(call) => call.arguments.as_str().to_owned(),
        other => panic!("{other:?} is no call"),
    };
    assert_eq!(arguments(first), r#"{"path":"a"}"#);
    assert_eq!(arguments(second), json!({RAW_ARGUMENTS: "{\"path"}).to_string());
    let Content::Result(result) = &*messages[3].blocks[0].content else { panic!("no result") };
    assert!(matches!(&result.parts[..], [ResultPart::Text(_)]));
    assert_eq!(text(&messages[4].blocks[0]), "No.");
    assert_eq!(
        (messages[5].role, messages[5].blocks[0].origin().map(|origin| origin.kind)),
        (Role::System, Some(ItemKind::System))
    );
    assert_eq!(tools[1].tool.parameters.as_str(), r#"{"type":"object","properties":{}}"#);
    assert!(decoded.stream && decoded.include_usage && decoded.explicit_only);
    assert_eq!((decoded.parallel_tools, decoded.prompt.effort), (Some(false), Some(Effort::Low)));
    assert_eq!(decoded.prompt.max_tokens, 50);
    assert_eq!(
        decoded.other.keys().collect::<Vec<_>>(),
        ["n", "prompt_cache_key", "seed", "temperature", "user"]
    );
    let rules = ValidationRules { breakpoints: Acceptance::Accepted, ..ValidationRules::openai() };
    assert_eq!(validate(&decoded.prompt, &rules), Ok(()));
}

#[test]
fn without_a_limit_there_is_none() {
    let decoded = openai(&json!({"model": "m", "messages": [{"role": "user", "content": ""}]}));
    assert_eq!(decoded.prompt.max_tokens, u32::MAX);
    assert_eq!(validate(&decoded.prompt, &ValidationRules::openai()), Ok(()));
    let huge = anthropic(&json!({"model": "m", "max_tokens": u64::MAX, "messages": []}));
    assert_eq!(huge.prompt.max_tokens, u32::MAX);
}
