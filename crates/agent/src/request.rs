//! Building a request: the conversation and the workspace become a [`Snapshot`], which becomes a
//! prompt that the provider will accept.
//!
//! [`Agent::plan_request`] is the one way to it, for requests that are sent and for those that are
//! only shown.

use std::ops::ControlFlow;
use std::sync::Arc;

use hardpan_context::{AssembledPrompt, EphemeralText, FoldReason, RenderCache, Snapshot, assemble};
use hardpan_economy::PauseCounts;
use hardpan_prompt::validate::validate;
use hardpan_prompt::{AgentMessage, ItemKind, MessageBody, MessageId, MessagePart, Prompt, Text};
use hardpan_providers::{ClientRequest, PromptFallbacks};
use jiff::Timestamp;

use crate::agent::{Agent, lock};
use crate::conversation::Conversation;
use crate::error::{BuildError, PlanError};
use crate::events::ContextEvent;
use crate::extension_changes::{Change, ExtensionChange};
use crate::model_selection::ModelSelection;
use crate::pages::page_items;
use crate::run::RunState;
use crate::setup::ObserveError;

/// What the next request of the conversation says.
pub(crate) struct RequestContent {
    pub messages: Vec<AgentMessage>,
    /// What handlers put after the conversation, for this request alone.
    pub appended: Vec<EphemeralText>,
    /// The first message that no request has carried yet.
    pub fresh: Option<MessageId>,
    /// Whether the user asked for a fold.
    pub fold: Option<FoldReason>,
}

/// What the handlers of the `context` event made of a conversation.
#[derive(Default)]
pub(crate) struct HandledContext {
    pub messages: Vec<AgentMessage>,
    /// What they put after it.
    pub appended: Vec<EphemeralText>,
    /// Who changed what.
    pub changes: Vec<ExtensionChange>,
}

/// A request that could be sent now.
pub(crate) struct PlannedRequest {
    pub snapshot: Snapshot,
    pub assembled: AssembledPrompt,
    /// The provider's id of the answer before, where the provider gave one.
    pub previous_answer: Option<Arc<str>>,
}

impl PlannedRequest {
    /// What the client is given to send it.
    pub fn client_request<'a>(
        &'a self,
        selection: &'a ModelSelection,
        fallbacks: &'a dyn PromptFallbacks,
        now: Timestamp,
    ) -> ClientRequest<'a> {
        ClientRequest {
            prompt: &self.assembled.prompt,
            profile: &selection.target.profile,
            provider: &selection.target.provider,
            fallbacks,
            previous_answer: self.previous_answer.as_deref(),
            now_ms: now.as_millisecond(),
        }
    }
}

impl Agent {
    /// Builds the next request of the conversation. Commits nothing.
    pub(crate) async fn plan_request(
        &self,
        run_state: &mut RunState,
        selection: &ModelSelection,
        RequestContent { messages, appended, fresh, fold }: RequestContent,
    ) -> Result<PlannedRequest, PlanError> {
        let mut snapshot = self.build_snapshot(run_state, selection, fresh, messages)?;
        snapshot.fold = fold.or(snapshot.fold);
        snapshot.ephemeral.splice(..0, appended);
        self.prepare_layout_state(run_state, selection, &mut snapshot).await;
        let assembled = self.assemble_request(run_state, selection, &mut snapshot)?;
        Ok(PlannedRequest { snapshot, assembled, previous_answer: self.previous_answer(selection) })
    }

    /// A conversation as the handlers of the `context` event leave it, and who changed it.
    pub(crate) async fn context_messages(&self, messages: Vec<AgentMessage>) -> HandledContext {
        if !self.events().has_handlers::<ContextEvent>() {
            return HandledContext { messages, ..HandledContext::default() };
        }
        let mut changes = Vec::new();
        let last = messages.last().map(|message| message.id.clone());
        let take = |event: &mut ContextEvent, reply: Option<Vec<AgentMessage>>, owner: &Arc<str>| {
            if let Some(returned) = reply {
                let change = Change::of_messages(&event.messages, &returned);
                changes.extend(change.map(|change| ExtensionChange { extension: owner.clone(), change }));
                event.messages = returned;
            }
            ControlFlow::Continue(())
        };
        let (event, faults) = self.events().ask_owners(self, ContextEvent { messages }, take).await;
        self.events().report_faults(&faults);
        let mut messages = event.messages;
        let appended = split_appended(&mut messages, last.as_ref(), &changes);
        HandledContext { messages, appended, changes }
    }

