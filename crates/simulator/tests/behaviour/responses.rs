//! What only the Responses API has: stored answers, items with ids, compaction, its refusals.

use hardpan_models::Protocol;
use hardpan_providers::StopReason;
use serde_json::{Value, json};

use crate::providers::{TestProvider, body, both_providers, headers, in_process_provider, scripted};

const RESPONSES: Protocol = Protocol::OpenaiResponses;

/// Reasoning and two parallel calls, then an answer.
const SCRIPT: &str = "
turns:
  - {when: {has_tool_result: read}, text: Both are empty., repeat: always}
default:
  reasoning: Two files.
  text: Let me look.
  tool_calls:
    - {name: read, arguments: {path: a}, id: call_1}
    - {name: read, arguments: {path: b}, id: call_2}
";

fn provider() -> TestProvider {
    in_process_provider(scripted(SCRIPT))
}

/// A request to a model that reasons.
fn request(more: Value) -> Value {
    let mut request = body(RESPONSES, json!({"model": "gpt-6-luna", "reasoning": {"summary": "auto"}}));
    crate::providers::merge_fields(&mut request, more);
    request
}

async fn send(provider: &TestProvider, more: Value) -> Value {
    let got = provider.send(RESPONSES, &request(more)).await;
    let answer = got.json();
    assert_eq!(got.status, 200, "{answer}");
    answer
}

/// The status, message, param and code of a refusal.
async fn refusal(provider: &TestProvider, request: &Value) -> (u16, String, Value, Value) {
    let got = provider.send(RESPONSES, request).await;
    let error = got.json()["error"].clone();
    (
        got.status,
        error["message"].as_str().unwrap_or_default().to_owned(),
        error["param"].clone(),
        error["code"].clone(),
    )
}

fn hello() -> Value {
    json!({"role": "user", "content": "Hello!"})
}

fn results() -> [Value; 2] {
    ["call_1", "call_2"].map(|id| json!({"type": "function_call_output", "call_id": id, "output": "nothing"}))
}

