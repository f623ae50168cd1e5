//! [`LoginAttempt`]: finds out where to log in at a server, and makes a login of what the browser brings.

use std::sync::Arc;

use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig};
use url::Url;

use super::error::LoginError;
use super::http::OauthHttp;
use super::redirect::RedirectAnswer;
use super::{ClientIdentity, Login, LoginSettings, TokenAnswer};
use crate::plain_text::plain_text;

/// The name that authorization servers show to the person.
const CLIENT_NAME: &str = "Hardpan";

/// A login that waits for the person.
pub struct LoginAttempt {
    manager: AuthorizationManager,
    client: OAuthClientConfig,
    metadata: AuthorizationMetadata,
    server_url: String,
    address: String,
    state: String,
    resource: String,
}

impl LoginAttempt {
    /// Asks the server at `url` where to log in, and registers there if the settings name no client. The
    /// browser comes back to `redirect_uri`.
    pub async fn start(url: &str, settings: &LoginSettings, redirect_uri: &str) -> Result<Self, LoginError> {
        let http = OauthHttp::new(url)?;
        let manager =
            AuthorizationManager::new_with_oauth_http_client(http.server().clone(), Arc::new(http.clone()));
        let mut manager = manager.await.map_err(|error| refusal(&error))?;
        let resolution = manager.resolve_metadata().await.map_err(|error| refusal(&error))?;
        if !resolution.source.is_discovered() {
            return Err(LoginError::NoMetadata);
        }
        let metadata = resolution.metadata;
        check_metadata(&metadata, &http)?;
        manager.set_metadata(metadata.clone());
        let scopes = match settings.scopes.is_empty() {
            true => manager.select_initial_scopes(&[]).await,
            false => settings.scopes.clone(),
        };
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let client = match &settings.client_id {
            Some(id) => {
                let client = OAuthClientConfig::new(id, redirect_uri);
                manager.configure_client(client.clone()).map(|()| client)
            }
            None if metadata.registration_endpoint.is_none() => return Err(LoginError::NoRegistration),
            None => manager.register_client(CLIENT_NAME, redirect_uri, &scopes).await,
        };
        let client = client.map_err(|error| refusal(&error))?;
        let address = manager.get_authorization_url(&scopes).await.map_err(|error| refusal(&error))?;
        let parameter = |name: &str| {
            let url = Url::parse(&address).ok()?;
            url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let missing = || LoginError::Refused("the address to log in at cannot be made".into());
        let (state, resource) =
            (parameter("state").ok_or_else(missing)?, parameter("resource").ok_or_else(missing)?);
        Ok(LoginAttempt { manager, client, metadata, server_url: url.to_owned(), address, state, resource })
    }

    /// The address that the person opens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The authorization server.
    pub fn issuer(&self) -> &str {
        self.metadata.issuer.as_deref().unwrap_or_default()
    }

    /// What the browser has to bring back.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Makes a login of what the browser brought back.
    pub async fn finish(self, answer: RedirectAnswer) -> Result<Login, LoginError> {
        let (code, issuer) = match answer {
            RedirectAnswer::Granted { code, issuer } => (code, issuer),
            RedirectAnswer::Denied(reason) => return Err(LoginError::Denied(reason)),
        };
        let exchange =
            self.manager.exchange_code_for_token_with_issuer(&code, &self.state, issuer.as_deref());
        let token = exchange.await.map_err(|error| refusal(&error))?;
        // The form in which it was sent, which is also that of a refresh.
        let answer = serde_json::to_value(&token).and_then(serde_json::from_value::<TokenAnswer>);
        let answer = answer.map_err(|_| LoginError::UnusableToken)?;
        let methods = self.metadata.additional_fields.get("token_endpoint_auth_methods_supported");
        let methods: Vec<&str> = methods
            .and_then(|methods| methods.as_array())
            .into_iter()
            .flatten()
            .filter_map(|m| m.as_str())
            .collect();
        let secret_in_body =
            methods.contains(&"client_secret_post") && !methods.contains(&"client_secret_basic");
        let mut login = Login {
            url: self.server_url,
            issuer: self.metadata.issuer.unwrap_or_default(),
            scopes: Vec::new(),
            expires_at: None,
            replaced_before: super::REPLACED_BEFORE,
            client: ClientIdentity {
                id: self.client.client_id,
                secret: self.client.client_secret,
                secret_in_body,
            },
            token_endpoint: self.metadata.token_endpoint,
            revocation_endpoint: revocation_endpoint(&self.metadata.additional_fields),
            resource: self.resource,
            access_token: String::new(),
            refresh_token: None,
        };
        login.take(answer)?;
        Ok(login)
    }
}

#[expect(clippy::disallowed_types, reason = "the type of the protocol's crate; nothing iterates over it")]
fn revocation_endpoint(fields: &std::collections::HashMap<String, serde_json::Value>) -> Option<String> {
    fields.get("revocation_endpoint").and_then(|endpoint| endpoint.as_str()).map(str::to_owned)
}

/// Checks what the authorization server says about itself. That it is the issuer of the metadata has been
/// checked when it was read.
fn check_metadata(metadata: &AuthorizationMetadata, http: &OauthHttp) -> Result<(), LoginError> {
    let issuer = metadata.issuer.as_deref().unwrap_or_default();
    http.check("the authorization server", issuer)?;
    http.check("the address to log in at", &metadata.authorization_endpoint)?;
    http.check("the address of tokens", &metadata.token_endpoint)?;
    if let Some(endpoint) = &metadata.registration_endpoint {
        http.check("the address to register at", endpoint)?;
    }
    if let Some(endpoint) = revocation_endpoint(&metadata.additional_fields) {
        http.check("the address to log out at", &endpoint)?;
    }
    let methods = metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
    if methods.iter().any(|method| method == "S256") { Ok(()) } else { Err(LoginError::NoPkce) }
}

/// An error of the protocol's crate in words for the person. An answer that is no token is not quoted: it
/// may contain one.
fn refusal(error: &AuthError) -> LoginError {
    match error {
        AuthError::PkceUnsupported => LoginError::NoPkce,
        AuthError::TokenExchangeFailed(text) if !text.starts_with("Server returned error response") => {
            LoginError::Refused("the authorization server's answer has no token".into())
        }
        other => LoginError::Refused(plain_text(&crate::failures::causes(other), 1000)),
    }
}
