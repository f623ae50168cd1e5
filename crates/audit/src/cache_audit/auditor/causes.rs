//! Why a request read less than was there: the most likely cause, from what the recording tells.

use hardpan_economy::Cause;

use super::forecast::CacheForecast;
use super::{Auditor, MIN_LOSS_TOKENS, is_short};
use crate::BilledRequest;
use crate::cache_audit::frontiers::Frontier;
use crate::cache_audit::provider_model::ProviderModel;
use crate::cache_audit::{CauseSource, LossCause, UnexplainedLoss};

impl Auditor<'_> {
    /// The most likely cause of a loss, and where it is known from.
    pub(super) fn find_cause(
        &self,
        request: &BilledRequest,
        forecast: &CacheForecast,
    ) -> (LossCause, CauseSource) {
        if let Some(verdict) = request.verdict.as_ref().filter(|verdict| verdict.is_loss()) {
            return (LossCause::Recorded(verdict.cause.clone()), CauseSource::Verdict);
        }
        let Some(last) = self.recorded.nearest_frontier(forecast.node) else {
            return (self.unexplained(request, forecast), CauseSource::Inferred);
        };
        let before = self.recording.requests[last.request].shape.as_deref();
        let shapes = request.shape.as_deref().zip(before);
        // Two requests of which everything is recorded leave nothing to conclusions.
        let source = match shapes {
            Some((now, before)) if now.is_complete() && before.is_complete() => CauseSource::Request,
            _ => CauseSource::Inferred,
        };
        if let Some(cause) = self.cause_of_wider_loss(request, forecast, last) {
            return (LossCause::Recorded(cause), source);
        }
        if let Some(cause) = shapes.and_then(|(now, before)| now.difference_from(before)) {
            return (LossCause::Recorded(cause), CauseSource::Request);
        }
        if let Some(cause) = self.cause_in_messages(request, forecast, last) {
            return (cause, source);
        }
        match source {
            CauseSource::Request => (LossCause::Unrecorded(UnexplainedLoss::SameRequest), source),
            _ => (self.unexplained(request, forecast), source),
        }
    }

    /// What loses a whole prefix, whatever its content is: another cache, no entry, or an old one.
    fn cause_of_wider_loss(
        &self,
        request: &BilledRequest,
        forecast: &CacheForecast,
        last: &Frontier,
    ) -> Option<Cause> {
        let (model, before) = (&self.models[forecast.key.model], &self.models[last.key.model]);
        let minimum = model.minimum();
        let idle_ms = request.started.since(last.used);
        let lifetime_ms = if model.has_markers() { last.lifetime_ms } else { model.usual_lifetime_ms() };
        let expired = lifetime_ms.filter(|lifetime| idle_ms > (*lifetime).max(model.longest_idle_hit_ms));
        if last.key.model != forecast.key.model {
            return Some(if before.model == model.model {
                let name =
                    |model: &ProviderModel| model.provider.clone().unwrap_or_else(|| "an unknown one".into());
                Cause::ProviderChanged { from: name(before), to: name(model) }
            } else {
                Cause::ModelChanged { from: before.model.clone(), to: model.model.clone() }
            });
        }
        if last.key.compactions != forecast.key.compactions || request.compacted {
            return Some(Cause::Compacted);
        }
        if last.tokens == 0 && last.prompt < minimum {
            return Some(Cause::BelowMinimum { tokens: last.prompt, minimum });
        }
        if last.tokens == 0 {
            return Some(Cause::Unmarked);
        }
        expired.map(|lifetime| Cause::Expired {
            minutes: minutes(idle_ms),
            lifetime: minutes(lifetime),
            avoidable_by: None,
        })
    }

    /// What loses the cache of the messages, as far as the conversation tells.
    fn cause_in_messages(
        &self,
        request: &BilledRequest,
        forecast: &CacheForecast,
        last: &Frontier,
    ) -> Option<LossCause> {
        let new_blocks = self.nodes.positions[forecast.node].saturating_sub(self.nodes.positions[last.node]);
        let look_back = self.models[forecast.key.model].look_back();
        if last.key.level != forecast.key.level {
            return Some(LossCause::Recorded(Cause::ThinkingChanged));
        }
        if last.key.images != forecast.key.images {
            let cause = if forecast.key.images { Cause::ImageAdded } else { Cause::ImageRemoved };
            return Some(LossCause::Recorded(cause));
        }
        if request.started < last.ended && self.read_what_was_before(request, forecast) {
            return Some(LossCause::Unrecorded(UnexplainedLoss::NotYetAnswered));
        }
        let look_back = look_back.filter(|limit| new_blocks >= *limit as usize)?;
        Some(LossCause::Recorded(Cause::TooManyNewBlocks { blocks: new_blocks, look_back }))
    }

    /// What the bill shows of a loss that nothing recorded explains.
    fn unexplained(&self, request: &BilledRequest, forecast: &CacheForecast) -> LossCause {
        let read = request.usage.cache_read;
        let automatic = !self.models[forecast.key.model].has_markers();
        LossCause::Unrecorded(match (read < MIN_LOSS_TOKENS, automatic) {
            (true, true) => UnexplainedLoss::WholePrefixAutomatic,
            (true, false) => UnexplainedLoss::WholePrefix,
            (false, true) => UnexplainedLoss::AllButAutomatic(read),
            (false, false) => UnexplainedLoss::AllBut(read),
        })
    }

    /// Whether the request read all that the requests before the previous one had left.
    fn read_what_was_before(&self, request: &BilledRequest, forecast: &CacheForecast) -> bool {
        let patience = self.models[forecast.key.model].longest_idle_hit_ms;
        let before = self.recorded.readable_before(forecast.node, &forecast.key, request.started, patience);
        before.is_none_or(|before| !is_short(before.tokens, request.usage.cache_read))
    }
}

fn minutes(ms: i64) -> u64 {
    u64::try_from(ms / 60_000).unwrap_or(0)
}
