use hardpan_models::{Catalogue, Protocol, ProviderProfile};
use hardpan_prompt::{Content, Effort, ItemKind, PromptMessage, Reasoning, Role, ToolOutcome};
use serde_json::{Value, json};

use super::*;
use crate::decode::text_block;
use crate::{block_addresses, codec, encode};

const PATH: &str = "/v1beta/models/gemini-3.5-flash:generateContent";

fn decode(body: &Value) -> Result<DecodedRequest, DecodeError> {
    decode_request(RequestKind::Answer, PATH, body.to_string().as_bytes())
}

/// The body of Google's own client after two parallel calls.
fn follow_up() -> Value {
    json!({"contents": [
        {"role": "user", "parts": [{"text": "read both files"}]},
        {"role": "model", "parts": [
            {"text": "Looking."},
            {"functionCall": {"id": "fc1", "name": "read_file", "args": {"file_path": "a.txt"}}, "thoughtSignature": "c2lnQQ=="},
            {"functionCall": {"id": "fc2", "name": "read_file", "args": {"file_path": "b.txt"}}},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"id": "fc1", "name": "read_file", "response": {"output": "hello\n"}}},
            {"functionResponse": {"id": "fc2", "name": "read_file", "response": {"error": "no"}}},
        ]},
    ]})
}

#[test]
fn the_path_names_model_and_method() {
    let decode = |path: &str| decode_request(RequestKind::Answer, path, follow_up().to_string().as_bytes());
    let whole = decode(PATH).unwrap();
    assert_eq!((&*whole.prompt.model, whole.stream, whole.json_array), ("gemini-3.5-flash", false, false));
    let vertex = "/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?alt=sse&key=k";
    let streamed = decode(vertex).unwrap();
    assert_eq!((&*streamed.prompt.model, streamed.stream, streamed.json_array), ("m", true, false));
    let listed = decode("/models/m:streamGenerateContent").unwrap();
    assert_eq!((listed.stream, listed.json_array), (true, true));
}

#[test]
fn calls_results_and_signatures_are_read() {
    let prompt = decode(&follow_up()).unwrap().prompt;
    let kinds = |message: &PromptMessage| -> Vec<String> {
        let kind = |content: &Content| match content {
            Content::Text(_) => "text".to_owned(),
            Content::Reasoning(Reasoning { signature, .. }) => {
                format!("signature {}", signature.as_deref().unwrap())
            }
            Content::Call(call) => format!("call {}", call.id),
            Content::Result(result) => format!(
                "{} of {}",
                if result.outcome == ToolOutcome::Failed { "failure" } else { "result" },
                result.call_id
            ),
            Content::Image(..) => "image".to_owned(),
            Content::ToolChange(_) => "change of a tool".to_owned(),
            Content::Provider(_) => "search".to_owned(),
        };
        message.blocks.iter().map(|block| kind(&block.content)).collect()
    };
    assert_eq!(kinds(&prompt.messages[1]), ["text", "signature c2lnQQ==", "call fc1", "call fc2"]);
    assert_eq!(kinds(&prompt.messages[2]), ["result of fc1", "failure of fc2"]);
}

