//! The entry of `models.json` that stands for a provider of an extension.

use hardpan_models::Protocol;
use serde_json::{Value, json};

/// The address of a provider that names none, because its extension answers.
const NO_ADDRESS: &str = "http://extension.invalid";

/// The efforts that a model of an extension is asked for, under the names of both sides.
const EFFORTS: [&str; 4] = ["low", "medium", "high", "xhigh"];

/// The entry; a sentence about what is wrong if there is none.
pub fn provider_row(name: &str, config: &Value) -> Result<Value, String> {
    if name.is_empty() || name.contains(['/', ' ']) {
        return Err("the name must be a word without a slash".into());
    }
    let mut provider = json!({ "id": name, "open_models": true });
    if let Some(shown) = config["name"].as_str() {
        provider["name"] = json!(shown);
    }
    let answers = config["answers"].as_bool() == Some(true);
    if let Some(url) = config["baseUrl"].as_str() {
        provider["base_url"] = json!(url);
    } else if answers {
        provider["base_url"] = json!(NO_ADDRESS);
    }
    let models = config["models"].as_array().map(Vec::as_slice).unwrap_or_default();
    let protocol = match config["api"].as_str() {
        _ if answers => Some(Protocol::Anthropic),
        Some(api) => Some(protocol_of(api)?),
        // That of its models: one for all.
        None => models.iter().find_map(|model| model["api"].as_str()).map(protocol_of).transpose()?,
    };
    if let Some(protocol) = protocol {
        provider["protocol"] = json!(protocol);
    }
    if let Some(names) = config["keyVariables"].as_array().filter(|_| !answers) {
        provider["key_env"] = json!(names);
    } else if let Some(name) = config["apiKey"].as_str().and_then(key_variable) {
        provider["key_env"] = json!([name]);
    } else if answers || config["apiKey"].is_string() || config["login"].is_object() {
        provider["key_env"] = json!([]);
    }
    let has_cache = models.iter().any(|model| model["cost"]["cacheRead"].as_f64().is_some_and(|it| it > 0.0));
    if answers {
        provider["tool_result_images"] = json!(true);
        provider["markers"] = json!("none");
        provider["diagnostics"] = json!(false);
    } else if has_cache && protocol == Some(Protocol::Anthropic) {
        provider["markers"] = json!("cache_control");
        provider["tool_result_images"] = json!(true);
        provider["cache"] = json!({
            "kind": "markers", "min_tokens": 1024, "max_markers": 4, "look_back": 20,
            "lifetime": 300, "long_lifetime": 3600,
        });
    }
    if has_cache && provider.get("cache").is_none() {
        // How exactly it caches is not known: less is expected of it than it may do.
        provider["cache"] = json!({ "kind": "automatic", "min_tokens": 1024, "step": 1024 });
    }
    provider["overrides"] = Value::Array(
        models.iter().filter_map(|model| own_wire(model, answers).transpose()).collect::<Result<_, _>>()?,
    );
    let models = models.iter().map(|model| model_row(name, model, answers, protocol));
    Ok(json!({ "providers": [provider], "models": models.collect::<Result<Vec<_>, _>>()? }))
}

/// The override for a model that has an address or a protocol of its own.
fn own_wire(model: &Value, answers: bool) -> Result<Option<Value>, String> {
    // In a pattern, these have another meaning.
    let Some(id) = model["id"].as_str().filter(|id| !id.contains(['*', '?', '[', '|'])) else {
        return Ok(None);
    };
    let mut wire = json!({ "models": id });
    if let Some(url) = model["baseUrl"].as_str() {
        wire["base_url"] = json!(url);
    }
    if let Some(api) = model["api"].as_str().filter(|_| !answers) {
        wire["protocol"] = json!(protocol_of(api)?);
    }
    Ok(wire.as_object().is_some_and(|fields| fields.len() > 1).then_some(wire))
}

