//! The lists of models.

use hardpan_models::{Model, Protocol};
use serde_json::{Value, json};

use super::Settings;
use crate::refusal::Refusal;

/// All models of the protocol's usual provider, or the one that is named.
pub fn models(settings: &Settings, protocol: Protocol, id: Option<&str>) -> Result<Value, Refusal> {
    if let Some(id) = id {
        let unknown = || Refusal::new(404, format!("model: {id}")).with_code("model_not_found");
        return settings.model(protocol, id).map(|(model, _)| row(protocol, &model)).ok_or_else(unknown);
    }
    let provider = settings.provider(protocol);
    let listed = settings.catalogue.models().filter(|model| model.provider == provider);
    let rows: Vec<Value> = listed.map(|model| row(protocol, model)).collect();
    let end = |row: Option<&Value>| row.map(|row| row["id"].clone());
    Ok(match protocol {
        Protocol::Anthropic => {
            let (first, last) = (end(rows.first()), end(rows.last()));
            json!({"data": rows, "has_more": false, "first_id": first, "last_id": last})
        }
        Protocol::Openai => json!({"object": "list", "data": rows}),
    })
}

/// No list says when a model was made: the beginning of time stands for it.
fn row(protocol: Protocol, model: &Model) -> Value {
    match protocol {
        Protocol::Anthropic => {
            json!({"type": "model", "id": model.id, "display_name": model.id, "created_at": "1970-01-01T00:00:00Z"})
        }
        Protocol::Openai => {
            json!({"id": model.id, "object": "model", "created": 0, "owned_by": model.provider})
        }
    }
}
