//! Requests to a token endpoint after the login: refreshing a token, and giving it back.

use serde::Deserialize;
use url::form_urlencoded;

use super::error::LoginError;
use super::http::OauthHttp;
use super::{Login, TokenAnswer};
use crate::plain_text::plain_text;

/// An unsuccessful answer of a token endpoint.
#[derive(Deserialize)]
struct ErrorAnswer {
    error: String,
}

/// Replaces the tokens of a login. [`LoginError::Required`] means that only the person can.
pub(super) async fn refresh(login: &mut Login, http: &OauthHttp) -> Result<(), LoginError> {
    let token = login.refresh_token.clone().ok_or(LoginError::Required)?;
    let fields = [("grant_type", "refresh_token"), ("refresh_token", &token), ("resource", &login.resource)];
    let answer = send_form(login, &login.token_endpoint, &fields, http).await;
    let answer = answer.map_err(|error| LoginError::NotRenewed(error.to_string()))?;
    if answer.status().is_success() {
        let answer: TokenAnswer =
            serde_json::from_slice(answer.body()).map_err(|_| LoginError::UnusableToken)?;
        return login.take(answer);
    }
    match serde_json::from_slice::<ErrorAnswer>(answer.body()) {
        // The client or what it was given is not known there any more.
        Ok(answer)
            if matches!(&*answer.error, "invalid_grant" | "invalid_client" | "unauthorized_client") =>
        {
            Err(LoginError::Required)
        }
        Ok(answer) => Err(LoginError::NotRenewed(plain_text(&answer.error, 100))),
        Err(_) => {
            Err(LoginError::NotRenewed(format!("the authorization server answered {}", answer.status())))
        }
    }
}

/// Tells the authorization server that a login is no longer used, if it wants to know: says whether it was
/// told.
pub async fn revoke(login: &Login) -> Result<bool, LoginError> {
    let Some(endpoint) = &login.revocation_endpoint else { return Ok(false) };
    let http = OauthHttp::new(&login.url)?;
    let (token, kind) = match &login.refresh_token {
        Some(token) => (token, "refresh_token"),
        None => (&login.access_token, "access_token"),
    };
    let mut fields = vec![("token", token.as_str()), ("token_type_hint", kind)];
    let mut answer = send_form(login, endpoint, &fields, &http).await?;
    if answer.status() == http::StatusCode::BAD_REQUEST && login.client.secret.is_none() {
        // Servers made with the protocol's Python SDK want the field of clients that have no secret, too.
        fields.push(("client_secret", ""));
        answer = send_form(login, endpoint, &fields, &http).await?;
    }
    match answer.status().is_success() {
        true => Ok(true),
        false => Err(LoginError::Http(format!("the authorization server answered {}", answer.status()))),
    }
}

/// Sends fields to an endpoint of the authorization server, in the name of the login's client.
async fn send_form(
    login: &Login,
    endpoint: &str,
    fields: &[(&str, &str)],
    http: &OauthHttp,
) -> Result<http::Response<Vec<u8>>, LoginError> {
    let client = &login.client;
    let mut request = http::Request::post(endpoint)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept", "application/json");
    let mut fields = fields.to_vec();
    match &client.secret {
        Some(secret) if !client.secret_in_body => {
            request = request.header("authorization", basic(&client.id, secret));
        }
        secret => {
            fields.push(("client_id", &client.id));
            fields.extend(secret.iter().map(|secret| ("client_secret", secret.as_str())));
        }
    }
    let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let request = request.body(form.into_bytes());
    http.send(request.map_err(|_| LoginError::Http("the request cannot be made".into()))?).await
}

/// The client's name and secret as a header: each is encoded as in a form (RFC 6749, 2.3.1).
fn basic(id: &str, secret: &str) -> String {
    use base64::Engine as _;
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encode(id), encode(secret));
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
}
