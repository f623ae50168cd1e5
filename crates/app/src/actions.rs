//! What a user can do to a conversation besides talking: switch to another one, change the model,
//! undo changes, ask what something would cost. Faces make commands and requests of these.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use hardpan_agent::events::SwitchReason;
use hardpan_agent::{AgentError, CustomMessage, SessionSwitchKind};
use hardpan_context::{AssembleError, LayoutName, Target, fill_template};
use hardpan_economy::{CostForecast, PlannedAction};
use hardpan_models::{Catalogue, ThinkingSetting};
use hardpan_prompt::{MessagePart, Text, TokenCounter};
use hardpan_session::{Entry, LogError, Record, Session, SessionError, SessionLog, SessionSummary};
use hardpan_tools::{JournalError, UndoOutcome, UndoneFile};
use hardpan_workspace as workspace;

use crate::agents::UnknownAgent;
use crate::conversation_app::ConversationApp;
use crate::learned_state::LearnedState;
use crate::open::{OpenError, resume_conversation, send_session_problems};
use crate::options::TargetOptions;
use crate::session_folder::{begin_conversation, fork_conversation};
use crate::target::{TargetError, apply_learned_factor, resolve_target};
use crate::tool_set::SessionArtifacts;

/// Why an action has no effect. Each message says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActionError {
    /// The other conversation cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The conversation has no file yet: its first message creates it.
    #[error("this conversation has no messages yet")]
    NoMessages,
    /// The session file cannot be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// There is no such agent.
    #[error(transparent)]
    UnknownAgent(#[from] UnknownAgent),
    /// There is no such model.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The model's answer has no room for so much thinking.
    #[error(transparent)]
    Thinking(#[from] AssembleError),
    /// The agent refused.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Panels belong to a conversation from its start.
    #[error(
        "the layout panels begins with a conversation: leave, then hardpan --layout {layout} --resume {session}"
    )]
    PanelLayout {
        /// The layout that was asked for.
        layout: LayoutName,
        /// Id of this conversation.
        session: Arc<str>,
    },
    /// A session file cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The files beside a deleted session are still there.
    #[error("the conversation is deleted, but not all files of its tools")]
    Artifacts(#[source] std::io::Error),
    /// Changes were not recorded.
    #[error("cannot undo: the journal of changes is not available")]
    NoJournal,
    /// Nothing was changed, or all of it is undone.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The session entry that stores which turn of the journal the changes of a run belong to.
pub const TURN_ENTRY: &str = "hardpan.journal_turn";

/// The journal's turns of the runs after an entry on the way to the newest one, the last first.
fn turns_after(session: &Session, entry: &str) -> Vec<u64> {
    let path = session.path_to(None).unwrap_or_default();
    let after = path.iter().position(|known| &*known.id == entry).map_or(path.len(), |at| at + 1);
    let turn = |entry: &&Entry| match &entry.record {
        Record::Custom { custom_type, data } if &**custom_type == TURN_ENTRY => data.as_u64(),
        _ => None,
    };
    // What is stored right behind the entry belongs to its own run.
    let is_message = |entry: &&Entry| matches!(entry.record, Record::Message(_));
    let later = path[after..].iter().skip_while(|entry| !is_message(entry));
    let turns: BTreeSet<u64> = later.filter_map(turn).collect();
    turns.into_iter().rev().collect()
}

/// What a resumed conversation last used.
#[derive(Clone, Debug)]
pub struct ResumedConversation {
    /// How many messages it has.
    pub messages: usize,
    /// Provider and model that it last selected; none if it never did.
    pub model: Option<(Arc<str>, Arc<str>)>,
    /// Thinking level that it last selected, in the text form of [`ThinkingSetting`].
    pub thinking: Option<Arc<str>>,
}

impl ConversationApp {
    /// Leaves this conversation for a new one, once the agent is idle.
    pub async fn start_new(&self) -> Result<(), ActionError> {
        self.agent.ask_before_switch(SwitchReason::New, None).await?;
        let conversation = begin_conversation(&self.store, &self.folder)?;
        self.switch_conversation(conversation, SessionSwitchKind::New).await;
        Ok(())
    }

    /// Leaves this conversation for an earlier one, once the agent is idle. The model and the
    /// thinking budget stay as they are: [`ConversationApp::restore_choices`] takes over those of
    /// the conversation.
    pub async fn resume(&self, summary: &SessionSummary) -> Result<ResumedConversation, ActionError> {
        self.agent.ask_before_switch(SwitchReason::Resume, Some(summary.path.clone())).await?;
        let conversation = resume_conversation(
            summary,
            None,
            &self.store,
            &self.scope,
            self.foreign_sessions,
            &*self.notices,
        )?;
        send_session_problems(&conversation, &*self.notices);
        let resumed = ResumedConversation {
            messages: conversation.messages.len(),
            model: conversation.model.clone(),
            thinking: conversation.thinking.clone(),
        };
        self.switch_conversation(conversation, SessionSwitchKind::Resume).await;
        Ok(resumed)
    }

    /// Selects the model and the thinking budget that a resumed conversation last used.
    pub async fn restore_choices(&self, resumed: &ResumedConversation) -> Result<(), ActionError> {
        let target = self.agent.target();
        if let Some((provider, model)) = &resumed.model
            && (&**provider, &**model) != (target.provider.as_str(), target.model.id.as_str())
        {
            self.select_model(Some(provider.to_string()), model.to_string()).await?;
        }
        let level = resumed.thinking.as_ref().and_then(|level| level.parse().ok());
        let thinking = level.unwrap_or(ThinkingSetting::Default);
        if thinking != self.agent.thinking() {
            self.agent.select_thinking(thinking).await?;
        }
        Ok(())
    }

    /// Continues in a copy of this conversation, up to `entry` or the last message.
    pub async fn fork(&self, entry: Option<&str>) -> Result<(), ActionError> {
        let session = self.read_session()?;
        self.agent.ask_before_fork(entry).await?;
        let conversation = fork_conversation(&self.store, &self.folder, &session, entry)?;
        let kind = SessionSwitchKind::Fork { entry: entry.map(Into::into) };
        self.switch_conversation(conversation, kind).await;
        Ok(())
    }

    /// Reads the conversation's file, with all its branches.
    pub fn read_session(&self) -> Result<Session, ActionError> {
        let (_, path) = self.agent.session();
        if !path.exists() {
            return Err(ActionError::NoMessages);
        }
        Ok(Session::open(&path)?)
    }

    /// Looks at the models of the settings, with those that extensions brought.
    pub fn with_catalogue<T>(&self, look: impl FnOnce(&Catalogue) -> T) -> T {
        match self.extensions.providers.catalogue() {
            Some(catalogue) => look(&catalogue),
            None => look(&self.settings.catalogue),
        }
    }

    /// The model of this name, with what was learned about it. None for the model's own provider.
    pub fn find_model(&self, provider: Option<String>, model: String) -> Result<Target, TargetError> {
        if let Some(target) = self.extensions.providers.find(provider.as_deref(), &model) {
            return Ok(target);
        }
        let options = TargetOptions { model: Some(model), provider, ..TargetOptions::default() };
        let mut target = resolve_target(&options, &self.settings, None)?;
        apply_learned_factor(&mut target, &LearnedState::load(&self.settings.user_folders));
        Ok(target)
    }

    /// Uses another model from the next request on.
    pub async fn select_model(&self, provider: Option<String>, model: String) -> Result<Target, ActionError> {
        let target = self.find_model(provider, model)?;
        self.switch_model(target.clone()).await?;
        Ok(target)
    }

    /// The same for a model that was found already.
    pub async fn switch_model(&self, target: Target) -> Result<(), ActionError> {
        self.target_notices.send(&self.settings, &target, self.agent.thinking(), &*self.notices);
        Ok(self.agent.select_model(target).await?)
    }

    /// Lets the model think for longer or shorter from the next request on. Sends a notice if the
    /// model does not offer that.
    pub async fn select_thinking(&self, thinking: ThinkingSetting) -> Result<(), ActionError> {
        let target = self.agent.target();
        target.check_thinking(thinking)?;
        self.target_notices.send(&self.settings, &target, thinking, &*self.notices);
        Ok(self.agent.select_thinking(thinking).await?)
    }

    /// Uses another layout from the next request on, which sends everything in another order.
    pub async fn select_layout(&self, layout: LayoutName) -> Result<(), ActionError> {
        let is_about_panels = |layout: LayoutName| layout.layout().is_about_panels();
        if is_about_panels(layout) != is_about_panels(self.agent.layout()) {
            return Err(ActionError::PanelLayout { layout, session: self.agent.session().0 });
        }
        Ok(self.agent.select_layout(layout).await?)
    }

    /// What the runs after an entry of this branch did to files is undone, the last run first. Call it
    /// while the agent is idle, before going back to the entry.
    pub fn undo_after(&self, session: &Session, entry: &str) -> Result<Vec<UndoneFile>, ActionError> {
        let journal = self.tool_set.journal.as_ref().ok_or(ActionError::NoJournal)?;
        let mut undone = Vec::new();
        for turn in turns_after(session, entry) {
            match journal.undo(turn) {
                Ok(files) => undone.extend(files),
                Err(JournalError::NothingToUndo { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.tell_undone(&undone);
        Ok(undone)
    }

    /// The files that [`ConversationApp::undo_after`] would change, as the person names them.
    pub fn files_after(&self, session: &Session, entry: &str) -> Vec<String> {
        let Some(journal) = &self.tool_set.journal else { return Vec::new() };
        let files = turns_after(session, entry).into_iter().flat_map(|turn| journal.changed_files(turn));
        let names: BTreeSet<String> =
            files.map(|path| workspace::display_path(&self.scope.root, &path)).collect();
        names.into_iter().collect()
    }

    /// The files that a turn of the journal changed, as the person names them.
    pub fn turn_files(&self, turn: u64) -> Vec<String> {
        let files = self.tool_set.journal.iter().flat_map(|journal| journal.changed_files(turn));
        files.map(|path| workspace::display_path(&self.scope.root, &path)).collect()
    }

    /// Names another conversation than this one.
    pub fn rename_other(&self, summary: &SessionSummary, name: &str) -> Result<(), ActionError> {
        let (log, session) = SessionLog::open(&summary.path)?;
        let leaf = session.leaf().map(|entry| entry.id.clone());
        let id = format!("name-{}", session.entries.len());
        let record = Record::Name { name: name.into() };
        log.append(Entry::new(id, leaf.as_deref(), Some(self.agent.now()), record)).wait()?;
        Ok(())
    }

    /// Deletes another conversation than this one, with the journal and the outputs of its commands.
    pub fn delete_other(&self, summary: &SessionSummary) -> Result<(), ActionError> {
        self.store.delete(summary)?;
        let artifacts = SessionArtifacts::for_session(&summary.id, &self.settings.user_folders, None);
        artifacts.remove().map_err(ActionError::Artifacts)
    }

    /// Undoes what the last run did to files, and tells the model so with the next prompt. Call it
    /// while the agent is idle: undoing half of a run would leave the files in between.
    pub fn undo(&self) -> Result<Vec<UndoneFile>, ActionError> {
        let journal = self.tool_set.journal.as_ref().ok_or(ActionError::NoJournal)?;
        let turn = journal.last_undoable_turn().ok_or(ActionError::NothingToUndo)?;
        let undone = journal.undo(turn)?;
        self.tell_undone(&undone);
        Ok(undone)
    }

    fn tell_undone(&self, undone: &[UndoneFile]) {
        let is_undone =
            |file: &&UndoneFile| matches!(file.outcome, UndoOutcome::Restored | UndoOutcome::Removed);
        let root = &self.scope.root;
        let paths = undone.iter().filter(is_undone).map(|file| workspace::display_path(root, &file.path));
        let paths: Vec<String> = paths.collect();
        if paths.is_empty() {
            return;
        }
        let phrase = &self.settings.texts.phrases.agent.undone;
        let text = fill_template(phrase, &[("files", &paths.join(", "))]);
        self.agent.attach_to_next_prompt(CustomMessage {
            custom_type: "hardpan.undone".into(),
            content: vec![MessagePart::text(text)],
            display: false,
            details: None,
        });
    }

    /// What opening a file would cost; none if it cannot be read, or before the first request.
    pub fn forecast_opening(&self, path: &Path) -> Option<CostForecast> {
        let file = self.scope.guard().open_named_by_user(&self.folder.join(path)).ok()?;
        let text = workspace::read_open_text(&file, workspace::TEXT_LIMIT).ok()?;
        let target = self.agent.target();
        let count = TokenCounter::new(target.vocabulary()).count(&Text::new(text.text));
        let tokens = target.factor.scale(count) as u64;
        self.agent.forecast_cost(PlannedAction::Open { tokens })
    }

    /// What closing a file would cost; none before the first request.
    pub fn forecast_closing(&self, path: &Path) -> Option<CostForecast> {
        let root = &self.scope.root;
        let shown = workspace::display_path(root, &self.folder.join(path));
        self.agent.forecast_cost(PlannedAction::Close(&format!("file:{shown}")))
    }
}
