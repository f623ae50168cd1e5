use hardpan_economy::cache::Moment;
use hardpan_models::Protocol;
use hardpan_prompt::MessagePart;
use hardpan_providers::{Answer, FailureKind, HttpResponse, ProviderError, StopReason};
use hardpan_simulator::{Engine, EngineSettings, RateLimits, Reply, Request, SignatureCheck};
use serde_json::{Value, json};

use crate::providers::{body, both_providers, headers, in_process_provider, path, scripted};

const SCRIPT: &str = r#"
default:
  reasoning: Both files may say it, so I read both of them.
  text: "Let me look at “größere” things, step by step."
  tool_calls:
    - {name: read, arguments: {path: src/a.rs, why: "said \"so\""}}
    - {name: read, arguments: {path: src/b.rs}, id: my_own_id}
"#;
const WHOLE: &str = "/models/gemini-3.5-flash:generateContent";
const LIST: &str = "/models/gemini-3.5-flash:streamGenerateContent";
const OLDER: &str = "/models/gemini-2.5-flash:generateContent";

fn request(more: Value) -> Vec<u8> {
    body(Protocol::Gemini, more).to_string().into_bytes()
}

/// Sends a request within the process.
fn send(engine: &Engine, method: &str, path: &str, body: &Value, now: i64) -> (u16, Value) {
    let headers = headers(Protocol::Gemini);
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let mut reply: Reply =
        engine.answer(&Request { method, path, headers: &headers, body: &body }, Moment(now));
    engine.commit_cache(&mut reply, Moment(now));
    (reply.status, serde_json::from_slice(&reply.body.bytes()).unwrap_or_default())
}

fn engine(settings: EngineSettings) -> Engine {
    Engine::new(settings)
}

fn user(text: &str) -> Value {
    json!({"role": "user", "parts": [{"text": text}]})
}

