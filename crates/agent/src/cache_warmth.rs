//! [`CacheWarmth`]: how long the provider's cache lives, and pinging it while that saves money.

use hardpan_economy::{IdlePause, Rates};
use hardpan_models::CacheKind;
use hardpan_prompt::{CacheLifetime, Prompt};
use hardpan_providers::ClientRequest;
use serde::Serialize;

use crate::agent::{Agent, lock};
use crate::billing::RequestTimes;
use crate::error::{AgentError, PingError};
use crate::last_request::TextFallbacks;
use crate::run_status::Activity;
use crate::session_ledger::CacheBase;
use crate::spending::Spending;

/// How long before its entries expire a cache is pinged, in seconds: time for the request itself.
const PING_LEAD_SECONDS: u32 = 20;

/// The state of the cache entries that the last request left.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CacheWarmth {
    /// Seconds until the entries expire; negative once they have.
    pub expires_in: i64,
    /// Tokens that the next request would have to write again after that.
    pub tokens: usize,
    /// Pings since the last turn.
    pub pings: u32,
    /// Whether a ping is expected to save more than it costs.
    pub ping_pays: bool,
}

impl CacheWarmth {
    /// Seconds until a ping is due; `None` if it would not pay or is too late.
    pub fn ping_due_in(&self) -> Option<u64> {
        let due = self.expires_in - i64::from(PING_LEAD_SECONDS);
        u64::try_from(due).ok().filter(|_| self.ping_pays)
    }
}

impl Agent {
    /// The state of the cache; `None` before the first request, and if the provider's cache
    /// lifetime is unknown.
    pub fn cache_warmth(&self) -> Option<CacheWarmth> {
        let last_request = lock(&self.inner.last_request).clone()?;
        let cache = &last_request.target.profile.cache;
        let assembled = &last_request.assembled;
        let breakpoints = assembled.prompt.breakpoints();
        let long = breakpoints.iter().rfind(|breakpoint| breakpoint.lifetime == CacheLifetime::OneHour);
        let kept = long.map_or(0, |breakpoint| assembled.measured.tokens_through(breakpoint.block));
        // The end of the conversation decides: what lives longer before it is not lost with it.
        let (lifetime, kept) = match long == breakpoints.last() && long.is_some() {
            true => (last_request.target.profile.long_lifetime().or(cache.lifetime)?, 0),
            false => (cache.lifetime?, kept),
        };
        let conversation = lock(&self.inner.conversation);
        let (at, ..) = conversation.last_request.as_ref()?;
        let age = self.now().as_second() - at.as_second();
        let total = last_request.assembled.measured.total();
        let tokens = total.saturating_sub(kept);
        let pause = IdlePause {
            gaps: &conversation.pauses,
            // A ping restarts the lifetime of the entries, but not the user's pause.
            idle: lifetime.saturating_mul(conversation.pings + 1).saturating_sub(PING_LEAD_SECONDS),
            lifetime,
            tokens,
            kept,
            garbage: last_request.assembled.layout.layout().garbage_tokens(conversation.memory.current()),
            ratios: Rates::for_model(&last_request.target.model, &last_request.target.profile, total as u64)
                .ratios(),
            pings: conversation.pings,
        };
        // Thinking is part of the cache key, and a ping cannot hold a thinking budget.
        let can =
            cache.kind == CacheKind::Markers && last_request.assembled.prompt.thinking.budget().is_none();
        let (expires_in, pings) = (i64::from(lifetime) - age, conversation.pings);
        Some(CacheWarmth { expires_in, tokens, pings, ping_pays: can && pause.ping_pays() })
    }

    /// Sends the last request again with an answer limit of one token, which renews its cache
    /// entries.
    pub async fn ping_cache(&self) -> Result<Spending, AgentError> {
        let _alone = self.try_begin(Activity::PingingCache)?;
        let (selection, client) = self.selection_with_client().map_err(PingError::from)?;
        let last_request = lock(&self.inner.last_request).clone();
        let last_request = last_request.ok_or(PingError::NothingSent)?;
        let prompt = Prompt { max_tokens: 1, ..last_request.sent_prompt().0.clone() };
        let started = self.now();
        let forms = TextFallbacks::new(&self.inner.setup.texts);
        let request = ClientRequest {
            prompt: &prompt,
            profile: &last_request.target.profile,
            provider: &last_request.target.provider,
            fallbacks: &forms,
            previous_answer: None,
            now_ms: started.as_millisecond(),
        };
        let answer = client.send(request).collect().await.map_err(PingError::from)?;
        let usage = answer.usage.as_ref();
        let times = RequestTimes { sent: started, began: self.now() };
        let sent = ((&prompt, last_request.sent_prompt().1), CacheBase::Conversation);
        drop(self.record_bill("ping", &selection, sent, None, &answer, times));
        let spending = usage.map(|usage| Spending::from_usage(&usage.tokens, &last_request.target));
        let is_simulated = self.inner.setup.client_factory.is_simulated();
        Ok(spending.unwrap_or_default().simulated_if(is_simulated))
    }
}
