//! Recording what each request cost, and reporting cached tokens that were paid for again.

use std::sync::Arc;

use hardpan_context::{AssembledPrompt, Breakdown};
use hardpan_economy::cache::{CacheModel, CacheRequest, CacheRules};
use hardpan_economy::forecast::{CostForecast, PlannedAction};
use hardpan_economy::{Charge, Ledger, Verdict};
use hardpan_prompt::{MessageId, Prompt, PromptTokens, TokenUsage};
use hardpan_providers::Answer;
use hardpan_session::RequestRecord;
use jiff::Timestamp;

use crate::agent::{Agent, lock};
use crate::events::CacheVerdict;
use crate::model_selection::ModelSelection;
use crate::preview::RequestPreview;
use crate::session_ledger::{CacheBase, RequestBill, TaskRequest, moment, row_for_key};

/// When a request was sent, and when the first part of its answer arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTimes {
    pub sent: Timestamp,
    pub began: Timestamp,
}

impl Agent {
    /// Bills a request, a `turn` of the conversation or a helper's, and returns the verdict if
    /// cached tokens were paid for again. Nobody waits for the record to be written.
    pub(crate) fn record_bill(
        &self,
        purpose: &str,
        selection: &ModelSelection,
        ((prompt, measured), base): ((&Prompt, &PromptTokens), CacheBase),
        message: Option<&MessageId>,
        answer: &Answer,
        RequestTimes { sent, began }: RequestTimes,
    ) -> Option<Verdict> {
        let ended = self.now();
        let day = self.inner.setup.context_source.day(sent);
        let (target, layout) = (&selection.target, selection.layout.as_str());
        let billed = RequestBill {
            purpose,
            base,
            target,
            layout,
            prompt,
            measured,
            message,
            usage: answer.usage.as_ref(),
            searches: answer.billed_searches(),
            answer_id: &answer.id,
            diagnosis: answer.diagnosis.filter(|_| self.previous_answer(selection).is_some()),
            sent,
            began,
            ended,
            day: &day,
            is_simulated: self.inner.setup.client_factory.is_simulated(),
        };
        let (record, _stored, loss) = lock(&self.inner.conversation).bill_request(&billed);
        self.tell_bill(&record);
        loss
    }

    /// Adds a request of a sub-agent to the bill of this conversation: as a line of its own, in its
    /// totals, and in its session file.
    pub fn record_task_request(&self, task: &TaskRequest<'_>) {
        let record = lock(&self.inner.conversation).bill_task_request(task, self.now());
        self.tell_bill(&record);
    }

    /// Calls `listener` with the record of each request from now on, as soon as it is billed.
    pub fn on_bill(&self, listener: impl Fn(&RequestRecord) + Send + Sync + 'static) {
        lock(&self.inner.bill_listeners).push(Arc::new(listener));
    }

    fn tell_bill(&self, record: &RequestRecord) {
        let listeners = lock(&self.inner.bill_listeners).clone();
        listeners.iter().for_each(|listener| listener(record));
    }

    /// What the provider is expected to bill for the prompt of `preview`, given what the last request of
    /// this agent left in its cache. The two share nothing if their models differ.
    pub fn predict_bill(&self, preview: &RequestPreview) -> TokenUsage {
        let target = &preview.target;
        let rules = CacheRules::for_model(&target.model, &target.profile);
        let mut cache = CacheModel::new();
        let last_request = lock(&self.inner.last_request).clone();
        let answered = lock(&self.inner.conversation).last_request.clone().map(|(at, ..)| moment(at));
        if let Some((last, at)) = last_request.zip(answered)
            && last.target.provider == target.provider
        {
            let (prompt, measured) = last.sent_prompt();
            cache.commit(&rules, &CacheRequest::from_prompt(prompt, measured, at), at);
        }
        let AssembledPrompt { prompt, measured, .. } = &preview.assembled;
        cache.plan(&rules, &CacheRequest::from_prompt(prompt, measured, moment(self.now()))).amounts
    }

    /// The provider's id of the branch's last answer, if the same provider gave it.
    pub(crate) fn previous_answer(&self, selection: &ModelSelection) -> Option<Arc<str>> {
        let last = lock(&self.inner.conversation).last_answer.clone();
        last.filter(|(provider, _)| **provider == *selection.target.provider).map(|(_, id)| id)
    }

    /// Emits a [`CacheVerdict`] if there was a loss.
    pub(crate) async fn emit_cache_loss(&self, message: Option<&MessageId>, loss: Option<Verdict>) {
        if let Some(verdict) = loss {
            let sentence = verdict.sentence();
            self.events().emit(self, CacheVerdict { message: message.cloned(), verdict, sentence }).await;
        }
    }

    /// How the last turn used the cache, with or without a loss; `None` before the first turn of
    /// this process.
    pub fn last_verdict(&self) -> Option<Verdict> {
        lock(&self.inner.conversation).billing.last.as_ref().map(|(_, verdict)| verdict.clone())
    }

    /// The bill of the last turn, split over what its prompt contained; `None` before the first
    /// turn of this process.
    pub fn last_charge(&self) -> Option<Charge> {
        lock(&self.inner.conversation).billing.last.as_ref().map(|(charge, _)| charge.clone())
    }

    /// Everything that was paid for in this session.
    pub fn ledger(&self) -> Ledger {
        lock(&self.inner.conversation).billing.ledger.clone()
    }

    /// When the conversation's cache entries expire unless they are used before. `None` if nothing
    /// is cached, or the provider's cache lifetime is unknown.
    pub fn cache_expires(&self) -> Option<Timestamp> {
        lock(&self.inner.conversation).billing.expires()
    }

    /// What an act (switching the model, closing a file, …) would cost now, and when it would be
    /// free; `None` before the first request.
    pub fn forecast_cost(&self, act: PlannedAction<'_>) -> Option<CostForecast> {
        let next = self.target();
        let act = match act {
            PlannedAction::ToggleTool(name) if self.tool_changes_are_free() => {
                PlannedAction::AppendToolChange(name)
            }
            act => act,
        };
        let last_request = lock(&self.inner.last_request).clone();
        let last = last_request.as_ref().map_or(&next, |last_request| &last_request.target);
        lock(&self.inner.conversation).billing.forecast_cost(act, last, &next, self.now())
    }

    /// Fills in what the provider billed for each panel, if the layout reports cache hits at all.
    pub(crate) fn with_billed_costs(&self, mut breakdown: Breakdown) -> Breakdown {
        let conversation = lock(&self.inner.conversation);
        let Some((charge, _)) = &conversation.billing.last else { return breakdown };
        let contents = breakdown.blocks.iter_mut().flat_map(|block| &mut block.contents);
        for content in contents.filter(|content| content.hit.is_some()) {
            if let Some(row) = row_for_key(charge, &content.key()) {
                content.hit = Some(row.tokens.cache_read > row.tokens.prompt() / 2);
                content.cost = Some(conversation.billing.ledger.totals_for_key(&content.key()).dollars);
            }
        }
        breakdown
    }
}
