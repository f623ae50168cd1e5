//! Building a request: the conversation and the workspace become a [`Snapshot`], which becomes a
//! prompt that the provider will accept.

use std::ops::ControlFlow;
use std::sync::Arc;

use hardpan_context::{AssembledPrompt, FoldReason, RenderCache, Snapshot, assemble};
use hardpan_prompt::validate::validate;
use hardpan_prompt::{AgentMessage, ItemKind, MessageId};
use jiff::Timestamp;

use crate::agent::{Agent, lock};
use crate::conversation::Conversation;
use crate::error::BuildError;
use crate::events::ContextEvent;
use crate::model_selection::ModelSelection;
use crate::run::RunState;
use crate::setup::ObserveError;

impl Agent {
    /// The conversation as the handlers of the `context` event leave it. Without handlers there is
    /// only one copy.
    pub(crate) async fn context_messages(&self) -> Vec<AgentMessage> {
        let messages = lock(&self.inner.conversation).messages.clone();
        if !self.events().has_handlers::<ContextEvent>() {
            return messages;
        }
        let take = |event: &mut ContextEvent, reply: Option<Vec<AgentMessage>>| {
            event.messages = reply.unwrap_or_else(|| std::mem::take(&mut event.messages));
            ControlFlow::Continue(())
        };
        let (event, faults) = self.events().ask_handlers(self, ContextEvent { messages }, take).await;
        self.events().report_faults(&faults);
        event.messages
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
        let conversation = lock(&self.inner.conversation);
        for item in snapshot.items.iter_mut().filter(|item| item.kind == ItemKind::File) {
            // The call that read or changed the file already showed this content to the model.
            let known_file = conversation
                .knowledge
                .known_whole(item.name())
                .filter(|known| known.hash == item.body.hash());
            item.shown_by = known_file.and_then(|known| known.message.clone()).or(item.shown_by.take());
        }
        let is_free = self.is_fold_free(&conversation, selection, snapshot.now);
        snapshot.fold = snapshot.fold.or(is_free.then_some(FoldReason::CacheLost));
        snapshot.system.whole = run_state.system_prompt_override.clone();
        snapshot.tools = self.tools().declarations();
        snapshot.keep = self.keep();
        snapshot.thinking = selection.thinking;
        snapshot.messages = messages;
        snapshot.first_unsent = fresh;
        snapshot.knowledge = conversation.knowledge.clone();
        snapshot.layout_state = conversation.memory.current().clone();
        snapshot.answer_prefixes = conversation.answer_prefixes.clone();
        snapshot.stale_reasoning = conversation.stale_reasoning.clone();
        Ok(snapshot)
    }

    /// Whether a fold costs nothing now: the cache is lost anyway (expired, or another model was
    /// selected), and there is garbage to drop.
    fn is_fold_free(&self, conversation: &Conversation, selection: &ModelSelection, now: Timestamp) -> bool {
        let ModelSelection { target, layout, .. } = selection;
        let Some((at, provider, model)) = &conversation.last_request else { return false };
        let other = **provider != *target.provider || **model != *target.model.id;
        let age = now.as_second() - at.as_second();
        let expired = target.profile.cache.lifetime.is_some_and(|lifetime| age >= i64::from(lifetime));
        (other || expired) && layout.layout().garbage_tokens(conversation.memory.current()) > 0
    }

    pub(crate) fn assemble_request(
        &self,
        run_state: &mut RunState,
        selection: &ModelSelection,
        snapshot: &Snapshot,
    ) -> Result<AssembledPrompt, BuildError> {
        let target = &selection.target;
        if target.vocabulary() != run_state.vocabulary {
            run_state.vocabulary = target.vocabulary();
            run_state.render_cache = Arc::new(RenderCache::new(run_state.vocabulary));
        }
        let texts = &self.inner.setup.texts;
        let assembled = assemble(snapshot, selection.layout, target, texts, &run_state.render_cache)?;
        let rules = hardpan_providers::validation_rules(&target.profile, &target.model);
        validate(&assembled.prompt, &rules)?;
        Ok(assembled)
    }
}
