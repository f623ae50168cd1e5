//! [`AwaitedTarget`]: a model whose provider an extension may bring. Extensions are loaded after the
//! conversation is open, so until then it has another model.

use std::sync::Arc;

use hardpan_agent::Conversation;
use hardpan_context::Target;

use crate::conversation_app::ConversationApp;
use crate::learned_state::LearnedState;
use crate::notice::Notice;
use crate::open::{OpenError, choose_target};
use crate::options::TargetOptions;
use crate::settings::Settings;
use crate::target::{
    NamedTarget, TargetError, apply_learned_factor, choose_named, known_session_model, limit_answer,
    resolve_named,
};

/// A model that is named, of a provider that is not known yet.
pub(crate) struct AwaitedTarget {
    named: NamedTarget,
    options: TargetOptions,
    /// The model that the session had, if that is the one.
    of_session: Option<(Arc<str>, Arc<str>)>,
}

impl AwaitedTarget {
    /// The model that is named, if only an extension can bring it.
    pub fn find(options: &TargetOptions, settings: &Settings, conversation: &Conversation) -> Option<Self> {
        let own = |(provider, model): &(Arc<str>, Arc<str>)| (provider.to_string(), model.to_string());
        let session = conversation.model.as_ref().map(own);
        let named = NamedTarget::find(options, settings, session.clone());
        let is_own = session.is_some_and(|(provider, model)| {
            (Some(provider), Some(model)) == (named.provider.clone(), named.model.clone())
        });
        let of_session = conversation.model.clone().filter(|_| is_own);
        let awaited = AwaitedTarget { named, options: options.clone(), of_session };
        awaited.named.is_unknown(settings).then_some(awaited)
    }

    /// The model until extensions are loaded.
    pub fn stand_in(&self, settings: &Settings) -> Result<Target, TargetError> {
        choose_named(NamedTarget::default(), settings)
    }
}

/// The model of a conversation, and the one that takes its place once extensions are loaded.
pub(crate) fn choose_or_await(
    options: &TargetOptions,
    settings: &Settings,
    conversation: &Conversation,
    state: &LearnedState,
    notices: &dyn crate::notice::NoticeSink,
    has_extensions: bool,
) -> Result<(Target, Option<AwaitedTarget>), OpenError> {
    let awaited = has_extensions.then(|| AwaitedTarget::find(options, settings, conversation)).flatten();
    match awaited {
        Some(awaited) => Ok((awaited.stand_in(settings)?, Some(awaited))),
        None => Ok((choose_target(options, settings, conversation, state, notices)?, None)),
    }
}

impl ConversationApp {
    /// Takes the model that was waited for, once extensions are loaded, and the address of a provider that
    /// an extension has changed.
    pub(crate) fn take_awaited_target(&self, awaited: Option<AwaitedTarget>) -> Result<(), OpenError> {
        let brought = &self.extensions.providers;
        let Some(AwaitedTarget { named, options, of_session }) = awaited else {
            let target = self.agent.target();
            if let Some(changed) = brought.find(Some(&target.provider), &target.model.id)
                && changed.profile != target.profile
            {
                self.agent.begin_with_model(Target { max_tokens: target.max_tokens, ..changed });
            }
            return Ok(());
        };
        let model = named.model.clone().or_else(|| brought.first_model(named.provider.as_deref()?));
        let found = model.and_then(|model| brought.find(named.provider.as_deref(), &model));
        let target = match found {
            Some(mut target) => {
                limit_answer(&mut target, &options, &self.settings)?;
                apply_learned_factor(&mut target, &LearnedState::load(&self.settings.user_folders));
                target
            }
            None if of_session.is_some() => {
                known_session_model(&self.settings, of_session.as_ref(), &*self.notices);
                return Ok(());
            }
            None => {
                let mut target = resolve_named(named, &options, &self.settings)?;
                apply_learned_factor(&mut target, &LearnedState::load(&self.settings.user_folders));
                target
            }
        };
        self.target_notices.send(&self.settings, &target, self.agent.thinking(), &*self.notices);
        self.agent.begin_with_model(target);
        Ok(())
    }

    /// Tells that a model cannot be had, where a conversation goes on without it.
    pub fn notice_of_model(&self, error: &OpenError) {
        self.notice(Notice::ModelMissing { error: error.to_string() });
    }
}