fn model_row(
    provider: &str,
    model: &Value,
    answers: bool,
    protocol: Option<Protocol>,
) -> Result<Value, String> {
    let id = model["id"].as_str().ok_or("a model needs an id")?;
    let mut row = json!({ "id": id, "provider": provider });
    let fields = [("context", "contextWindow"), ("max_output", "maxTokens"), ("reasoning", "reasoning")];
    for (ours, theirs) in fields {
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
        let given =
            price.into_iter().filter_map(|(ours, theirs)| Some((ours.to_owned(), cost.get(theirs)?.clone())));
        row["price"] = Value::Object(given.collect());
    }
    if model["reasoning"].as_bool() == Some(true) {
        let is_offered = |level: &&str| !model["thinkingLevelMap"].get(*level).is_some_and(Value::is_null);
        let efforts: Vec<&str> = EFFORTS.into_iter().filter(is_offered).collect();
        let takes_effort = model["compat"]["supportsReasoningEffort"].as_bool() != Some(false);
        row["thinking"] = match protocol {
            _ if answers => json!({ "efforts": efforts }),
            Some(Protocol::Anthropic) => json!({ "budget": true }),
            Some(Protocol::OpenaiResponses) => json!({ "efforts": efforts }),
            Some(Protocol::Openai) if takes_effort => json!({ "efforts": efforts }),
            _ => json!({}),
        };
    }
    Ok(row)
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

/// The variable of the environment that holds the key, if the setting names one: `$NAME`, `${NAME}` or
/// `NAME`.
pub fn key_variable(key: &str) -> Option<&str> {
    let name = key.strip_prefix('$').unwrap_or(key);
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use hardpan_models::{Catalogue, ThinkingSetting};
    use hardpan_prompt::Effort;

    use super::*;

    #[test]
    fn a_variable_is_told_from_a_key() {
        assert_eq!(key_variable("$ACME_KEY"), Some("ACME_KEY"));
        assert_eq!(key_variable("${ACME_KEY}"), Some("ACME_KEY"));
        assert_eq!(key_variable("ACME_KEY"), Some("ACME_KEY"));
        for other in ["ollama", "sk-live-1234", "!pass show acme", "$", ""] {
            assert_eq!(key_variable(other), None, "{other}");
        }
    }

    fn catalogue(name: &str, config: &Value) -> Catalogue {
        let row = provider_row(name, config).unwrap();
        Catalogue::builtin().with_user_file("test", &row.to_string()).unwrap()
    }

    fn large() -> Value {
        json!({
            "id": "large", "name": "Large", "reasoning": true, "input": ["text", "image"],
            "cost": { "input": 1, "output": 4, "cacheRead": 0.1, "cacheWrite": 0 },
            "contextWindow": 200000, "maxTokens": 32000, "thinkingLevelMap": { "xhigh": null },
        })
    }

    #[test]
    fn a_provider_becomes_a_row_of_the_catalogue() {
        let config = json!({
            "baseUrl": "https://acme.test/v1", "api": "openai-completions", "apiKey": "$ACME_KEY",
            "models": [large()],
        });
        let catalogue = catalogue("acme", &config);
        let model = catalogue.model(Some("acme"), "large").unwrap();
        assert!(model.vision && model.reasoning && model.listed && model.caching);
        assert_eq!((model.context, model.price.input, model.price.read()), (200_000, 1.0, 0.1));
        assert_eq!(model.thinking.efforts, [Effort::Low, Effort::Medium, Effort::High]);
        let provider = catalogue.provider("acme").unwrap();
        assert_eq!(provider.profile.key_env, ["ACME_KEY"]);
        let unknown = provider_row("acme", &json!({ "api": "carrier-pigeon" })).unwrap_err();
        assert!(unknown.contains("carrier-pigeon"));
    }

    #[test]
    fn a_script_that_answers_needs_neither_address_nor_protocol() {
        let config = json!({ "answers": true, "api": "carrier-pigeon", "models": [large()] });
        let catalogue = catalogue("birds", &config);
        let provider = catalogue.provider("birds").unwrap();
        assert_eq!(provider.profile.protocol, Protocol::Anthropic);
        assert!(provider.profile.key_env.is_empty());
        let model = catalogue.model(Some("birds"), "large").unwrap();
        let asked = model.thinking.request(ThinkingSetting::Level(Effort::High), 1000);
        assert_eq!((asked.effort, asked.substitution), (Some(Effort::High), None));
    }
}
