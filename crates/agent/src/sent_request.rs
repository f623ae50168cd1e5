//! [`SentRequest`]: one of the last two requests as it was sent, to the byte.

use std::sync::Arc;

use hardpan_context::{AssembledPrompt, Breakdown, Target};
use hardpan_providers::{ClientRequest, HttpRequest, PreparedRequest, ProviderError};

use crate::agent::{Agent, lock};
use crate::last_request::LastRequest;

/// A request as it was sent.
pub struct SentRequest {
    /// The prompt in the form that was sent.
    pub assembled: AssembledPrompt,
    /// The model that it was for.
    pub target: Target,
    /// What filled the context window.
    pub breakdown: Breakdown,
    /// Address, headers and the exact body, with keys masked.
    pub http: HttpRequest,
}

impl Agent {
    /// The last request of this process; `None` before the first.
    pub fn last_sent_request(&self) -> Option<Result<SentRequest, ProviderError>> {
        let last: Arc<LastRequest> = lock(&self.inner.last_request).clone()?;
        Some(self.sent_request(&last))
    }

    /// The request before the last; `None` before the second.
    pub fn sent_request_before(&self) -> Option<Result<SentRequest, ProviderError>> {
        let before: Arc<LastRequest> = lock(&self.inner.request_before).clone()?;
        Some(self.sent_request(&before))
    }

    /// Encodes a request again, by the client that sent it: the same prompt gives the same bytes.
    fn sent_request(&self, request: &LastRequest) -> Result<SentRequest, ProviderError> {
        let LastRequest { assembled, snapshot, target, render_cache, .. } = request;
        let forms = self.text_fallbacks(&request.selection, snapshot, render_cache);
        let PreparedRequest { mut http, .. } = request.client.prepare(&ClientRequest {
            prompt: &assembled.prompt,
            profile: &target.profile,
            provider: &target.provider,
            fallbacks: &forms,
            previous_answer: request.previous_answer.as_deref(),
            now_ms: self.now().as_millisecond(),
        })?;
        if let Some(payload) = &request.payload {
            http.body = payload.clone();
        }
        let (prompt, measured) = request.sent_prompt();
        let assembled =
            AssembledPrompt { prompt: prompt.clone(), measured: measured.clone(), ..assembled.clone() };
        let breakdown = Breakdown::new(&assembled, snapshot, target, render_cache);
        Ok(SentRequest { assembled, target: target.clone(), breakdown, http })
    }
}
