//! What the client expects to be billed is what the server bills, where the request decides how it
//! is cached: OpenAI's models with breakpoints, by both of its protocols.

use hardpan_context::{LayoutName, PromptTexts, RenderCache, SnapshotFile, Target, assemble};
use hardpan_economy::cache::{CacheModel, CacheRequest, CacheRules, Moment};
use hardpan_models::{Catalogue, Protocol, ThinkingSetting};
use hardpan_prompt::{Prompt, TokenUsage};
use hardpan_providers::{Answer, StreamDecoder, codec, encode};
use hardpan_simulator::{Engine, Request};
use serde_json::{Value, json};

use crate::providers::scripted;

const MODEL: &str = "gpt-5.6-luna";

/// The prompts of two turns. An item changes between them, and the conversation grows.
fn prompts(layout: LayoutName, target: &Target) -> [Prompt; 2] {
    let texts = PromptTexts::builtin().unwrap();
    let cache = RenderCache::new(target.vocabulary());
    let story = "It was a dark and stormy night. ".repeat(400);
    let said: Vec<Value> = vec![
        json!({"id": "m1", "role": "user", "content": story}),
        json!({"id": "m2", "role": "assistant", "content": "It was."}),
        json!({"id": "m3", "role": "user", "content": "Go on."}),
        json!({"id": "m4", "role": "assistant", "content": "The rain fell in torrents."}),
    ];
    [("m3", 2, "14:00"), ("m5", 4, "14:01")].map(|(id, count, time)| {
        let file = json!({
            "version": 1,
            "now": format!("2026-11-15T{time}:00Z"),
            "prompt": {"id": id, "text": "Go on."},
            "messages": said[..count],
        });
        let snapshot = SnapshotFile::parse("test", &file.to_string()).unwrap();
        let mut snapshot = snapshot.into_snapshot("test").unwrap();
        snapshot.thinking = ThinkingSetting::Off;
        assemble(&snapshot, layout, target, &texts, &cache).unwrap().prompt
    })
}

/// The amounts without what the answer costs.
fn input_side(usage: TokenUsage) -> TokenUsage {
    TokenUsage { output: 0, reasoning: None, ..usage }
}

#[test]
fn the_bill_is_the_one_that_was_expected() {
    let mut explicit = 0;
    for protocol in [Protocol::Openai, Protocol::OpenaiResponses] {
        for layout in LayoutName::ALL {
            let mut target = Target::new(Catalogue::builtin(), Some("openai"), MODEL).unwrap();
            target.profile.protocol = protocol;
            let engine = Engine::new(scripted("default: {text: Yes.}"));
            let rules = CacheRules::for_model(&target.model, &target.profile);
            let counter = hardpan_prompt::TokenCounter::new(target.vocabulary());
            let mut expected = CacheModel::new();
            for (turn, prompt) in prompts(layout, &target).into_iter().enumerate() {
                let now = Moment(turn as i64 * 60_000);
                let codec = codec(protocol);
                let headers = codec.headers(Some("key"));
                let headers: Vec<(String, String)> =
                    headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
                let body = encode(&prompt, &target.profile);
                explicit += usize::from(String::from_utf8_lossy(&body).contains("prompt_cache_options"));
                let path = format!("/v1{}", codec.request_path(&prompt.model));
                let request = Request { method: "POST", path: &path, headers: &headers, body: &body };
                let mut reply = engine.answer(&request, now);
                engine.commit_cache(&mut reply, now);
                let bytes = reply.body.bytes();
                assert_eq!(reply.status, 200, "{layout}: {}", String::from_utf8_lossy(&bytes));
                let answer: Answer = StreamDecoder::new(protocol).push(&bytes).into_iter().collect();
                let billed = input_side(answer.usage.unwrap().tokens);
                let sent = CacheRequest::from_prompt(&prompt, &counter.measure(&prompt), now);
                let forecast = expected.send(&rules, &sent, now);
                assert_eq!(billed, input_side(forecast.amounts), "{protocol:?} {layout} {turn}");
            }
        }
    }
    assert!(explicit > 0, "no request asked for its own markers only");
}