    /// Collects everything the next request depends on.
    pub(crate) fn build_snapshot(
        &self,
        run_state: &RunState,
        selection: &ModelSelection,
        fresh: Option<MessageId>,
        messages: Vec<AgentMessage>,
    ) -> Result<Snapshot, ObserveError> {
        let mut snapshot = run_state.observed_snapshot()?.clone();
        snapshot.now = self.now();
        self.inner.setup.context_source.add_panels(&mut snapshot);
        let conversation = lock(&self.inner.conversation);
        for item in snapshot.items.iter_mut().filter(|item| item.kind == ItemKind::File) {
            // The call that read or changed the file already showed this content to the model.
            let known_file = conversation
                .knowledge
                .known_whole(item.name())
                .filter(|known| known.hash == item.body.hash());
            item.shown_by = known_file.and_then(|known| known.message.clone()).or(item.shown_by.take());
        }
        snapshot.items.extend(page_items(&conversation.custom));
        let requested = conversation.is_fold_requested.then_some(FoldReason::Requested);
        let lost = Self::lost_cache(&conversation, selection, snapshot.now);
        snapshot.fold = snapshot.fold.or(lost).or(requested);
        self.add_discovered_skills(&mut snapshot);
        snapshot.cache_lifetime = self.cache_lifetime();
        let pauses = conversation.pauses.iter().copied().chain(conversation.pause_until(snapshot.now));
        snapshot.pauses = PauseCounts::new(pauses, &selection.target.profile.cache);
        snapshot.system.whole = run_state.system_prompt_override.clone();
        snapshot.system.edit_blocks =
            self.uses_edit_blocks(snapshot.system.edit_blocks, selection.target.model.tools);
        snapshot.tools = self.tools().declarations();
        snapshot.keep = self.keep();
        snapshot.thinking = selection.thinking;
        snapshot.messages = messages;
        snapshot.first_unsent = fresh;
        snapshot.knowledge = conversation.knowledge.clone();
        snapshot.layout_state = conversation.memory.current().clone();
        snapshot.detach = conversation.freeze.unwrap_or(snapshot.detach);
        snapshot.answer_prefixes = conversation.answer_prefixes.clone();
        snapshot.stale_reasoning = conversation.stale_reasoning.clone();
        snapshot.ephemeral = lock(&self.inner.ephemeral).clone();
        snapshot.redactions = lock(&self.inner.secrets).redactions();
        Ok(snapshot)
    }

    /// What is lost of the cache of the last request, since entries expired or another model was
    /// selected: folds after what is left cost nothing.
    fn lost_cache(
        conversation: &Conversation,
        selection: &ModelSelection,
        now: Timestamp,
    ) -> Option<FoldReason> {
        let (at, provider, model) = conversation.last_request.as_ref()?;
        selection.target.lost_cache(provider, model, now.as_second() - at.as_second())
    }

    /// Looks for secrets in a prompt. Returns whether the snapshot has learned to replace some.
    fn replace_secrets(&self, prompt: &Prompt, snapshot: &mut Snapshot) -> bool {
        let mut secrets = lock(&self.inner.secrets);
        let found = secrets.inspect(prompt);
        if found {
            snapshot.redactions = secrets.redactions();
        }
        found
    }

    pub(crate) fn assemble_request(
        &self,
        run_state: &mut RunState,
        selection: &ModelSelection,
        snapshot: &mut Snapshot,
    ) -> Result<AssembledPrompt, BuildError> {
        let target = &selection.target;
        if target.vocabulary() != run_state.vocabulary {
            run_state.vocabulary = target.vocabulary();
            run_state.render_cache = Arc::new(RenderCache::new(run_state.vocabulary));
        }
        let texts = &self.inner.setup.texts;
        let mut assembled = assemble(snapshot, selection.layout, target, texts, &run_state.render_cache)?;
        // Once more if something in it must not be sent. What is in no secret's place cannot become one.
        if self.replace_secrets(&assembled.prompt, snapshot) {
            assembled = assemble(snapshot, selection.layout, target, texts, &run_state.render_cache)?;
        }
        let rules = hardpan_providers::validation_rules(&target.profile, &target.model);
        validate(&assembled.prompt, &rules)?;
        Ok(assembled)
    }
}

/// Takes what handlers put after the last message of the conversation out of the messages. It is gone with
/// the next request, so it must not stand where the cache ends: it becomes text for one request.
fn split_appended(
    messages: &mut Vec<AgentMessage>,
    last: Option<&MessageId>,
    changes: &[ExtensionChange],
) -> Vec<EphemeralText> {
    let end = messages.iter().rposition(|message| Some(&message.id) == last);
    let appended = end.and_then(|end| messages.get(end + 1..)).unwrap_or_default();
    let text = |message: &AgentMessage| {
        let change = changes.iter().rev().find(|change| change.touches(&message.id))?;
        Some(EphemeralText { extension: change.extension.clone(), text: plain_text(message)? })
    };
    // Anything but text of the user's side stays where it was put.
    let texts: Vec<EphemeralText> = appended.iter().map(text).collect::<Option<_>>().unwrap_or_default();
    messages.truncate(messages.len() - texts.len());
    texts
}

/// The text of a message that the model reads as the user's, if it is nothing but text.
fn plain_text(message: &AgentMessage) -> Option<Text> {
    let (MessageBody::User { content } | MessageBody::Custom { content, .. }) = &*message.body else {
        return None;
    };
    let texts: Option<Vec<&str>> = content
        .iter()
        .map(|part| match part {
            MessagePart::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    Some(texts?.join("\n")).filter(|text| !text.trim().is_empty()).map(Text::new)
}
