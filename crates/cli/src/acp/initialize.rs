//! What client and agent tell each other at the start: versions, abilities, and where keys come from.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, AuthenticateRequest, AuthenticateResponse, Error,
    Implementation, InitializeRequest, InitializeResponse, McpCapabilities, PromptCapabilities,
    SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities, SessionListCapabilities,
    SessionResumeCapabilities,
};
use hardpan_app::options::OpenOptions;
use hardpan_app::settings::Settings;
use hardpan_app::target::resolve_target;
use hardpan_app::{DiscardNotices, provider_route::ProviderRoute};

/// The one way to sign in: a key of the person's.
const KEYS: &str = "api-key";

/// Answers `initialize`. There is one version so far; a client that wants another decides whether it
/// takes this one.
pub fn initialize(request: &InitializeRequest) -> InitializeResponse {
    tracing::info!(version = %request.protocol_version, client = ?request.client_info, "a client has connected");
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .delete(SessionDeleteCapabilities::new());
    let abilities = AgentCapabilities::new()
        .load_session(true)
        .mcp_capabilities(McpCapabilities::new().http(true))
        .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
        .session_capabilities(sessions);
    let keys = AuthMethodAgent::new(KEYS, "API key").description(
        "Run `hardpan key PROVIDER` in a terminal once, or set the provider's variable, such as ANTHROPIC_API_KEY, for the editor"
            .to_owned(),
    );
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(abilities)
        .auth_methods(vec![AuthMethod::Agent(keys)])
        .agent_info(Implementation::new("hardpan", env!("CARGO_PKG_VERSION")).title("Hardpan".to_owned()))
}

/// Answers `authenticate`: looks whether there is a key now.
pub fn authenticate(
    request: &AuthenticateRequest,
    options: &OpenOptions,
) -> Result<AuthenticateResponse, Error> {
    if &*request.method_id.0 != KEYS {
        let known = format!("unknown method {:?}; the only one is {KEYS:?}", &*request.method_id.0);
        return Err(Error::invalid_params().data(known));
    }
    let root = hardpan_workspace::find_project_root(&options.folder);
    let settings = Settings::load(&root, options.user_folders.clone(), &DiscardNotices).map_err(failed)?;
    let target = resolve_target(&options.target, &settings, None).map_err(failed)?;
    match ProviderRoute::is_simulated(&target, &settings) {
        true => Err(missing_key(&target.provider)),
        false => Ok(AuthenticateResponse::new()),
    }
}

fn failed<E: std::error::Error + 'static>(error: E) -> Error {
    Error::internal_error().data(hardpan_app::error_text(&error))
}

/// The error that makes a client offer to sign in.
pub fn missing_key(provider: &str) -> Error {
    let variable = format!("{}_API_KEY", provider.to_uppercase().replace('-', "_"));
    Error::auth_required().data(format!(
        "there is no key for {provider}: run `hardpan key {provider}` in a terminal, or set the key (such as {variable}) in the environment of the editor; `hardpan doctor` shows which keys there are"
    ))
}
