//! How long the cache will live, and keeping it warm while that pays.

use hardpan_economy::{Pause, Rates};
use hardpan_models::CacheKind;
use hardpan_prompt::{Prompt, Thinking};
use hardpan_providers::Question;
use serde::Serialize;

use crate::agent::{Agent, AgentError, lock};
use crate::bill::Times;
use crate::books::On;
use crate::spending::Spent;
use crate::turn::TextForms;

/// So long before its entries expire a cache is pinged, in seconds: time for the request itself.
const EARLY: u32 = 20;

/// What is known of the cache that the last request left.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Warmth {
    /// Seconds until its entries expire; negative once they have.
    pub expires_in: i64,
    /// Tokens that would have to be written anew.
    pub tokens: usize,
    /// How often it was kept warm in this pause.
    pub pings: u32,
    /// Whether a ping is expected to save more than it costs.
    pub ping_pays: bool,
}

impl Warmth {
    /// Seconds until a ping is due; none where it would not pay.
    pub fn ping_in(&self) -> Option<u64> {
        let due = self.expires_in - i64::from(EARLY);
        u64::try_from(due).ok().filter(|_| self.ping_pays)
    }
}

impl Agent {
    /// How warm the cache is; none before the first request, and where a provider tells no lifetime.
    pub fn warmth(&self) -> Option<Warmth> {
        let asked = lock(&self.inner.asked);
        let asked = asked.as_ref()?;
        let cache = &asked.target.wire.cache;
        let lifetime = cache.lifetime?;
        let conversation = lock(&self.inner.conversation);
        let (at, ..) = conversation.last.as_ref()?;
        let age = self.now().as_second() - at.as_second();
        let tokens = asked.assembled.measured.total();
        let pause = Pause {
            gaps: &conversation.gaps,
            // Pings start the clock of the entries again, not that of the pause.
            idle: lifetime.saturating_mul(conversation.pings + 1).saturating_sub(EARLY),
            lifetime,
            tokens,
            garbage: conversation.memory.strata.account.garbage,
            ratios: Rates::of(&asked.target.model, &asked.target.wire, tokens).ratios(),
            pings: conversation.pings,
        };
        // Thinking is part of what is cached, and a ping that thinks costs more than it saves.
        let can = cache.kind == CacheKind::Markers && asked.assembled.prompt.thinking == Thinking::Off;
        let (expires_in, pings) = (i64::from(lifetime) - age, conversation.pings);
        Some(Warmth { expires_in, tokens, pings, ping_pays: can && pause.pays() })
    }

    /// Sends the last request once more, asking for next to nothing, so that what it cached lives on.
    pub async fn ping(&self) -> Result<Spent, AgentError> {
        let _idle = self.inner.bench.try_lock().map_err(|_| AgentError::Busy)?;
        let failed = |reason: String| AgentError::Ping { reason };
        let choice = self.choice().map_err(failed)?;
        let asked = lock(&self.inner.asked).clone();
        let asked = asked.ok_or_else(|| failed("nothing has been sent yet".into()))?;
        let client = choice.client.clone().ok_or_else(|| failed("there is no client".into()))?;
        let prompt = Prompt { max_tokens: 1, ..asked.sent().0.clone() };
        let started = self.now();
        let forms = TextForms::new(&self.inner.setup.texts);
        let question = Question {
            prompt: &prompt,
            wire: &asked.target.wire,
            provider: &asked.target.provider,
            forms: &forms,
            now_ms: started.as_millisecond(),
        };
        let answer = client.ask(&question, &mut |_| {}).await.map_err(|error| failed(error.to_string()))?;
        let times = Times { sent: started, began: self.now() };
        let sent = ((&prompt, asked.sent().1), On::Conversation);
        drop(self.bill("ping", &choice, sent, None, answer.usage.as_ref(), times));
        Ok(answer.usage.as_ref().map(|usage| Spent::of(usage, &asked.target)).unwrap_or_default())
    }
}
