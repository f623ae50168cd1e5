//! [`ModelSelection`]: the model, the layout and the thinking setting of the next request.

use std::sync::{Arc, OnceLock};

use hardpan_context::{KeepLevel, LayoutName, LifetimeSetting, Target};
use hardpan_models::ThinkingSetting;
use hardpan_providers::{Client, UnsupportedFeature};
use hardpan_session::{LAYOUT_RECORD, PendingSave, Record};

use crate::agent::{Agent, lock};
use crate::error::AgentError;
use crate::events::{ModelSelect, ThinkingSelect};
use crate::setup::ClientFactoryError;

/// Model, layout and thinking level of the next request. Clones share `client`, which is built on
/// first use; it is replaced by an empty one when the model or the session changes.
#[derive(Clone)]
pub(crate) struct ModelSelection {
    pub target: Target,
    pub layout: LayoutName,
    pub thinking: ThinkingSetting,
    pub client: Arc<OnceLock<Arc<Client>>>,
}

impl Agent {
    /// The provider and model of the next request.
    pub fn target(&self) -> Target {
        lock(&self.inner.selection).target.clone()
    }

    /// The layout of the next request.
    pub fn layout(&self) -> LayoutName {
        lock(&self.inner.selection).layout
    }

    /// For how long the provider is asked to keep what requests cache.
    pub fn cache_lifetime(&self) -> LifetimeSetting {
        self.inner.setup.cache_lifetime
    }

    /// How much of the conversation a fold may take out of requests.
    pub fn keep(&self) -> KeepLevel {
        self.inner.setup.keep
    }

    /// How much the model thinks from the next request on.
    pub fn thinking(&self) -> ThinkingSetting {
        lock(&self.inner.selection).thinking
    }

    /// Stores model and layout of a conversation that begins: until a request is answered nothing else
    /// tells of them, and the conversation must go on with the same ones, however it is interrupted.
    /// `None`: they are stored already.
    pub(crate) fn store_first_choice(&self) -> Option<PendingSave> {
        let (provider, model, layout) = {
            let selection = lock(&self.inner.selection);
            let ModelSelection { target, layout, .. } = &*selection;
            (Arc::from(target.provider.as_str()), Arc::from(target.model.id.as_str()), layout.as_str())
        };
        let mut conversation = lock(&self.inner.conversation);
        if conversation.requests > 0 || conversation.model.is_some() {
            return None;
        }
        conversation.model = Some((Arc::clone(&provider), Arc::clone(&model)));
        let layout = Record::Custom { custom_type: LAYOUT_RECORD.into(), data: layout.into() };
        drop(conversation.append_record(Record::ModelChange { provider, model }, self.now()));
        // Entries are written in order: the last one is stored when all are.
        Some(conversation.append_record(layout, self.now()))
    }

    /// Selects the model from the next request on, and stores the choice in the session.
    pub async fn select_model(&self, target: Target) -> Result<(), AgentError> {
        let now = self.now();
        let saved = {
            let record = Record::ModelChange {
                provider: target.provider.as_str().into(),
                model: target.model.id.as_str().into(),
            };
            lock(&self.inner.conversation).append_record(record, now)
        };
        saved.await?;
        let (previous, model) = {
            let mut selection = lock(&self.inner.selection);
            let previous = selection.target.model.name();
            (selection.target, selection.client) = (target, Arc::default());
            (previous, selection.target.model.name())
        };
        self.events().emit(self, ModelSelect { previous, model }).await;
        Ok(())
    }

    /// Begins with another model, before anything was sent. Nothing is stored, and nobody is told.
    pub fn begin_with_model(&self, target: Target) {
        let mut selection = lock(&self.inner.selection);
        (selection.target, selection.client) = (target, Arc::default());
    }

    /// Selects the layout from the next request on, and stores the choice in the session.
    pub async fn select_layout(&self, layout: LayoutName) -> Result<(), AgentError> {
        let record = Record::Custom { custom_type: LAYOUT_RECORD.into(), data: layout.as_str().into() };
        let saved = lock(&self.inner.conversation).append_record(record, self.now());
        saved.await?;
        lock(&self.inner.selection).layout = layout;
        Ok(())
    }

    /// Has the next request fold, where the layout folds: garbage is dropped, and what follows it is
    /// written again.
    pub fn request_fold(&self) {
        lock(&self.inner.conversation).is_fold_requested = true;
    }

    /// Sets how much the model thinks from the next request on, and stores it in the session.
    pub async fn select_thinking(&self, thinking: ThinkingSetting) -> Result<(), AgentError> {
        let saved = lock(&self.inner.conversation).set_thinking(thinking, self.now());
        if let Some(saved) = saved {
            saved.await?;
        }
        let previous = std::mem::replace(&mut lock(&self.inner.selection).thinking, thinking);
        if previous != thinking {
            let (previous, thinking) = (previous.to_string(), thinking.to_string());
            self.events().emit(self, ThinkingSelect { previous, thinking }).await;
        }
        Ok(())
    }

    /// Whether a thinking setting can be changed without losing the cache: only the effort differs,
    /// and the layout tells the model of that in a message.
    pub fn thinking_change_is_free(&self, setting: ThinkingSetting) -> bool {
        let selection = lock(&self.inner.selection);
        let target = &selection.target;
        let (now, then) = (target.thinking_request(selection.thinking), target.thinking_request(setting));
        now.thinking == then.thinking
            && (now.effort == then.effort
                || target.model.message_effort
                    && now.thinking.is_on()
                    && selection.layout.layout().appends_effort())
    }

    /// Stores the thinking level that a flag or setting chose, so that a resumed session keeps it.
    pub(crate) fn record_thinking(&self) {
        let thinking = self.thinking();
        drop(lock(&self.inner.conversation).set_thinking(thinking, self.now()));
    }

    /// The current selection, and a client for it. No lock is held while the client is built, which
    /// may read keys from files.
    pub(crate) fn selection_with_client(&self) -> Result<(ModelSelection, Arc<Client>), ClientFactoryError> {
        let mut selection = lock(&self.inner.selection).clone();
        let client = match selection.client.get() {
            Some(client) => client.clone(),
            None => {
                let session = lock(&self.inner.conversation).session.clone();
                let client = self.inner.setup.client_factory.client(&selection.target, &session)?;
                // If another model was selected meanwhile, this stays with the old selection.
                selection.client.get_or_init(|| Arc::new(client)).clone()
            }
        };
        let Target { provider, profile, model, .. } = &selection.target;
        let refused = client.known_refusals(provider, profile, &model.id, self.now().as_millisecond());
        if refused.features().any(|feature| feature == UnsupportedFeature::Tools) {
            // Planned as for a model without tools: the system prompt must not speak of any.
            selection.target.model.tools = false;
        }
        Ok((selection, client))
    }
}
