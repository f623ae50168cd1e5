//! The targets of the random requests: every codec, every sort of marker, models that lack
//! something.

use hardpan_context::Target;
use hardpan_models::Catalogue;

/// From the built-in catalogue: provider, model.
const CATALOGUE_MODELS: [(&str, &str); 20] = [
    ("anthropic", "claude-sonnet-5"),
    ("anthropic", "claude-sonnet-5-5"), // system messages, bound reasoning, thinking between tools
    ("anthropic", "claude-opus-5-5"),   // always thinks
    ("anthropic", "claude-opus-4-8"),   // system messages, reasoning is not bound
    ("anthropic", "claude-sonnet-4-5"), // accepts a prefill, and thinks
    ("anthropic", "claude-3-haiku-20240307"), // accepts a prefill, and does not
    ("anthropic", "claude-opus-4-6"),   // caches from 4096 tokens on
    ("openai", "gpt-5.5"),              // the Responses API
    ("openai", "gpt-5.6"),              // the Responses API, with explicit breakpoints
    ("openai", "gpt-4.1"),
    ("openai", "gpt-4-0314"), // no tools, no images, the older vocabulary, a small window
    ("xai", "grok-4.5"),
    ("groq", "llama-3.3-70b-versatile"), // no images
    ("deepseek", "deepseek-v4-pro"),     // reasoning goes back in a field
    ("deepseek", "deepseek-reasoner"),   // no tools
    ("openrouter", "anthropic/claude-sonnet-4.5"),
    ("openrouter", "openai/gpt-oss-120b"),
    ("mistral", "codestral-latest"), // no tools, no images
    ("gemini", "gemini-3.5-flash"),  // signatures of calls, images in results
    ("gemini", "gemini-2.5-pro"),    // neither
];

/// What no listed model has: markers without tools, markers without images, a tiny window, message
/// ids.
const TEST_PROVIDERS: &str = r#"{
  "providers": [
    {"id": "house", "protocol": "anthropic", "base_url": "http://127.0.0.1:1/v1", "markers": "cache_control",
     "tool_result_images": true, "schemas": "all_required",
     "cache": {"kind": "markers", "min_tokens": 700, "max_markers": 4, "look_back": 20}},
    {"id": "ids", "protocol": "openai", "base_url": "http://127.0.0.1:2/v1", "markers": "cache_control",
     "message_ids": true, "document_context": true, "web_search_plugin": "web", "reasoning_field": "reasoning",
     "cache": {"kind": "markers", "min_tokens": 100, "max_markers": 4}}
  ],
  "models": [
    {"provider": "house", "id": "toolless", "tools": false, "vision": true, "reasoning": true, "prefill": false},
    {"provider": "house", "id": "blind", "tools": true, "vision": false, "token_factor": 0.8},
    {"provider": "house", "id": "tiny", "context": 9000, "max_output": 4000, "tools": true, "vision": true},
    {"provider": "ids", "id": "any", "tools": true, "vision": true, "reasoning": true}
  ]
}"#;

const TEST_MODELS: [(&str, &str); 4] =
    [("house", "toolless"), ("house", "blind"), ("house", "tiny"), ("ids", "any")];

/// All targets; the first is chosen most often.
pub fn all() -> Vec<Target> {
    let catalogue =
        Catalogue::builtin().with_user_file("own.json", TEST_PROVIDERS).expect("the catalogue of this test");
    let names = CATALOGUE_MODELS.iter().chain(&TEST_MODELS);
    names
        .map(|(provider, model)| Target::new(&catalogue, Some(provider), model).expect("a listed model"))
        .collect()
}
