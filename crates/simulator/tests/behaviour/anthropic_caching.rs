//! What a change loses of Anthropic's cache, and how far a read looks back.

use hardpan_simulator::{AnthropicSettings, EngineSettings, ThinkingCacheScope};
use serde_json::{Value, json};

use crate::anthropic_requests::{Anthropic, assistant, request, tool, user};
use crate::providers::{merge_fields, scripted};

const MODEL: &str = "claude-opus-5";

fn server(thinking_cache: ThinkingCacheScope) -> Anthropic {
    let anthropic = AnthropicSettings { thinking_cache, ..AnthropicSettings::default() };
    let betas = "mid-conversation-output-config-2026-07-01,mid-conversation-system-clear-at-2026-08-21,\
                 inline-tools-2026-09-15,fast-mode-2026-02-01";
    Anthropic::new(EngineSettings { anthropic, ..scripted("default: {text: Yes.}") }).with_betas(betas)
}

/// A text of about 1200 tokens.
fn long(of: &str) -> String {
    format!("{of} says much. ").repeat(300)
}

fn marked(text: &str) -> Value {
    json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}})
}

/// A request with a marker after the tools, after the system prompt and after the message.
fn body(more: Value) -> Value {
    let mut marked_tool = tool("read");
    marked_tool["description"] = json!(long("tool"));
    marked_tool["cache_control"] = json!({"type": "ephemeral"});
    let mut body = request(MODEL, json!({"tools": [marked_tool], "system": [marked(&long("system"))]}));
    body["messages"] = json!([{"role": "user", "content": [marked(&long("user"))]}]);
    merge_fields(&mut body, more);
    body
}

/// How many of the three marked parts a request reads after the first one, both with these changes.
fn sections_read(server: &Anthropic, first: Value, second: Value) -> u64 {
    let usage = |more: Value| server.answer(&body(more))["usage"].clone();
    let written = usage(first)["cache_creation_input_tokens"].as_u64().unwrap();
    let read = usage(second)["cache_read_input_tokens"].as_u64().unwrap();
    (3 * read + written / 2) / written
}

#[test]
fn results_of_server_tools_are_written_for_five_minutes_once_a_request_has_a_marker() {
    let page = "A page that the server found on the web by itself. ".repeat(200);
    let script = format!("turns: [{{web_search: {page}, text: There.}}]\ndefault: {{text: Yes.}}");
    let server = Anthropic::new(scripted(&script));
    let tools = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    let first = server.answer(&request("claude-opus-5", json!({"tools": tools})));
    let blocks = first["content"].as_array().unwrap().iter();
    let found: Vec<&Value> = blocks.filter(|block| block["type"] != "thinking").collect();
    let found = json!(found);
    let hour = json!({"type": "ephemeral", "ttl": "1h"});
    let written = |first: &Value, model: &str| {
        let messages = json!([{"role": "user", "content": [first]}, assistant(&found), user("And?")]);
        let answer = server.answer(&request(model, json!({"messages": messages, "tools": tools})));
        let written = &answer["usage"]["cache_creation"];
        ["ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens"].map(|name| written[name].as_u64().unwrap())
    };
    let long = "A question with many words before it. ".repeat(400);
    let plain = json!({"type": "text", "text": long});
    assert_eq!(written(&plain, "claude-opus-5"), [0, 0], "nothing is cached unless the request asks");
    let marked = json!({"type": "text", "text": long, "cache_control": hour});
    let [hours, minutes] = written(&marked, "claude-opus-5");
    assert!(hours > 1000 && minutes > 1000, "{hours} {minutes}");
}

