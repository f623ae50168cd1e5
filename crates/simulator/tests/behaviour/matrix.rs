//! What Hardpan sends is accepted: every model of every provider, every thinking setting, every
//! layout.

use hardpan_context::{LayoutName, PromptTexts, RenderCache, Snapshot, SnapshotFile, Target, assemble};
use hardpan_economy::cache::Moment;
use hardpan_models::{Catalogue, ThinkingSetting};
use hardpan_providers::{RequestContext, codec, encode};
use hardpan_simulator::{Engine, EngineSettings, Request};
use serde_json::{Value, json};

use crate::providers::scripted;

const SETTINGS: [&str; 10] =
    ["default", "off", "minimal", "low", "medium", "high", "xhigh", "max", "2000", "30000"];

fn snapshot(thinking: ThinkingSetting) -> Snapshot {
    let file = json!({
        "version": 1,
        "now": "2026-11-15T14:00:00Z",
        "prompt": {"id": "m3", "text": "What next?"},
        "messages": [
            {"id": "m1", "role": "user", "content": "What does main do?"},
            {"id": "m2", "role": "assistant", "content": "It prints a greeting."},
        ],
        "tools": [{"name": "read", "description": "Reads a file.", "parameters": {"type": "object", "properties": {}}}],
    });
    let mut snapshot = SnapshotFile::parse("test", &file.to_string()).unwrap().into_snapshot("test").unwrap();
    snapshot.thinking = thinking;
    snapshot
}

#[test]
fn every_model_takes_what_is_sent_to_it() {
    let catalogue = Catalogue::builtin();
    let texts = PromptTexts::builtin().unwrap();
    let engine =
        Engine::new(EngineSettings { openai_provider: "none".into(), ..scripted("default: {text: Yes.}") });
    let mut refused = Vec::new();
    let mut sent = 0;
    for model in catalogue.models().filter(|model| !model.gone) {
        let mut target = Target::new(catalogue, Some(&model.provider), &model.id).unwrap();
        target.max_tokens = model.max_tokens_limit();
        let cache = RenderCache::new(target.vocabulary());
        for word in SETTINGS {
            let snapshot = snapshot(word.parse().unwrap());
            for layout in LayoutName::ALL {
                // A budget that does not fit the answer is an error before anything is sent.
                let Ok(assembled) = assemble(&snapshot, layout, &target, &texts, &cache) else { continue };
                let (prompt, profile) = (&assembled.prompt, &target.profile);
                let mut body: Value = serde_json::from_slice(&encode(prompt, profile)).unwrap();
                let codec = codec(profile.protocol);
                let context = RequestContext { usual_address: true, ..RequestContext::default() };
                let extras = codec.request_extras(prompt, profile, &context);
                for (name, value) in extras.fields {
                    body[name] = value;
                }
                // The simulator finds the provider by the model's name.
                body["model"] = json!(format!("{}/{}", model.provider, model.id));
                let mut headers: Vec<(String, String)> = Vec::new();
                for (name, value) in extras.headers.into_iter().chain(codec.headers(Some("key"))) {
                    if headers.iter().all(|(known, _)| known != name) {
                        headers.push((name.to_owned(), value));
                    }
                }
                let path = format!("/v1{}", codec.request_path(&prompt.model));
                let bytes = body.to_string();
                let request =
                    Request { method: "POST", path: &path, headers: &headers, body: bytes.as_bytes() };
                let reply = engine.answer(&request, Moment(0));
                sent += 1;
                if reply.status != 200 {
                    let words = String::from_utf8_lossy(&reply.body.bytes()).into_owned();
                    refused.push(format!("{} {word} {layout:?}: {words}", model.name()));
                }
            }
        }
    }
    assert!(sent > 5000, "{sent}");
    assert!(
        refused.is_empty(),
        "{} of {sent}, such as {:#?}",
        refused.len(),
        &refused[..refused.len().min(12)]
    );
}