#[tokio::test]
async fn an_answer_has_its_items_and_the_requests_effective_values() {
    let answer = send(&provider(), json!({})).await;
    let types: Vec<&str> =
        answer["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["reasoning", "message", "function_call", "function_call"]);
    assert_eq!((&answer["status"], &answer["service_tier"]), (&json!("completed"), &json!("default")));
    let reasoning =
        json!({"effort": "medium", "summary": "auto", "context": "all_turns", "mode": "standard"});
    assert_eq!(answer["reasoning"], reasoning);
    assert_eq!(answer["prompt_cache_options"], json!({"mode": "implicit", "ttl": "30m"}));
    assert_eq!(answer["output"][1]["phase"], "commentary");
    let usage = &answer["usage"];
    assert_eq!(
        usage["total_tokens"],
        json!(usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap())
    );
    assert!(usage["output_tokens_details"]["reasoning_tokens"].as_u64().unwrap() > 0);
    let older = send(&provider(), json!({"model": "gpt-5.4"})).await;
    assert_eq!((&older["reasoning"]["effort"], older.get("prompt_cache_options")), (&json!("none"), None));
    assert_eq!(older["output"][0]["type"], "message", "no reasoning without effort");
}

#[tokio::test]
async fn a_stream_has_every_event_in_order() {
    let got = provider().send(RESPONSES, &request(json!({"stream": true}))).await;
    let text = String::from_utf8(got.bytes.clone()).unwrap();
    let mut names = Vec::new();
    for (number, event) in text.split_terminator("\n\n").enumerate() {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(Some(name), data["type"].as_str().map(|name| format!("event: {name}")).as_deref());
        assert_eq!(data["sequence_number"], number);
        assert_eq!(data.get("obfuscation").is_some(), name.ends_with(".delta"), "{data}");
        names.push(name.strip_prefix("event: response.").unwrap().to_owned());
    }
    names.dedup(); // several deltas
    let call = [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ];
    let expected: Vec<&str> = [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    .into_iter()
    .chain(call)
    .chain(call)
    .chain(["completed"])
    .collect();
    assert_eq!(names, expected);
}

#[tokio::test]
async fn items_go_back_with_and_without_their_ids() {
    for keep_ids in [true, false] {
        let provider = provider();
        let first = send(&provider, json!({})).await;
        let mut input = vec![hello()];
        for item in first["output"].as_array().unwrap() {
            let mut item = item.clone();
            if !keep_ids {
                item.as_object_mut().unwrap().shift_remove("id");
            }
            input.push(item);
        }
        input.extend(results());
        let second = send(&provider, json!({"input": input})).await;
        assert_eq!(second["output"][0]["content"][0]["text"], "Both are empty.");
        assert_eq!(second["output"][0]["phase"], "final_answer");
    }
}

#[tokio::test]
async fn reasoning_belongs_to_what_follows_it() {
    let provider = provider();
    let first = send(&provider, json!({})).await;
    let output = first["output"].as_array().unwrap();
    let (reasoning, message) = (output[0]["id"].as_str().unwrap(), output[1]["id"].as_str().unwrap());
    let cases = [
        (
            vec![hello(), output[1].clone()],
            400,
            format!(
                "Item '{message}' of type 'message' was provided without its required 'reasoning' item: '{reasoning}'."
            ),
        ),
        (
            vec![hello(), output[0].clone()],
            400,
            format!(
                "Item '{reasoning}' of type 'reasoning' was provided without its required following item."
            ),
        ),
        (
            vec![hello(), json!({"type": "reasoning", "id": reasoning, "summary": []}), output[1].clone()],
            404,
            format!(
                "Item with id '{reasoning}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
            ),
        ),
        (
            vec![hello(), output[2].clone(), output[2].clone()],
            400,
            format!(
                "Duplicate item found with id {}. Remove duplicate items from your input and try again.",
                output[2]["id"].as_str().unwrap()
            ),
        ),
    ];
    for (input, status, message) in cases {
        let found = refusal(&provider, &request(json!({"input": input}))).await;
        assert_eq!(found, (status, message, json!("input"), Value::Null));
    }
    let forged =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAAforeign"});
    let found = refusal(
        &provider,
        &request(json!({"input": [hello(), forged, {"role": "assistant", "content": "x"}, hello()]})),
    )
    .await;
    assert_eq!(found.3, "invalid_encrypted_content");
}

#[tokio::test]
async fn stored_answers_are_found_and_forgotten() {
    let provider = provider();
    let first = send(&provider, json!({"store": true})).await;
    let id = first["id"].as_str().unwrap();
    let second =
        send(&provider, json!({"store": true, "previous_response_id": id, "input": results()})).await;
    assert_eq!(second["output"][0]["content"][0]["text"], "Both are empty.");
    assert_eq!(second["previous_response_id"], id);
    let third = send(&provider, json!({"previous_response_id": second["id"], "input": "More?"})).await;
    assert_eq!(third["output"][0]["type"], "reasoning");
    let reference = json!([hello(), {"type": "item_reference", "id": first["output"][0]["id"]}, {"type": "item_reference", "id": first["output"][1]["id"]}]);
    send(&provider, json!({"input": reference})).await;
    let unknown = refusal(&provider, &request(json!({"previous_response_id": third["id"]}))).await;
    let message = format!("Previous response with id '{}' not found.", third["id"].as_str().unwrap());
    let code = json!("previous_response_not_found");
    assert_eq!(unknown, (400, message, json!("previous_response_id"), code), "store: false");
    let [remote, _] = both_providers(|| scripted(SCRIPT)).await;
    let stored = send(&remote, json!({"store": true})).await;
    let path = format!("/v1/responses/{}", stored["id"].as_str().unwrap());
    assert_eq!(remote.get(&path, headers(RESPONSES)).await, (200, stored));
    let items = remote.get(&format!("{path}/input_items"), headers(RESPONSES)).await.1;
    assert_eq!(items["data"][0]["content"], "Hello!");
    let other = vec![("authorization".to_owned(), "Bearer other".to_owned())];
    assert_eq!(remote.get(&path, other).await.0, 404, "another key");
}

#[tokio::test]
async fn tokens_are_counted_and_conversations_compacted() {
    let provider = provider();
    let answer = send(&provider, json!({})).await;
    let bytes = |value: Value| value.to_string().into_bytes();
    let counted =
        provider.send_with("/responses/input_tokens", headers(RESPONSES), bytes(request(json!({})))).await;
    assert_eq!(
        counted.json(),
        json!({"object": "response.input_tokens", "input_tokens": answer["usage"]["input_tokens"]})
    );
    let compact = provider
        .send_with(
            "/responses/compact",
            headers(RESPONSES),
            bytes(
                json!({"model": "gpt-6-luna", "input": [hello(), {"role": "assistant", "content": "Hi."}]}),
            ),
        )
        .await
        .json();
    let types: Vec<&Value> = compact["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(
        (&compact["object"], types),
        (&json!("response.compaction"), vec![&json!("message"), &json!("compaction")])
    );
    for stream in [false, true] {
        let trigger = json!({"stream": stream, "input": [hello(), {"type": "compaction_trigger"}]});
        let got = provider.send(RESPONSES, &request(trigger)).await;
        let text = String::from_utf8(got.bytes).unwrap();
        assert!(text.contains(r#""type":"compaction""#) && !text.contains(r#""type":"message""#), "{text}");
    }
    let item = &compact["output"][1];
    send(&provider, json!({"input": [item, hello()]})).await;
    let early =
        refusal(&provider, &request(json!({"input": [{"type": "compaction_trigger"}, hello()]}))).await;
    assert_eq!(early.1, "The 'compaction_trigger' item must be the final input item.");
}

#[tokio::test]
async fn custom_tools_and_namespaces_are_called_in_their_own_form() {
    let yaml = "default: {tool_calls: [{name: patch, arguments: {input: '*** Begin'}}, {name: look, arguments: {}}]}";
    let provider = in_process_provider(scripted(yaml));
    let tools = json!([
        {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}},
        {"type": "namespace", "name": "eyes", "description": "Sees.", "tools": [{"type": "function", "name": "look", "strict": null}]},
    ]);
    // Codex declares its tools in an item.
    let added = json!({"type": "additional_tools", "role": "developer", "tools": tools});
    for more in [json!({"tools": tools}), json!({"tools": [], "input": [added, hello()]})] {
        let answer = send(&provider, more.clone()).await;
        let [patch, look] = &answer["output"].as_array().unwrap()[..] else { panic!("{answer}") };
        assert_eq!((&patch["type"], &patch["input"]), (&json!("custom_tool_call"), &json!("*** Begin")));
        assert_eq!((&look["type"], &look["namespace"]), (&json!("function_call"), &json!("eyes")));
        let output =
            json!({"type": "custom_tool_call_output", "call_id": patch["call_id"], "output": "done"});
        let seen = json!({"type": "function_call_output", "call_id": look["call_id"], "output": [{"type": "input_text", "text": "a wall"}]});
        let mut next = more;
        next["input"] = json!([added, hello(), patch, look, output, seen]);
        send(&provider, next).await;
    }
}

#[tokio::test]
async fn what_codex_sends_besides_is_accepted() {
    let more = json!({
        "stream": true,
        "client_metadata": {"a": "b"},
        "stream_options": {"reasoning_summary_delivery": "sequential_cutoff"},
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}], "internal_chat_message_metadata_passthrough": {}},
                  {"type": "reasoning", "summary": [], "content": null, "encrypted_content": null}],
    });
    let got = provider().send(RESPONSES, &request(more)).await;
    assert_eq!(got.status, 404, "reasoning without its content is the only mistake");
}

