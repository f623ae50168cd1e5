//! The request of the `panels` layout, compared with the documented request of the panel agent that
//! it models; the deviations are listed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use serde_json::{Value, json};
use support::{Sandbox, snapshot};

/// The documented example, with what it elides filled in: `...` by its table of constants,
/// `{agent content}` by an agent.
fn documented_request() -> Value {
    json!({
        "model": "claude-sonnet-5",
        "max_tokens": 128000,
        "stream": true,
        // Deviations: how much the model thinks is always said, since models differ in what they do by themselves.
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "high"},
        "system": "You are a coding agent.",
        "messages": [
            {"role": "assistant", "content": [
                {"type": "text", "text": "Beginning of dynamic panel display. All content displayed below may be considered up to date."},
                {"type": "text", "text": "Panel automatically generated at 2026-02-19T14:00:00Z"},
                {"type": "tool_use", "id": "panel_P1", "name": "dynamic_panel", "input": {"id": "P1"}}
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "panel_P1", "content": "======= [P1] Todo List =======\n- [ ] read main.rs"}
            ]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "End of dynamic panel displays...\nCurrent datetime: 2026-02-19T15:00:00Z"},
                {"type": "tool_use", "id": "panel_footer", "name": "dynamic_panel", "input": {"action": "end_panels"}}
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "panel_footer", "content": "Panel display complete. Proceeding with conversation."}
            ]},
            {"role": "user", "content": [
                {"type": "text", "text": "System instructions (repeated for emphasis):\n\nYou are a coding agent."}
            ]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Understood. I will follow these instructions."}
            ]},
            {"role": "user", "content": [{"type": "text", "text": "Hello!"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Let me check that file."},
                {"type": "tool_use", "id": "T1", "name": "Open", "input": {"path": "src/main.rs"}}
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "T1", "content": "Opened 'src/main.rs' as P10"}
            ]}
        ],
        "tools": [
            {
                "name": "Open",
                "description": "Opens a file and adds it to context...",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
            }
        ]
    })
}

#[test]
fn the_body_is_the_documented_one_but_for_the_listed_deviations() {
    let mut body = documented_request();
    let marker = json!({"type": "ephemeral"});

    // The system prompt is the same in all layouts: the tools hint and the pointer to the documents
    // follow the agent's text. Content is always a list.
    let system = "You are a coding agent.\n\n\
        Use the declared tools when the answer depends on something you have not been shown, \
        and never invent their results.\n\n\
        When asked about Hardpan itself, do not guess: `hardpan docs` lists its documents, `hardpan docs NAME` \
        prints one.";
    body["system"] = json!([{"type": "text", "text": system, "cache_control": marker.clone()}]);
    body["messages"][4]["content"][0]["text"] =
        format!("System instructions (repeated for emphasis):\n\n{system}").into();
    // Markers, without which Anthropic caches nothing: on the system prompt, before the footer, and on the
    // last message.
    body["messages"][1]["content"][0]["cache_control"] = marker.clone();
    body["messages"][8]["content"][0]["cache_control"] = marker;
    // It begins with a user message.
    let opening = json!({"role": "user", "content": [
        {"type": "text", "text": "The context follows; the conversation comes after it."}
    ]});
    body["messages"].as_array_mut().unwrap().insert(0, opening);
    // The tool that the panels pretend to come from is declared, before the others.
    let panel_tool = json!({
        "name": "dynamic_panel",
        "description": "Shows a panel of the workspace: a file, a list, the state of the repository. \
            Panels are displayed automatically; calling this tool is never needed.",
        "input_schema": {"type": "object", "properties": {"id": {"type": "string"}, "action": {"type": "string"}}}
    });
    body["tools"].as_array_mut().unwrap().insert(0, panel_tool);
    // The provider is asked to compare the request with the one before.
    body["diagnostics"] = json!({"previous_message_id": null});

    let file = snapshot("panels_request");
    let args = ["--layout", "panels", "--model", "claude-sonnet-5", "--max-tokens", "128000", "--json"];
    let sent = Sandbox::new().bytes(&[&["request", "--snapshot", &file], &args[..]].concat());
    let sent_value: Value = serde_json::from_slice(&sent).unwrap();
    assert_eq!(sent_value, body);
    assert_eq!(
        String::from_utf8(sent).unwrap(),
        body.to_string(),
        "the order of the fields is the documented one, too"
    );
}

#[test]
fn openai_compatible_servers_get_no_repeated_instructions() {
    let file = snapshot("panels_request");
    let args = [
        "request",
        "--snapshot",
        &file,
        "--layout",
        "panels",
        "--provider",
        "xai",
        "--model",
        "grok-4.5",
        "--json",
    ];
    let body = Sandbox::new().json(&args);
    let expected = json!([
        {"role": "assistant", "content": "Beginning of dynamic panel display. All content displayed below may be \
            considered up to date.\nPanel automatically generated at 2026-02-19T14:00:00Z",
         "tool_calls": [{"id": "panel_P1", "type": "function",
            "function": {"name": "dynamic_panel", "arguments": "{\"id\":\"P1\"}"}}]},
        {"role": "tool", "tool_call_id": "panel_P1", "content": "======= [P1] Todo List =======\n- [ ] read main.rs"},
        {"role": "assistant", "content": "End of dynamic panel displays...\nCurrent datetime: 2026-02-19T15:00:00Z",
         "tool_calls": [{"id": "panel_footer", "type": "function",
            "function": {"name": "dynamic_panel", "arguments": "{\"action\":\"end_panels\"}"}}]},
        {"role": "tool", "tool_call_id": "panel_footer", "content": "Panel display complete. Proceeding with conversation."},
        {"role": "user", "content": "Hello!"},
        {"role": "assistant", "content": "Let me check that file.",
         "tool_calls": [{"id": "T1", "type": "function",
            "function": {"name": "Open", "arguments": "{\"path\":\"src/main.rs\"}"}}]},
        {"role": "tool", "tool_call_id": "T1", "content": "Opened 'src/main.rs' as P10"}
    ]);
    assert_eq!(body["messages"][0]["role"], "system");
    assert_eq!(body["messages"].as_array().unwrap()[2..], expected.as_array().unwrap()[..]);
}
