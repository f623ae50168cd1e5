//! The `models` endpoint.

use hardpan_models::{Model, Protocol};
use serde_json::{Value, json};

use super::EngineSettings;
use crate::error_reply::ErrorReply;

/// Lists all models of the protocol's usual provider, or the one with this id.
pub fn list_models(
    settings: &EngineSettings,
    protocol: Protocol,
    id: Option<&str>,
) -> Result<Value, ErrorReply> {
    if let Some(id) = id {
        let unknown = || ErrorReply::new(404, format!("model: {id}")).with_code("model_not_found");
        return settings
            .model(protocol, id)
            .map(|(model, _)| model_entry(protocol, &model))
            .ok_or_else(unknown);
    }
    let provider = settings.provider(protocol);
    let listed = settings.catalogue.models().filter(|model| model.provider == provider);
    let rows: Vec<Value> = listed.map(|model| model_entry(protocol, model)).collect();
    let end = |model_entry: Option<&Value>| model_entry.map(|model_entry| model_entry["id"].clone());
    Ok(match protocol {
        Protocol::Anthropic => {
            let (first, last) = (end(rows.first()), end(rows.last()));
            json!({"data": rows, "has_more": false, "first_id": first, "last_id": last})
        }
        Protocol::Openai => json!({"object": "list", "data": rows}),
    })
}

/// One model. The catalogue does not know creation dates: they are 1970.
fn model_entry(protocol: Protocol, model: &Model) -> Value {
    match protocol {
        Protocol::Anthropic => {
            json!({"type": "model", "id": model.id, "display_name": model.id, "created_at": "1970-01-01T00:00:00Z"})
        }
        Protocol::Openai => {
            json!({"id": model.id, "object": "model", "created": 0, "owned_by": model.provider})
        }
    }
}
