//! [`PreparedRequest`]: a request as it would be sent, for those who want to see it first.

use std::borrow::Cow;

use hardpan_models::ProviderProfile;
use hardpan_prompt::Prompt;

use super::capabilities::{Downgrades, KnownRefusals};
use super::{AttemptRequest, Client, ClientRequest};
use crate::{HttpRequest, ProviderError};

/// What stands in place of a key.
const MASK: &str = "•••";

/// A request as [`Client::send`] would send it.
#[derive(Clone, Debug)]
pub struct PreparedRequest {
    /// Address, headers and the exact body. Keys, and the values of the user's own headers, are
    /// masked.
    pub http: HttpRequest,
    /// The prompt that the body says, if the server has refused something of the one that was given.
    pub fallback: Option<Prompt>,
}

impl Client {
    /// Makes the request that [`Client::send`] would send first, and sends nothing.
    pub fn prepare(&self, request: &ClientRequest<'_>) -> Result<PreparedRequest, ProviderError> {
        let ClientRequest { profile, previous_answer, .. } = *request;
        let downgrades = self.known_downgrades(request);
        let prompt = self.prompt_to_send(request);
        let attempt = AttemptRequest { prompt: &prompt, profile, previous_answer, downgrades, body: None };
        let mut http = self.build_request(&attempt)?;
        self.mask_secrets(&mut http);
        let fallback = match prompt {
            Cow::Borrowed(_) => None,
            Cow::Owned(prompt) => Some(prompt),
        };
        Ok(PreparedRequest { http, fallback })
    }

    /// The prompt that [`Client::send`] would send first: the given one, or what is left of it
    /// without the features that the server has refused.
    pub fn prompt_to_send<'a>(&self, request: &ClientRequest<'a>) -> Cow<'a, Prompt> {
        self.known_downgrades(request).apply(request)
    }

    /// What this client leaves out of requests for a model, because the server has refused it.
    pub fn known_refusals(
        &self,
        provider: &str,
        profile: &ProviderProfile,
        model: &str,
        now_ms: i64,
    ) -> KnownRefusals {
        self.capabilities.known_refusals(&self.server_name(provider, profile), model, now_ms)
    }

    pub(super) fn known_downgrades(&self, request: &ClientRequest<'_>) -> Downgrades {
        let ClientRequest { prompt, profile, provider, now_ms, .. } = *request;
        self.known_refusals(provider, profile, &prompt.model, now_ms).downgrades()
    }

    fn mask_secrets(&self, http: &mut HttpRequest) {
        let own = &self.endpoint.headers;
        for (name, value) in &mut http.headers {
            if own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)) {
                *value = MASK.to_owned();
            }
            if let Some(key) = self.endpoint.key.as_ref().filter(|key| !key.0.is_empty()) {
                *value = value.replace(&key.0, MASK);
            }
        }
    }
}