#[tokio::test]
async fn an_answer_is_the_same_streamed_listed_or_whole_over_http_or_not() {
    let mut answers: Vec<Answer> = Vec::new();
    for path in [path(Protocol::Gemini), LIST, WHOLE] {
        for provider in both_providers(|| scripted(SCRIPT)).await {
            let got = provider.send_with(path, headers(Protocol::Gemini), request(json!({}))).await;
            assert_eq!((got.status, &got.broken), (200, &None), "{path}");
            answers.push(got.answer(Protocol::Gemini));
        }
    }
    let first = &answers[0];
    assert_eq!((first.stop.as_ref(), first.parts().len()), (Some(&StopReason::ToolUse), 5), "{first:?}");
    assert!(matches!(&first.parts()[2], MessagePart::Reasoning { signature: Some(_), .. }), "{first:?}");
    let calls = first.calls();
    assert!(calls.iter().all(|call| call.runnable.is_ok()) && &*calls[1].call.id == "my_own_id");
    assert_eq!(calls[0].call.arguments.as_str(), r#"{"path":"src/a.rs","why":"said \"so\""}"#);
    let tokens = first.usage.as_ref().unwrap().tokens;
    assert!(tokens.prompt() > 10 && tokens.output > 30 && tokens.reasoning > Some(5), "{tokens:?}");
    assert!(answers.iter().all(|other| other == first), "{answers:?}");
}

#[tokio::test]
async fn a_stream_has_neither_names_nor_an_end_marker() {
    let provider = in_process_provider(scripted("default: {text: One two.}"));
    let got = provider.send_with(path(Protocol::Gemini), headers(Protocol::Gemini), request(json!({}))).await;
    let text = String::from_utf8(got.bytes).unwrap();
    let chunks: Vec<Value> = text
        .split_terminator("\r\n\r\n")
        .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
        .collect();
    assert_eq!(chunks.len(), 2, "{text}");
    assert_eq!(chunks[0]["candidates"][0]["content"]["parts"], json!([{"text": "One two."}]));
    let last = &chunks[1]["candidates"][0];
    assert_eq!((&last["finishReason"], &last["content"]["parts"][0]["text"]), (&json!("STOP"), &json!("")));
    assert!(last["content"]["parts"][0]["thoughtSignature"].is_string(), "{last}");
    let total = |chunk: &Value| chunk["usageMetadata"]["totalTokenCount"].as_u64().unwrap();
    assert!(total(&chunks[0]) < total(&chunks[1]));
}

#[test]
fn signatures_and_ids_are_the_models() {
    let parts = |path: &str, thinking: Value| {
        let engine = engine(scripted(SCRIPT));
        let config = json!({"generationConfig": {"thinkingConfig": thinking}});
        let (status, answer) = send(&engine, "POST", path, &body(Protocol::Gemini, config), 0);
        assert_eq!(status, 200, "{answer}");
        answer["candidates"][0]["content"]["parts"].as_array().unwrap().clone()
    };
    let signed = |parts: &[Value]| -> Vec<bool> {
        parts.iter().map(|part| part.get("thoughtSignature").is_some()).collect()
    };
    let newer = parts(WHOLE, json!({"includeThoughts": true}));
    assert_eq!(signed(&newer), [false, false, true, false], "the first call of the step");
    assert!(newer[2]["functionCall"]["id"].is_string());
    let older = parts(OLDER, json!({}));
    assert_eq!(signed(&older), [true, false, false], "the first part, and no thoughts are shown");
    assert_eq!(older[1]["functionCall"].get("id"), None);
    let without = parts(OLDER, json!({"thinkingBudget": 0}));
    assert_eq!(signed(&without), [false, false, false]);
}

/// A request that answers the calls of an answer.
fn follow_up(parts: &[Value]) -> Value {
    let calls = parts.iter().filter_map(|part| part.get("functionCall"));
    let responses: Vec<Value> = calls
        .map(|call| json!({"functionResponse": {"id": call["id"], "name": call["name"], "response": {"output": "x"}}}))
        .collect();
    let model = json!({"role": "model", "parts": parts});
    body(Protocol::Gemini, json!({"contents": [user("Hello!"), model, {"role": "user", "parts": responses}]}))
}

#[test]
fn the_first_call_of_a_step_comes_back_with_its_signature() {
    let engine = engine(scripted(SCRIPT));
    let ask = |body: &Value| {
        let (status, answer) = send(&engine, "POST", WHOLE, body, 0);
        (status, answer["error"]["message"].as_str().unwrap_or_default().to_owned())
    };
    let (_, answer) = send(&engine, "POST", WHOLE, &body(Protocol::Gemini, json!({})), 0);
    let parts = answer["candidates"][0]["content"]["parts"].as_array().unwrap().clone();
    assert_eq!(ask(&follow_up(&parts)).0, 200);
    let with = |signature: Value| {
        let mut parts = parts.clone();
        parts[2]["thoughtSignature"] = signature;
        follow_up(&parts)
    };
    let (status, message) = ask(&with(Value::Null));
    assert!(
        status == 400 && message.starts_with("Function call is missing a thought_signature"),
        "{message}"
    );
    assert_eq!(ask(&with(json!("AAAA"))), (400, "Corrupted thought signature.".to_owned()));
    let skips = [
        "skip_thought_signature_validator",
        "context_engineering_is_the_way_to_go",
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
        "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
    ];
    for skip in skips {
        assert_eq!(ask(&with(json!(skip))).0, 200, "{skip}");
    }
    // Only the current turn counts, and models before Gemini 3 do not insist.
    let mut earlier = with(Value::Null);
    earlier["contents"].as_array_mut().unwrap().push(user("And now?"));
    assert_eq!(ask(&earlier).0, 200);
    assert_eq!(send(&engine, "POST", OLDER, &with(Value::Null), 0).0, 200);
    // A signature is another model's elsewhere, unless nobody looks.
    let other = WHOLE.replace("3.5", "3.6");
    assert_eq!(send(&engine, "POST", &other, &follow_up(&parts), 0).0, 400);
    let settings = EngineSettings { signatures: SignatureCheck::Unchecked, ..scripted(SCRIPT) };
    assert_eq!(send(&Engine::new(settings), "POST", &other, &follow_up(&parts), 0).0, 200);
}

#[test]
fn requests_are_refused_in_googles_words() {
    let engine = engine(scripted("default: {text: Yes.}"));
    let call = |id: &str| json!({"functionCall": {"id": id, "name": "read", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"});
    let response = |id: &str| json!({"functionResponse": {"id": id, "name": "read", "response": {}}});
    let model = |parts: Value| json!({"role": "model", "parts": parts});
    let results = |parts: Value| json!({"role": "user", "parts": parts});
    let count = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
    let order = "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
    let contents = [
        (json!([user("x"), model(json!([call("a"), call("b")])), results(json!([response("a")]))]), count),
        (json!([user("x"), model(json!([call("a")])), user("y")]), count),
        (json!([user("x"), results(json!([response("a")]))]), count),
        (
            json!([
                user("x"),
                model(json!([{"text": "hm"}])),
                model(json!([call("a")])),
                results(json!([response("a")]))
            ]),
            order,
        ),
        (json!([model(json!([call("a")])), results(json!([response("a")]))]), order),
    ];
    for (contents, words) in contents {
        let (status, error) =
            send(&engine, "POST", WHOLE, &body(Protocol::Gemini, json!({"contents": contents})), 0);
        assert_eq!((status, error["error"]["status"].as_str()), (400, Some("INVALID_ARGUMENT")), "{error}");
        assert_eq!(error["error"]["message"].as_str(), Some(words), "{contents}");
    }
    let levels = json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "MINIMAL"}}});
    let minimal = body(Protocol::Gemini, levels);
    assert_eq!(send(&engine, "POST", WHOLE, &minimal, 0).0, 200);
    let without = WHOLE.replace("3.5", "3.8");
    assert_eq!(send(&engine, "POST", &without, &minimal, 0).0, 400, "3.8 has no MINIMAL");
    let off = body(Protocol::Gemini, json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}));
    assert_eq!(
        send(&engine, "POST", &OLDER.replace("flash", "pro"), &off, 0).0,
        400,
        "2.5-pro always thinks"
    );
    let (status, error) = send(&engine, "POST", LIST, &json!({}), 0);
    assert_eq!((status, error[0]["error"]["code"].as_u64()), (400, Some(400)), "{error}");
    let (status, error) =
        send(&engine, "POST", "/v1beta/models/gemini-3.5-flash:embedContent", &json!({}), 0);
    assert_eq!((status, error["error"]["status"].as_str()), (404, Some("NOT_FOUND")));
}