#[tokio::test]
async fn a_refusal_and_a_limit_end_an_answer() {
    for (yaml, status, stop) in [
        ("default: {text: No., stop: refusal}", "completed", StopReason::Refusal),
        ("default: {text: No., stop: length}", "incomplete", StopReason::Length),
    ] {
        let provider = in_process_provider(scripted(yaml));
        for stream in [false, true] {
            let got = provider.send(RESPONSES, &request(json!({"stream": stream}))).await;
            let answer = got.answer(RESPONSES);
            assert_eq!((answer.stop.as_ref(), answer.text().as_str()), (Some(&stop), "No."));
            assert!(String::from_utf8_lossy(&got.bytes).contains(&format!(r#""status":"{status}""#)));
        }
    }
}

#[tokio::test]
async fn the_servers_refusals_are_its_own() {
    let provider = provider();
    let long = "x".repeat(65);
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}});
    let strict =
        |schema: Value| json!([{"type": "function", "name": "f", "strict": true, "parameters": schema}]);
    let closed = json!({"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": false, "required": ["a"]});
    let cases: Vec<(Value, &str, Value, Value)> = vec![
        (
            json!({"cache_control": {}}),
            "Unknown parameter: 'cache_control'.",
            json!("cache_control"),
            json!("unknown_parameter"),
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": "x", "cache_control": {}}]}]}),
            "Unknown parameter: 'input[0].content[0].cache_control'.",
            json!("input[0].content[0].cache_control"),
            json!("unknown_parameter"),
        ),
        (
            json!({"max_output_tokens": 15}),
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 15 instead.",
            json!("max_output_tokens"),
            json!("integer_below_min_value"),
        ),
        (
            json!({"prompt_cache_key": long}),
            "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
            json!("prompt_cache_key"),
            json!("string_above_max_length"),
        ),
        (
            json!({"service_tier": "bogus"}),
            "Invalid value: 'bogus'. Supported values are: 'auto', 'default', 'fast', 'flex', and 'priority'.",
            json!("service_tier"),
            json!("invalid_value"),
        ),
        (
            json!({"reasoning": {"effort": "minimal"}}),
            "Unsupported value: 'minimal' is not supported with the 'gpt-6-luna' model. Supported values are: 'none', 'low', 'medium', 'high', 'xhigh', and 'max'.",
            json!("reasoning.effort"),
            json!("unsupported_value"),
        ),
        (
            json!({"temperature": 0.5}),
            "Unsupported parameter: 'temperature' is not supported with this model.",
            json!("temperature"),
            Value::Null,
        ),
        (
            json!({"input": [hello(), {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}]}),
            "No tool output found for function call call_1.",
            json!("input"),
            Value::Null,
        ),
        (
            json!({"input": [hello(), {"type": "function_call_output", "call_id": "call_1", "output": ""}]}),
            "No tool call found for function call output with call_id call_1.",
            json!("input"),
            Value::Null,
        ),
        (
            json!({"input": [{"type": "reasoning", "id": "item_1", "summary": []}]}),
            "Invalid 'input[0].id': 'item_1'. Expected an ID that begins with 'rs'.",
            json!("input[0].id"),
            json!("invalid_value"),
        ),
        (
            json!({"input": [{"type": "reasoning", "summary": [], "content": [{}]}]}),
            "Invalid 'input[0].content': array too long. Expected an array with maximum length 0, but got an array with length 1 instead.",
            json!("input[0].content"),
            json!("array_above_max_length"),
        ),
        (
            json!({"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]}),
            "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
            json!("input[0].content[0]"),
            json!("invalid_value"),
        ),
        (
            json!({"tool_choice": {"type": "web_search"}}),
            "Tool choice 'web_search' not found in 'tools' parameter.",
            json!("tool_choice"),
            Value::Null,
        ),
        (
            json!({"tools": [{"type": "function", "name": "f", "defer_loading": true}]}),
            "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.",
            json!("tools.defer_loading"),
            Value::Null,
        ),
        (
            json!({"tools": strict(schema)}),
            "Invalid schema for function 'f': In context=(), 'additionalProperties' is required to be supplied and to be false.",
            json!("tools[0].parameters"),
            json!("invalid_function_parameters"),
        ),
        (
            json!({"tools": strict(closed)}),
            "Invalid schema for function 'f': In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'b'.",
            json!("tools[0].parameters"),
            json!("invalid_function_parameters"),
        ),
        (
            json!({"text": {"format": {"type": "json_schema", "name": "x", "strict": true, "schema": {"type": "object", "properties": {"a": {}}}}}}),
            "Invalid schema for response_format 'x': In context=(), 'additionalProperties' is required to be supplied and to be false.",
            json!("text.format.schema"),
            json!("invalid_json_schema"),
        ),
        (
            json!({"text": {"format": {"type": "json_object"}}}),
            "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.",
            json!("input"),
            Value::Null,
        ),
        (
            json!({"model": "gpt-4o", "reasoning": null, "include": ["reasoning.encrypted_content"]}),
            "Encrypted content is not supported with this model.",
            json!("include"),
            Value::Null,
        ),
        (
            json!({"model": "gpt-5.5", "prompt_cache_options": {"mode": "explicit"}}),
            "prompt_cache_options is not supported on this model",
            Value::Null,
            json!("invalid_parameter"),
        ),
        (
            json!({"model": "gpt-5.5", "input": [{"role": "user", "content": [{"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}}]}]}),
            "prompt_cache_breakpoint is not supported on this model",
            Value::Null,
            json!("invalid_parameter"),
        ),
        (
            json!({"input": [hello(), {"type": "configuration_update", "reasoning": {"effort": "low"}}, {"type": "configuration_update", "reasoning": {"effort": "high"}}]}),
            "Consecutive 'configuration_update' items are not allowed.",
            json!("input"),
            Value::Null,
        ),
        (
            json!({"model": "gpt-5.6", "input": [hello(), {"type": "configuration_update", "reasoning": {"effort": "low"}}]}),
            "The 'configuration_update' item type is not supported with this model",
            json!("input"),
            Value::Null,
        ),
        (
            json!({"model": "gpt-5.6", "tools": [{"type": "function", "name": "f", "async": true}]}),
            "Unsupported parameter: 'tools[0].async' is not supported with this model.",
            json!("tools[0].async"),
            json!("unsupported_parameter"),
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_file", "filename": "a.pdf"}]}]}),
            "Missing required parameter: 'input[0].content[0].file_data'.",
            json!("input[0].content[0].file_data"),
            json!("missing_required_parameter"),
        ),
    ];
    for (more, message, param, code) in cases {
        let found = refusal(&provider, &request(more.clone())).await;
        assert_eq!(found, (400, message.to_owned(), param, code), "{more}");
    }
    let mut nameless = request(json!({}));
    nameless.as_object_mut().unwrap().shift_remove("model");
    let found = refusal(&provider, &nameless).await;
    assert_eq!(
        (found.1.as_str(), found.3),
        ("Missing required parameter: 'model'.", json!("missing_required_parameter"))
    );
    let none = json!({"reasoning": {"effort": "none"}, "temperature": 0.5, "top_p": 0.5});
    assert_eq!(provider.send(RESPONSES, &request(none)).await.status, 200, "nothing is reasoned");
    let file = json!({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="});
    let accepted = [
        json!({"input": [{"role": "user", "content": [file]}]}),
        json!({"model": "gpt-6-luna", "tools": [{"type": "function", "name": "read", "async": true}]}),
    ];
    for more in accepted {
        assert_eq!(provider.send(RESPONSES, &request(more.clone())).await.status, 200, "{more}");
    }
}
