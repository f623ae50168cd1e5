//! Models as extensions know them, and the providers that extensions bring.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_context::Target;
use hardpan_extensions::HostError;
use hardpan_models::{Catalogue, Model, Protocol, ThinkingSetting};
use serde_json::{Value, json};

use super::api::{self, to_script};
use super::host::ExtensionHost;
use super::model_calls::find_target;
use super::{ExtensionOrigin, ExtensionSetting};
use crate::conversation_app::ConversationApp;

/// The providers that extensions registered, as rows of the catalogue.
#[derive(Default)]
pub struct ExtensionProviders {
    state: Mutex<ProviderState>,
}

#[derive(Default)]
struct ProviderState {
    /// By provider: who brought it, and its entry of `models.json`.
    rows: BTreeMap<String, (Arc<str>, Value)>,
    /// The catalogue with all of them; none if there are none.
    catalogue: Option<Arc<Catalogue>>,
}

impl ProviderState {
    fn rebuild(&mut self, base: &Catalogue) -> Result<(), HostError> {
        let mut catalogue = base.clone();
        for (owner, row) in self.rows.values() {
            let merged = catalogue.with_user_file(&format!("extension {owner}"), &row.to_string());
            catalogue = merged.map_err(|error| HostError(error.to_string()))?;
        }
        self.catalogue = (!self.rows.is_empty()).then(|| Arc::new(catalogue));
        Ok(())
    }
}

impl ExtensionProviders {
    /// The catalogue with the extensions' providers; none if they brought none.
    pub fn catalogue(&self) -> Option<Arc<Catalogue>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).catalogue.clone()
    }

    /// The model of this name, if its provider is an extension's.
    pub fn find(&self, provider: Option<&str>, model: &str) -> Option<Target> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let named = provider.or_else(|| model.split_once('/').map(|(provider, _)| provider))?;
        if !state.rows.contains_key(named) {
            return None;
        }
        Target::new(state.catalogue.as_deref()?, Some(named), model).ok()
    }

    fn add(&self, owner: &Arc<str>, name: &str, row: Value, base: &Catalogue) -> Result<(), HostError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.rows.insert(name.to_owned(), (owner.clone(), row));
        let built = state.rebuild(base);
        if built.is_err() {
            match before {
                Some(before) => state.rows.insert(name.to_owned(), before),
                None => state.rows.remove(name),
            };
            state.rebuild(base)?;
        }
        built
    }

    /// Takes away those of an extension; with a name, that one.
    pub fn remove(&self, owner: &str, name: Option<&str>, base: &Catalogue) -> Result<(), HostError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.rows.len();
        state.rows.retain(|id, (by, _)| &**by != owner || name.is_some_and(|name| name != id));
        if state.rows.len() == before {
            return Ok(());
        }
        state.rebuild(base)
    }

    /// The ids of those of an extension.
    pub fn names_of(&self, owner: &str) -> Vec<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let own = state.rows.iter().filter(|(_, (by, _))| &**by == owner);
        own.map(|(name, _)| name.clone()).collect()
    }
}

/// `pi.registerProvider(name, config)`: an entry of `models.json` made of the published fields. A provider
/// that cannot be had is told of; the rest of the extension works without it.
pub fn register_provider(host: &ExtensionHost, arguments: &Value) {
    if let Err(error) = add_provider(host, arguments) {
        host.tell(error.0);
    }
}

fn add_provider(host: &ExtensionHost, arguments: &Value) -> Result<(), HostError> {
    let (name, config) = (arguments["name"].as_str().unwrap_or_default(), &arguments["config"]);
    let refused = |why: &str| Err(HostError(format!("its provider {name} is left out: {why}")));
    if host.origin() == ExtensionOrigin::Project {
        return refused("a project's extension cannot name addresses, because your keys would go there");
    }
    for (field, is_there) in [
        ("streamSimple", config["hasStreamSimple"].as_bool() == Some(true)),
        ("oauth", config["hasOauth"].as_bool() == Some(true)),
        ("headers", config["headers"].as_object().is_some_and(|headers| !headers.is_empty())),
    ] {
        if is_there {
            return refused(&format!("{field} is not supported here; requests are made by Hardpan itself"));
        }
    }
    let row = match provider_row(name, config) {
        Ok(row) => row,
        Err(why) => return refused(&why),
    };
    let setting: &ExtensionSetting = &host.setting;
    setting.providers.add(host.owner(), name, row, &setting.catalogue)
}

