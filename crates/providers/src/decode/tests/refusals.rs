//! Bodies that are rejected, with the exact error messages.

use hardpan_models::Protocol;
use serde_json::{Value, json};

use crate::decode::{DecodeError, DecodeErrorKind, decode_request};

fn refusal(protocol: Protocol, body: &Value) -> DecodeError {
    match decode_request(protocol, body.to_string().as_bytes()) {
        Err(error) => error,
        Ok(decoded) => panic!("{body} was taken: {decoded:?}"),
    }
}

/// A body with one field set or, by null, taken away.
fn with(mut body: Value, key: &str, value: Value) -> Value {
    let object = body.as_object_mut().unwrap();
    if value.is_null() {
        object.shift_remove(key)
    } else {
        object.insert(key.to_owned(), value)
    };
    body
}

fn anthropic(key: &str, value: Value) -> DecodeError {
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]});
    refusal(Protocol::Anthropic, &with(body, key, value))
}

fn openai(key: &str, value: Value) -> DecodeError {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
    refusal(Protocol::Openai, &with(body, key, value))
}

#[test]
fn anthropics_words_for_a_field() {
    let tool = |more: Value| {
        let mut tool = json!({"name": "t", "input_schema": {"type": "object"}});
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([tool])
    };
    for (key, value, message) in [
        ("model", json!(null), "model: Field required"),
        ("messages", json!(null), "messages: Field required"),
        ("max_tokens", json!(null), "max_tokens: Field required"),
        ("messages", json!("x"), "messages: Input should be a valid list"),
        ("max_tokens", json!("9"), "max_tokens: Input should be a valid integer"),
        ("max_tokens", json!(9.5), "max_tokens: Input should be a valid integer"),
        ("max_tokens", json!(-1), "max_tokens: Input should be greater than or equal to 0"),
        ("temperature", json!(1.5), "temperature: Input should be less than or equal to 1"),
        ("stream", json!("yes"), "stream: Input should be a valid boolean"),
        ("system", json!(5), "system: Input should be a valid list"),
        ("system", json!([{"type": "image"}]), "system.0.type: Input should be 'text'"),
        ("system", json!([{"type": "text"}]), "system.0.text: Field required"),
        ("foo", json!(1), "foo: Extra inputs are not permitted"),
        ("tools", tool(json!({"input_schema": {}})), "tools.0.custom.input_schema.type: Field required"),
        ("tools", json!([{"name": "t"}]), "tools.0.custom.input_schema: Field required"),
        ("tools", tool(json!({"function": {}})), "tools.0.custom.function: Extra inputs are not permitted"),
        (
            "tools",
            tool(json!({"cache_control": {"type": "ephemeral", "ttl": "1d"}})),
            "tools.0.custom.cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
        ),
        ("thinking", json!({"type": "enabled"}), "thinking.enabled.budget_tokens: Field required"),
        (
            "thinking",
            json!({"type": "on"}),
            "thinking: Input tag 'on' found using 'type' does not match any of the expected tags: 'adaptive', 'between_tools', 'disabled', 'enabled'",
        ),
        (
            "thinking",
            json!(true),
            "thinking: Input should be a valid dictionary or object to extract fields from",
        ),
        (
            "tool_choice",
            json!({"type": "any"}),
            "tool_choice: tool_choice may only be specified while providing tools.",
        ),
        (
            "output_config",
            json!({"effort": "much"}),
            "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
        ),
    ] {
        assert_eq!(anthropic(key, value).message, message);
    }
}

#[test]
fn anthropics_words_for_a_message() {
    for (message, expected) in [
        (json!({"content": "x"}), "messages.0.role: Field required"),
        (json!({"role": "user"}), "messages.0.content: Field required"),
        (
            json!({"role": "tool", "content": "x"}),
            "messages.0.role: Input should be 'user', 'assistant' or 'system'",
        ),
        (json!({"role": "user", "content": null}), "messages.0.content: Input should be a valid list"),
        (json!({"role": "user", "content": "x", "id": "m"}), "messages.0.id: Extra inputs are not permitted"),
        (
            json!({"role": "user", "content": "x", "clear_at": "next_user_message"}),
            "messages.0.clear_at: Extra inputs are not permitted",
        ),
        (
            json!({"role": "system", "content": "x", "clear_at": "soon"}),
            "messages.0.clear_at: Input should be 'next_user_message' or 'never'",
        ),
        (
            json!({"role": "system", "content": [], "output_config": {"format": {}}}),
            "messages.0.output_config.format: Extra inputs are not permitted",
        ),
        (json!("x"), "messages.0: Input should be a valid dictionary or object to extract fields from"),
    ] {
        assert_eq!(anthropic("messages", json!([message])).message, expected);
    }
}

