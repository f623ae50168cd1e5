//! Models as extensions know them.

use std::collections::BTreeMap;

use hardpan_context::Target;
use hardpan_extensions::HostError;
use hardpan_models::{Model, Protocol, ThinkingSetting};
use serde_json::{Value, json};

use super::api::{self, to_script};
use super::model_calls::find_target;
use super::providers::ExtensionProviders;
use crate::conversation_app::ConversationApp;

fn api_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Anthropic => "anthropic-messages",
        Protocol::Openai => "openai-completions",
        Protocol::OpenaiResponses => "openai-responses",
        Protocol::Gemini => "google-generative-ai",
    }
}

/// A model with its provider's protocol and address.
pub fn model_to_script(model: &Model, protocol: Protocol, base_url: &str) -> api::Model {
    let kinds = [Some(api::InputKind::Text), model.vision.then_some(api::InputKind::Image)];
    api::Model {
        provider: model.provider.clone(),
        id: model.id.clone(),
        name: model.id.clone(),
        api: api_of(protocol).into(),
        base_url: base_url.to_owned(),
        reasoning: model.reasoning,
        input: kinds.into_iter().flatten().collect(),
        cost: api::ModelCost {
            input: model.price.input,
            output: model.price.output,
            cache_read: model.price.read(),
            cache_write: model.price.write(),
        },
        context_window: model.context,
        max_tokens: model.max_output,
    }
}

/// The model of a request.
pub fn target_to_script(target: &Target) -> api::Model {
    model_to_script(&target.model, target.profile.protocol, &target.profile.base_url)
}

/// The same under the extension's own name for the protocol, if one brought the provider.
pub fn own_target_to_script(target: &Target, brought: &ExtensionProviders) -> api::Model {
    with_own_api(target_to_script(target), brought)
}

fn with_own_api(mut model: api::Model, brought: &ExtensionProviders) -> api::Model {
    if let Some(provider) = brought.provider(&model.provider)
        && let Some(api) = provider.api()
    {
        model.api = api.to_owned().into();
    }
    model
}

/// All models that are sold; `available`: those whose provider needs no key or has one.
pub fn list_models(app: &ConversationApp, only_available: bool) -> Value {
    let catalogue = app.extensions.providers.catalogue();
    let catalogue = catalogue.as_deref().unwrap_or(&app.settings.catalogue);
    let mut known: BTreeMap<&str, Option<(Protocol, &str)>> = BTreeMap::new();
    let models = catalogue.models().filter(|model| !model.gone).filter_map(|model| {
        let seller = known.entry(&model.provider).or_insert_with(|| {
            let provider = catalogue.provider(&model.provider).ok()?;
            let has_key = || app.settings.key(&provider.id, &provider.profile).is_ok_and(|key| key.is_some());
            let is_available = !only_available || provider.profile.key_env.is_empty() || has_key();
            is_available.then_some((provider.profile.protocol, &*provider.profile.base_url))
        });
        let (protocol, url) = (*seller)?;
        Some(with_own_api(model_to_script(model, protocol, url), &app.extensions.providers))
    });
    to_script(&models.collect::<Vec<_>>())
}

/// `modelRegistry.find(provider, id)`: null for a model that no file lists.
pub fn find_model(app: &ConversationApp, arguments: &Value) -> Value {
    let found = find_target(app, arguments);
    to_script(&found.map(|target| own_target_to_script(&target, &app.extensions.providers)))
}

/// `pi.setModel(model)`: false without a key for it, as long as there is one for the current model.
pub async fn set_model(app: &ConversationApp, arguments: &Value) -> Result<Value, HostError> {
    let (provider, id) = (arguments["provider"].as_str(), arguments["id"].as_str().unwrap_or_default());
    let target = app
        .find_model(provider.map(str::to_owned), id.to_owned())
        .map_err(|error| HostError(error.to_string()))?;
    if app.is_offline(&target) && !app.is_offline(&app.agent.target()) {
        return Ok(json!(false));
    }
    app.switch_model(target).await.map_err(|error| HostError(error.to_string()))?;
    Ok(json!(true))
}

/// How much the model thinks, as a level: what it does by itself is one, too.
pub fn thinking_level(target: &Target, setting: ThinkingSetting) -> String {
    if let ThinkingSetting::Level(_) | ThinkingSetting::Off = setting {
        return setting.to_string();
    }
    let request = target.thinking_request(setting);
    match request.effort {
        _ if !request.thinking.is_on() => "off".to_owned(),
        Some(effort) => effort.to_string(),
        None => "medium".to_owned(),
    }
}

/// `ctx.getContextUsage()`: what the last request and its answer took of the window.
pub fn context_usage(app: &ConversationApp) -> Value {
    let window = app.agent.target().model.context;
    let tokens = app.agent.token_usage().last_request.map(|last| last.tokens.total());
    let percent = tokens.map(|tokens| tokens as f64 * 100.0 / f64::from(window.max(1)));
    to_script(&api::ContextUsage { tokens, context_window: window, percent })
}