/// The entry of `models.json`; a sentence about what is wrong if there is none.
fn provider_row(name: &str, config: &Value) -> Result<Value, String> {
    if name.is_empty() || name.contains(['/', ' ']) {
        return Err("the name must be a word without a slash".into());
    }
    let mut provider = json!({ "id": name, "open_models": true });
    if let Some(url) = config["baseUrl"].as_str() {
        provider["base_url"] = json!(url);
    }
    if let Some(api) = config["api"].as_str() {
        provider["protocol"] = json!(protocol_of(api)?);
    }
    if let Some(key) = config["apiKey"].as_str() {
        provider["key_env"] = json!([key_variable(key)?]);
    }
    let mut models = Vec::new();
    for model in config["models"].as_array().into_iter().flatten() {
        let id = model["id"].as_str().ok_or("a model needs an id")?;
        let mut row = json!({ "id": id, "provider": name });
        for (ours, theirs) in
            [("context", "contextWindow"), ("max_output", "maxTokens"), ("reasoning", "reasoning")]
        {
            if let Some(value) = model.get(theirs).filter(|value| !value.is_null()) {
                row[ours] = value.clone();
            }
        }
        if let Some(input) = model["input"].as_array() {
            row["vision"] = json!(input.iter().any(|kind| kind == "image"));
        }
        if let Some(cost) = model["cost"].as_object() {
            let price = [
                ("input", "input"),
                ("output", "output"),
                ("cache_read", "cacheRead"),
                ("cache_write", "cacheWrite"),
            ];
            let given = price
                .into_iter()
                .filter_map(|(ours, theirs)| Some((ours.to_owned(), cost.get(theirs)?.clone())));
            row["price"] = Value::Object(given.collect());
        }
        models.push(row);
    }
    Ok(json!({ "providers": [provider], "models": models }))
}

fn protocol_of(api: &str) -> Result<Protocol, String> {
    Ok(match api {
        "anthropic-messages" => Protocol::Anthropic,
        "openai-completions" => Protocol::Openai,
        "openai-responses" => Protocol::OpenaiResponses,
        "google-generative-ai" => Protocol::Gemini,
        other => return Err(format!("there is no protocol \"{other}\" here")),
    })
}

/// The name of the variable that holds the key: `$NAME`, `${NAME}` or `NAME`.
fn key_variable(key: &str) -> Result<&str, String> {
    let name = key.strip_prefix('$').unwrap_or(key);
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    is_name.then_some(name).ok_or_else(|| {
        "apiKey must name an environment variable, such as $ACME_KEY; keys and commands are not taken"
            .to_owned()
    })
}

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
        api: api_of(protocol),
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

/// The model of the next request.
pub fn target_to_script(target: &Target) -> api::Model {
    model_to_script(&target.model, target.profile.protocol, &target.profile.base_url)
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
        Some(model_to_script(model, protocol, url))
    });
    to_script(&models.collect::<Vec<_>>())
}

/// `modelRegistry.find(provider, id)`: null for a model that no file lists.
pub fn find_model(app: &ConversationApp, arguments: &Value) -> Value {
    let found = find_target(app, arguments);
    to_script(&found.map(|target| target_to_script(&target)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_named_and_never_given() {
        assert_eq!(key_variable("$ACME_KEY"), Ok("ACME_KEY"));
        assert_eq!(key_variable("${ACME_KEY}"), Ok("ACME_KEY"));
        assert_eq!(key_variable("ACME_KEY"), Ok("ACME_KEY"));
        assert!(key_variable("sk-live-1234").is_err());
        assert!(key_variable("!pass show acme").is_err());
        assert!(key_variable("$").is_err());
    }

    #[test]
    fn a_provider_becomes_a_row_of_the_catalogue() {
        let config = json!({
            "baseUrl": "https://acme.test/v1",
            "api": "openai-completions",
            "apiKey": "$ACME_KEY",
            "models": [{
                "id": "large", "name": "Large", "reasoning": true, "input": ["text", "image"],
                "cost": { "input": 1, "output": 4, "cacheRead": 0.1, "cacheWrite": 0 },
                "contextWindow": 200000, "maxTokens": 32000,
            }],
        });
        let row = provider_row("acme", &config).unwrap();
        let catalogue = Catalogue::builtin().with_user_file("test", &row.to_string()).unwrap();
        let model = catalogue.model(Some("acme"), "large").unwrap();
        assert!(model.vision && model.reasoning && model.listed);
        assert_eq!((model.context, model.price.input, model.price.read()), (200_000, 1.0, 0.1));
        let provider = catalogue.provider("acme").unwrap();
        assert_eq!(provider.profile.key_env, ["ACME_KEY"]);
        assert!(
            provider_row("acme", &json!({ "api": "carrier-pigeon" })).unwrap_err().contains("carrier-pigeon")
        );
    }
}