#[test]
fn anthropics_words_for_a_block() {
    let source = |media_type: &str, data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}});
    for (block, expected) in [
        (json!({"type": "text"}), "text.text: Field required"),
        (json!({"type": "text", "text": null}), "text.text: Input should be a valid string"),
        (json!({"type": "text", "text": "x", "foo": 1}), "text.foo: Extra inputs are not permitted"),
        (
            json!({"type": "tool_use", "id": "i", "name": "n", "input": "{}"}),
            "tool_use.input: Input should be a valid dictionary",
        ),
        (json!({"type": "tool_use", "id": "i", "name": "n"}), "tool_use.input: Field required"),
        (json!({"type": "tool_result", "content": "x"}), "tool_result.tool_use_id: Field required"),
        (
            json!({"type": "tool_result", "tool_use_id": "i", "content": [{"type": "text"}]}),
            "tool_result.content.0.text.text: Field required",
        ),
        (json!({"type": "thinking", "thinking": "hm"}), "thinking.signature: Field required"),
        (
            json!({"type": "thinking", "thinking": "hm", "signature": "s", "cache_control": {"type": "ephemeral"}}),
            "thinking.cache_control: Extra inputs are not permitted",
        ),
        (
            source("image/bmp", "AAAA"),
            "image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
        ),
        (source("image/png", "not base64"), "image.source.base64.data: Invalid base64 data"),
        (
            json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "scope": "all"}}),
            "text.cache_control.ephemeral.scope: Extra inputs are not permitted",
        ),
    ] {
        let error = anthropic(
            "messages",
            json!([{"role": "user", "content": [{"type": "text", "text": "x"}, block]}]),
        );
        assert_eq!(error.message, format!("messages.0.content.1.{expected}"));
    }
    let unknown = anthropic("messages", json!([{"role": "user", "content": [{"type": "image_url"}]}]));
    assert!(
        unknown.message.starts_with("messages.0.content.0: Input tag 'image_url' found using 'type'"),
        "{unknown}"
    );
    let untyped = anthropic("messages", json!([{"role": "user", "content": [{"text": "x"}]}]));
    assert_eq!(untyped.message, "messages.0.content.0: Unable to extract tag using discriminator 'type'");
}

#[test]
fn openais_words_param_and_code() {
    /// A field and its value; message, `param` and `code` of the refusal.
    type Case = (&'static str, Value, &'static str, Option<&'static str>, Option<&'static str>);
    let tools = json!([{"type": "function", "function": {}}]);
    let cases: [Case; 15] = [
        (
            "messages",
            json!(null),
            "Missing required parameter: 'messages'.",
            Some("messages"),
            Some("missing_required_parameter"),
        ),
        ("model", json!(null), "you must provide a model parameter", None, None),
        (
            "messages",
            json!("x"),
            "Invalid type for 'messages': expected an array of objects, but got a string instead.",
            Some("messages"),
            Some("invalid_type"),
        ),
        (
            "messages",
            json!([]),
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            Some("messages"),
            Some("empty_array"),
        ),
        ("foo", json!(1), "Unrecognized request argument supplied: foo", None, None),
        (
            "max_tokens",
            json!("9"),
            "Invalid type for 'max_tokens': expected an integer, but got a string instead.",
            Some("max_tokens"),
            Some("invalid_type"),
        ),
        (
            "max_tokens",
            json!(0),
            "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.",
            Some("max_tokens"),
            Some("integer_below_min_value"),
        ),
        (
            "temperature",
            json!(3),
            "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
            Some("temperature"),
            Some("decimal_above_max_value"),
        ),
        (
            "stream",
            json!(1),
            "Invalid type for 'stream': expected a boolean, but got an integer instead.",
            Some("stream"),
            Some("invalid_type"),
        ),
        (
            "tools",
            json!([]),
            "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            Some("tools"),
            Some("empty_array"),
        ),
        (
            "tools",
            tools,
            "Missing required parameter: 'tools[0].function.name'.",
            Some("tools[0].function.name"),
            Some("missing_required_parameter"),
        ),
        (
            "tool_choice",
            json!("auto"),
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
            Some("tool_choice"),
            None,
        ),
        (
            "stream_options",
            json!({}),
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            Some("stream_options"),
            None,
        ),
        (
            "stop",
            json!(["a", "b", "c", "d", "e"]),
            "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 5 instead.",
            Some("stop"),
            Some("array_above_max_length"),
        ),
        (
            "prompt_cache_options",
            json!({"mode": "no"}),
            "Invalid value: 'no'. Supported values are: 'implicit' and 'explicit'.",
            Some("prompt_cache_options.mode"),
            Some("invalid_value"),
        ),
    ];
    for (key, value, message, param, code) in cases {
        let error = openai(key, value);
        assert_eq!((error.message.as_str(), error.param.as_deref(), error.code), (message, param, code));
    }
    let both = refusal(Protocol::Openai, &json!({"model": "m", "messages": [], "b": 1, "a": 1}));
    assert_eq!(both.message, "Unrecognized request arguments supplied: a, b");
}

