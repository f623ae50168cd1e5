//! The `models` endpoint.

use serde_json::Value;

use super::EngineSettings;
use crate::error_reply::ErrorReply;
use crate::server_codec::ServerCodec;

/// Lists all models of the server's usual provider, or the one with this id.
pub fn list_models(
    settings: &EngineSettings,
    server: &dyn ServerCodec,
    id: Option<&str>,
) -> Result<Value, ErrorReply> {
    if let Some(id) = id {
        let unknown = || server.refuse_model(id);
        return settings.model(server, id).map(|(model, _)| server.model_entry(&model)).ok_or_else(unknown);
    }
    let provider = server.usual_provider(settings);
    let listed = settings.catalogue.models().filter(|model| model.provider == provider && !model.gone);
    Ok(server.model_list(listed.map(|model| server.model_entry(model)).collect()))
}