#[tokio::test]
async fn the_key_is_in_a_header_or_in_the_query() {
    for provider in both_providers(|| scripted("default: {text: Yes.}")).await {
        let none = provider
            .send_with(WHOLE, vec![("x-goog-api-client".into(), "x".into())], request(json!({})))
            .await;
        assert_eq!((none.status, none.json()["error"]["status"].as_str()), (403, Some("PERMISSION_DENIED")));
        let queried =
            provider.send_with(&format!("{WHOLE}?key=secret"), Vec::new(), request(json!({}))).await;
        assert_eq!(queried.status, 200);
    }
}

#[tokio::test]
async fn a_reached_limit_says_when_to_try_again() {
    let limits = RateLimits { requests: 0, ..RateLimits::default() };
    let provider = in_process_provider(EngineSettings { limits, ..scripted("default: {text: Yes.}") });
    let got = provider.send_with(WHOLE, headers(Protocol::Gemini), request(json!({}))).await;
    // The body says it as the header does.
    let head = HttpResponse {
        status: got.status,
        headers: Vec::new(),
        body: Box::pin(futures_util::stream::empty()),
    };
    let error = ProviderError::from_response(Protocol::Gemini, &head, &got.bytes);
    assert_eq!(error.failure, FailureKind::RateLimit);
    let seconds = error.retry_after.unwrap().as_secs();
    assert_eq!(got.header("retry-after"), Some(seconds.to_string().as_str()));
}

#[test]
fn a_prefix_is_cached_by_itself() {
    let engine = engine(scripted("default: {text: Yes.}"));
    let long = "The simulator counts every word of this sentence. ".repeat(600);
    let ask = |now: i64, path: &str| {
        let contents = json!([user(&long), {"role": "model", "parts": [{"text": "Yes."}]}, user("Go on.")]);
        let (status, answer) =
            send(&engine, "POST", path, &body(Protocol::Gemini, json!({"contents": contents})), now);
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["usageMetadata"].get("cacheTokensDetails"), None);
        answer["usageMetadata"]["cachedContentTokenCount"].as_u64().unwrap_or_default()
    };
    assert_eq!(ask(0, WHOLE), 0);
    assert!(ask(1000, WHOLE) > 4096);
    assert_eq!(ask(2000, OLDER), 0, "another model has a cache of its own");
    assert_eq!(ask(2000 + 301_000, WHOLE), 0, "after five minutes it is forgotten");
}