#[test]
fn openais_words_for_a_message() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}});
    let picture =
        |picture: Value| json!({"role": "user", "content": [{"type": "image_url", "image_url": picture}]});
    for (message, expected, param) in [
        (json!({"content": "x"}), "Missing required parameter: 'messages[0].role'.", "messages[0].role"),
        (
            json!({"role": "user"}),
            "Missing required parameter: 'messages[0].content'.",
            "messages[0].content",
        ),
        (
            json!({"role": "bot", "content": "x"}),
            "Invalid value: 'bot'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
            "messages[0].role",
        ),
        (
            json!({"role": "function", "name": "f", "content": "x"}),
            "Unsupported value: 'messages[0].role' does not support 'function' with this model.",
            "messages[0].role",
        ),
        (
            json!({"role": "user", "content": {}}),
            "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got an object instead.",
            "messages[0].content",
        ),
        (
            json!({"role": "user", "content": ["x"]}),
            "Invalid type for 'messages[0].content[0]': expected an object, but got a string instead.",
            "messages[0].content[0]",
        ),
        (
            json!({"role": "user", "content": [{"text": "x"}]}),
            "Missing required parameter: 'messages[0].content[0].type'.",
            "messages[0].content[0].type",
        ),
        (
            json!({"role": "assistant", "content": null}),
            "Invalid value for 'content': expected a string, got null.",
            "messages[0].content",
        ),
        (
            json!({"role": "assistant", "content": "x", "tool_calls": null}),
            "Invalid type for 'messages[0].tool_calls': expected an array of objects, but got null instead.",
            "messages[0].tool_calls",
        ),
        (
            json!({"role": "assistant", "tool_calls": [call]}),
            "Invalid type for 'messages[0].tool_calls[0].function.arguments': expected a string, but got an object instead.",
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            json!({"role": "tool", "content": "x"}),
            "Missing required parameter: 'messages[0].tool_call_id'.",
            "messages[0].tool_call_id",
        ),
        (
            json!({"role": "user", "content": "x", "foo": 1}),
            "Unknown parameter: 'messages[0].foo'.",
            "messages[0].foo",
        ),
        (
            picture(json!("data:")),
            "Invalid type for 'messages[0].content[0].image_url': expected an object, but got a string instead.",
            "messages[0].content[0].image_url",
        ),
        (
            picture(json!({"url": "x.png"})),
            "Invalid value for 'messages[0].content[0].image_url.url': expected an http(s) address or a base64-encoded data URL with an image MIME type",
            "messages[0].content[0].image_url.url",
        ),
    ] {
        let error = openai("messages", json!([message]));
        assert_eq!((error.message.as_str(), error.param.as_deref()), (expected, Some(param)));
    }
}

#[test]
fn what_is_no_json_is_said_to_be_none() {
    let error = decode_request(Protocol::Anthropic, b"{\n\"model\": }").unwrap_err();
    assert_eq!(
        error.message,
        "The request body is not valid JSON: expected value: line 2 column 10 (char 11)"
    );
    assert_eq!((error.kind, error.path.as_str()), (DecodeErrorKind::InvalidJson, ""));
    let error = decode_request(Protocol::Openai, b"").unwrap_err();
    assert!(error.message.starts_with("We could not parse the JSON body of your request."), "{error}");
    let error = decode_request(Protocol::Anthropic, b"[]").unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::WrongType);
}
