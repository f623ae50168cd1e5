//! A server of 2025 refuses what is new one by one, and the client goes on without it.

use std::sync::Arc;

use hardpan_context::without_newer_fields;
use hardpan_models::Catalogue;
use hardpan_prompt::{Block, Effort, ItemKind, Origin, Prompt, PromptMessage, Region, Role, Thinking};
use hardpan_providers::{
    ApiKey, CapabilityCache, Client, ClientEvent, ClientNotice, ClientRequest, Endpoint, PromptFallbacks,
    RetryPolicy, UnsupportedFeature,
};
use hardpan_simulator::{AnthropicSettings, EngineSettings, KnownFields};

use crate::providers::{both_providers, scripted};

const MODEL: &str = "claude-sonnet-5-5";

struct PlainPrompt;

impl PromptFallbacks for PlainPrompt {
    fn without_newer_fields(&self, prompt: &Prompt) -> Prompt {
        without_newer_fields(prompt)
    }
    fn without_tools(&self, prompt: &Prompt) -> Prompt {
        prompt.clone()
    }
    fn without_images(&self, prompt: &Prompt) -> Prompt {
        prompt.clone()
    }
}

/// A prompt with everything that is new: bound and shown thinking, effort, a system message.
fn prompt() -> Prompt {
    let text = |text: &str| {
        let origin = Origin::rule(ItemKind::History, "test");
        vec![Block::text(Region::Log, text.into(), origin)]
    };
    Prompt {
        model: MODEL.into(),
        max_tokens: 1000,
        thinking: Thinking::Adaptive,
        effort: Some(Effort::Low),
        drop_stale_reasoning: true,
        messages: vec![
            PromptMessage::new(Role::User, text("Hello!")),
            PromptMessage::new(Role::System, text("Be brief.")),
        ],
        ..Prompt::default()
    }
}

async fn features_left_out(client: &Client) -> Vec<UnsupportedFeature> {
    let catalogue = Catalogue::builtin();
    let model = catalogue.model(Some("anthropic"), MODEL).unwrap();
    let profile = catalogue.provider("anthropic").unwrap().profile_for_model(&model);
    let prompt = prompt();
    let request = ClientRequest {
        prompt: &prompt,
        profile: &profile,
        provider: "anthropic",
        fallbacks: &PlainPrompt,
        previous_answer: None,
        now_ms: 0,
    };
    let mut left_out = Vec::new();
    let mut stream = client.send(request);
    while let Some(event) = stream.next_event().await {
        if let ClientEvent::Notice(ClientNotice::Downgrade { feature, .. }) = event.unwrap() {
            left_out.push(feature);
        }
    }
    assert_eq!(stream.into_answer().text(), "Yes.");
    left_out
}

#[tokio::test]
async fn what_an_older_server_refuses_is_left_out_and_remembered() {
    for fields in [KnownFields::Current, KnownFields::Older] {
        let anthropic = AnthropicSettings { fields, ..AnthropicSettings::default() };
        let settings = || EngineSettings { anthropic, ..scripted("default: {text: Yes.}") };
        for provider in both_providers(settings).await {
            let base_url = provider.base_url.clone();
            let endpoint = Endpoint { base_url, key: Some(ApiKey::new("any")), ..Endpoint::default() };
            let known = Arc::new(CapabilityCache::default());
            let client = Client::new(provider.transport.clone(), endpoint, RetryPolicy::default(), known);
            let expected = match fields {
                KnownFields::Current => vec![],
                KnownFields::Older => {
                    vec![UnsupportedFeature::NewerFields, UnsupportedFeature::ThinkingFields]
                }
            };
            assert_eq!(features_left_out(&client).await, expected);
            assert_eq!(features_left_out(&client).await, [], "it is remembered");
        }
    }
}