#[test]
fn stored_content_begins_a_request_until_it_expires() {
    let engine = engine(scripted("default: {text: Yes.}"));
    let long = "The simulator counts every word of this sentence. ".repeat(200);
    let content = json!({
        "model": "models/gemini-3.5-flash", "contents": [user(&long)], "ttl": "600s", "displayName": "long",
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
    });
    let (status, stored) = send(&engine, "POST", "/v1beta/cachedContents", &content, 0);
    assert_eq!(status, 200, "{stored}");
    let tokens = stored["usageMetadata"]["totalTokenCount"].as_u64().unwrap();
    let name = stored["name"].as_str().unwrap();
    let place = format!("/v1beta/{name}");
    let ask = |path: &str, more: Value, now: i64| {
        let mut body = json!({"contents": [user("Go on.")], "cachedContent": name});
        crate::providers::merge_fields(&mut body, more);
        send(&engine, "POST", path, &body, now)
    };
    let (status, answer) = ask(WHOLE, json!({}), 1000);
    assert_eq!((status, answer["usageMetadata"]["cachedContentTokenCount"].as_u64()), (200, Some(tokens)));
    assert!(answer["usageMetadata"]["promptTokenCount"].as_u64() > Some(tokens), "{answer}");
    assert_eq!(answer["usageMetadata"]["cacheTokensDetails"][0]["tokenCount"], tokens);

    let refused = |(status, answer): (u16, Value)| {
        (status, answer["error"]["message"].as_str().unwrap_or_default().to_owned())
    };
    let system = json!({"systemInstruction": {"parts": [{"text": "No."}]}});
    let (status, message) = refused(ask(WHOLE, system, 1000));
    assert!(status == 400 && message.starts_with("CachedContent can not be used with"), "{message}");
    let (status, message) = refused(ask(OLDER, json!({}), 1000));
    assert_eq!(
        (status, message.as_str()),
        (
            400,
            "Model used by GenerateContent request (models/gemini-2.5-flash) and CachedContent (models/gemini-3.5-flash) has to be the same."
        )
    );
    let short = json!({"model": "models/gemini-3.5-flash", "contents": [user("short")]});
    let (status, message) = refused(send(&engine, "POST", "/v1beta/cachedContents", &short, 0));
    assert!(status == 400 && message.contains("min_total_token_count=1024"), "{message}");

    assert_eq!(send(&engine, "GET", &place, &Value::Null, 1000).1["displayName"], "long");
    let (_, list) = send(&engine, "GET", "/v1beta/cachedContents", &Value::Null, 1000);
    assert_eq!(list["cachedContents"].as_array().unwrap().len(), 1);
    let (status, later) = send(&engine, "PATCH", &place, &json!({"ttl": "1200s"}), 1000);
    assert_eq!((status, later["expireTime"].as_str()), (200, Some("1970-01-01T00:20:01Z")), "{later}");
    assert_eq!(send(&engine, "PATCH", &place, &json!({"displayName": "x"}), 1000).0, 400);
    let gone = (403, "CachedContent not found (or permission denied)".to_owned());
    assert_eq!(refused(ask(WHOLE, json!({}), 1_201_001)), gone);
    assert_eq!(send(&engine, "DELETE", &place, &Value::Null, 1000).0, 200);
    assert_eq!(refused(send(&engine, "GET", &place, &Value::Null, 1000)), gone);
}

#[test]
fn models_and_tokens_are_told() {
    let engine = engine(scripted("default: {text: Yes.}"));
    let (_, list) = send(&engine, "GET", "/v1beta/models?pageSize=5", &Value::Null, 0);
    let models = list["models"].as_array().unwrap();
    assert!(models.iter().any(|model| model["name"] == "models/gemini-3.5-flash"), "{list}");
    let (_, model) = send(&engine, "GET", "/v1beta/models/gemini-3.5-flash", &Value::Null, 0);
    assert_eq!((&model["thinking"], &model["inputTokenLimit"]), (&json!(true), &json!(1_048_576)));
    let count = WHOLE.replace("generateContent", "countTokens");
    let contents = json!({"contents": [user("one two three")]});
    let (_, counted) = send(&engine, "POST", &count, &contents, 0);
    let (_, answer) = send(&engine, "POST", WHOLE, &contents, 0);
    assert_eq!(counted["totalTokens"], answer["usageMetadata"]["promptTokenCount"]);
}