#[test]
fn every_change_loses_what_the_table_says() {
    let effort = |effort: &str| json!({"output_config": {"effort": effort}});
    let deferred = |count: usize| {
        let mut tools = body(json!({}))["tools"].as_array().unwrap().clone();
        tools.extend((0..count).map(|number| {
            let mut tool = tool(&format!("rare{number}"));
            tool["defer_loading"] = json!(true);
            tool
        }));
        json!({"tools": tools})
    };
    for (first, second, sections) in [
        (json!({}), json!({}), 3),
        (json!({}), effort("high"), 3),
        (effort("high"), effort("low"), 2),
        (json!({}), json!({"thinking": {"type": "disabled"}}), 2),
        (json!({}), json!({"output_config": {"format": {"type": "json_schema", "schema": {}}}}), 2),
        (json!({}), json!({"tool_choice": {"type": "auto"}}), 2),
        (json!({}), json!({"speed": "fast"}), 1),
        (json!({}), json!({"speed": "standard"}), 3),
        (
            json!({}),
            json!({"max_tokens": 900, "metadata": {"user_id": "u"}, "diagnostics": {"previous_message_id": null}}),
            3,
        ),
        (json!({}), deferred(1), 0),
        (deferred(1), deferred(2), 3),
    ] {
        let server = server(ThinkingCacheScope::Messages);
        assert_eq!(sections_read(&server, first.clone(), second.clone()), sections, "{first} {second}");
    }
    let before_tools = || server(ThinkingCacheScope::Everything);
    assert_eq!(sections_read(&before_tools(), json!({}), effort("low")), 0);
    assert_eq!(sections_read(&before_tools(), json!({}), effort("high")), 3);
}

#[test]
fn what_a_system_message_changes_keeps_what_is_before_it() {
    let definition =
        json!({"type": "tool_definition", "definition": {"name": "new", "input_schema": {"type": "object"}}});
    for system in [
        json!({"role": "system", "content": "Run the tests."}),
        json!({"role": "system", "content": [], "output_config": {"effort": "low"}}),
        json!({"role": "system", "content": "Now.", "clear_at": "next_user_message"}),
        json!({"role": "system", "content": [{"type": "tool_addition", "tool": definition}]}),
        json!({"role": "system", "content": [{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "read"}}]}),
    ] {
        let server = server(ThinkingCacheScope::Messages);
        let first = body(json!({}))["messages"][0].clone();
        let mut turn_scoped = vec![first.clone(), system.clone()];
        assert_eq!(sections_read(&server, json!({}), json!({"messages": turn_scoped})), 3, "{system}");
        turn_scoped.extend([assistant(&json!("Yes.")), user("And?")]);
        let usage = server.answer(&body(json!({"messages": turn_scoped})))["usage"].clone();
        assert!(usage["cache_read_input_tokens"].as_u64().unwrap() > 3000, "{system}: {usage}");
    }
}

#[test]
fn the_first_tool_of_a_request_without_tools_loses_everything() {
    let server = server(ThinkingCacheScope::Messages);
    let definition =
        json!({"type": "tool_definition", "definition": {"name": "new", "input_schema": {"type": "object"}}});
    let mut messages = vec![body(json!({}))["messages"][0].clone()];
    let first = json!({"tools": [], "messages": messages});
    messages.push(json!({"role": "system", "content": [{"type": "tool_addition", "tool": definition}]}));
    assert_eq!(sections_read(&server, first, json!({"tools": [], "messages": messages})), 0);
}

/// A conversation in which the model called so many tools at once, so many times.
fn rounds(count: usize, parallel: usize) -> Vec<Value> {
    let mut messages = vec![user(&long("user"))];
    for round in 0..count {
        let ids: Vec<String> = (0..parallel).map(|call| format!("t{round}_{call}")).collect();
        let call = |id: &String| json!({"type": "tool_use", "id": id, "name": "read", "input": {}});
        let result = |id: &String| json!({"type": "tool_result", "tool_use_id": id, "content": "Done."});
        messages.push(assistant(&ids.iter().map(call).collect()));
        messages.push(json!({"role": "user", "content": ids.iter().map(result).collect::<Vec<_>>()}));
    }
    messages
}

#[test]
fn a_read_looks_back_over_twenty_positions_and_a_run_is_one() {
    let read = |count: usize, parallel: usize| {
        let server = server(ThinkingCacheScope::Messages);
        let send = |messages: Vec<Value>| {
            let more = json!({"messages": messages, "cache_control": {"type": "ephemeral"}});
            server.answer(&request(MODEL, more))["usage"]["cache_read_input_tokens"].as_u64().unwrap()
        };
        send(rounds(0, 0));
        send(rounds(count, parallel))
    };
    assert!(read(1, 50) > 1000, "parallel calls are one position");
    assert!(read(9, 3) > 1000, "18 positions");
    assert_eq!(read(10, 1), 0, "the marked block is the first of 20 positions");
}