#[test]
fn snake_case_is_the_same_request() {
    let snake = json!({
        "system_instruction": {"parts": [{"text": "s"}]},
        "generation_config": {"max_output_tokens": 5, "thinking_config": {"include_thoughts": true, "thinking_level": "low"}},
        "contents": [
            {"role": "user", "parts": [{"text": "x"}]},
            {"role": "model", "parts": [{"function_call": {"name": "f", "args": {"a_b": 1}}, "thought_signature": "cw=="}]},
            {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"out_put": 1}}}]},
        ],
    });
    let camel = json!({
        "systemInstruction": {"parts": [{"text": "s"}]},
        "generationConfig": {"maxOutputTokens": 5, "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "LOW"}},
        "contents": [
            {"role": "user", "parts": [{"text": "x"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a_b": 1}}, "thoughtSignature": "cw=="}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"out_put": 1}}}]},
        ],
    });
    let decoded = decode(&snake).unwrap();
    assert_eq!(decoded, decode(&camel).unwrap());
    assert_eq!((decoded.prompt.effort, decoded.include_thoughts), (Some(Effort::Low), true));
    let Content::Result(result) = &*decoded.prompt.messages[2].blocks[0].content else {
        panic!("{decoded:?}")
    };
    assert_eq!(*result.call_id, *"call_1_0", "the only call is meant");
}

#[test]
fn refusals_are_in_googles_words() {
    let user = || json!([{"role": "user", "parts": [{"text": "x"}]}]);
    let config = |config: Value| json!({"contents": user(), "generationConfig": config});
    let part = |part: Value| json!({"contents": [{"role": "user", "parts": [part]}]});
    let function =
        |function: Value| json!({"contents": user(), "tools": [{"functionDeclarations": [function]}]});
    let table = [
        (json!({}), "* GenerateContentRequest.contents: contents is not specified\n"),
        (json!({"contents": []}), "* GenerateContentRequest.contents: contents is not specified\n"),
        (
            json!({"contents": user(), "messages": []}),
            "Invalid JSON payload received. Unknown name \"messages\": Cannot find field.",
        ),
        (
            config(json!({"maxTokens": 5})),
            "Invalid JSON payload received. Unknown name \"maxTokens\" at 'generation_config': Cannot find field.",
        ),
        (
            config(json!({"maxOutputTokens": "many"})),
            "Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), \"many\"",
        ),
        (
            config(json!({"thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": 5}})),
            "You can only set only one of thinking budget and thinking level.",
        ),
        (
            config(json!({"thinkingConfig": {"thinkingLevel": "HUGE"}})),
            "Invalid value at 'generation_config.thinking_config.thinking_level' (TYPE_ENUM), \"HUGE\"",
        ),
        (
            json!({"contents": [{"role": "system", "parts": [{"text": "x"}]}]}),
            "Please use a valid role: user, model.",
        ),
        (
            json!({"contents": [{"role": "user", "parts": []}]}),
            "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.\n",
        ),
        (
            part(json!({"thought": true})),
            "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one initialized field\n",
        ),
        (
            part(json!({"text": "x", "inlineData": {"mimeType": "image/png", "data": "AAAA"}})),
            "Invalid value at 'contents[0].parts[0]' (oneof), oneof field 'data' is already set. Cannot set 'inlineData'",
        ),
        (part(json!({"text": 5})), "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 5"),
        (
            part(json!({"functionCall": {"name": "f", "args": []}})),
            "Invalid value at 'contents[0].parts[0].function_call.args' (TYPE_MESSAGE), []",
        ),
        (
            part(json!({"text": "x", "thoughtSignature": "no base64!"})),
            "Invalid value at 'contents[0].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for \"no base64!\"",
        ),
        (
            function(json!({"name": "f", "parameters": {"type": "OBJECT", "properties": {}}})),
            "* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties: should be non-empty for OBJECT type\n",
        ),
        (
            json!({"contents": user(), "toolConfig": {"functionCallingConfig": {"mode": "SOMETIMES"}}}),
            "Invalid value at 'tool_config.function_calling_config.mode' (TYPE_ENUM), \"SOMETIMES\"",
        ),
    ];
    for (body, words) in table {
        assert_eq!(decode(&body).unwrap_err().to_string(), words, "{body}");
    }
}

#[test]
fn tokens_are_counted_of_contents_or_of_a_whole_request() {
    let count = |body: Value| {
        decode_request(RequestKind::Count, "/models/m:countTokens", body.to_string().as_bytes())
    };
    let contents = json!([{"parts": [{"text": "x"}]}]);
    assert_eq!(count(json!({"contents": contents})).unwrap().prompt.messages.len(), 1);
    let whole = json!({"generateContentRequest": {"model": "models/m", "contents": contents, "systemInstruction": {"parts": [{"text": "s"}]}}});
    assert_eq!(count(whole).unwrap().prompt.system.len(), 1);
}

#[test]
fn thinking_is_asked_for_in_the_form_that_the_model_takes() {
    let config = |model: &str, thinking: Thinking, effort: Option<Effort>| -> Value {
        let model = Catalogue::builtin().model(Some("gemini"), model).unwrap();
        let profile = Catalogue::builtin().provider("gemini").unwrap().profile_for_model(&model);
        let messages = vec![PromptMessage::new(Role::User, vec![text_block("x", ItemKind::History)])];
        let prompt =
            hardpan_prompt::Prompt { max_tokens: 9, thinking, effort, messages, ..Default::default() };
        let body: Value = serde_json::from_slice(&encode(&prompt, &profile)).unwrap();
        body["generationConfig"]["thinkingConfig"].clone()
    };
    let high = Some(Effort::High);
    assert_eq!(
        config("gemini-3.5-flash", Thinking::Unspecified, high),
        json!({"thinkingLevel": "HIGH", "includeThoughts": true})
    );
    assert_eq!(
        config("gemini-2.5-pro", Thinking::Budget(512), None),
        json!({"thinkingBudget": 512, "includeThoughts": true})
    );
    assert_eq!(config("gemini-2.5-flash", Thinking::Disabled, None), json!({"thinkingBudget": 0}));
    assert_eq!(config("gemini-2.5-flash", Thinking::Unspecified, None), json!({"includeThoughts": true}));
    assert_eq!(config("gemma-3-27b-it", Thinking::Unspecified, None), Value::Null, "it does not think");
}

#[test]
fn addresses_name_the_parts_that_carry_the_blocks() {
    let profile =
        ProviderProfile { protocol: Protocol::Gemini, signed_calls: true, ..ProviderProfile::default() };
    let mut prompt = decode(&follow_up()).unwrap().prompt;
    prompt.messages[2].blocks.push(text_block("and now?", ItemKind::History));
    let addresses = block_addresses(&prompt, &profile);
    let expected = [
        "0].parts[0]",
        "1].parts[0]",
        "1].parts[1]",
        "1].parts[1]",
        "1].parts[2]",
        "2].parts[0]",
        "2].parts[1]",
        "3].parts[0]",
    ];
    assert_eq!(addresses, expected.map(|end| format!("contents[{end}")));
    let body: Value = serde_json::from_slice(&encode(&prompt, &profile)).unwrap();
    assert_eq!(body["contents"][3], json!({"role": "user", "parts": [{"text": "and now?"}]}));
    let each: Vec<Value> = prompt
        .messages
        .iter()
        .flat_map(|message| codec(Protocol::Gemini).encode_message(&prompt, message, &profile))
        .map(|message| serde_json::from_str(message.get()).unwrap())
        .collect();
    assert_eq!(body["contents"], Value::Array(each), "messages by themselves are the same");
}
