//! [`Panel`]: what a kind of panel implements.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hardpan_prompt::Volatility;
use hardpan_tools::{CallSubject, Effect, Scope, Tool};
use hardpan_workspace::WorkspaceWatch;
use jiff::Timestamp;
use serde_json::Value;

/// A panel: content that the model always sees in its current form.
///
/// A kind with one panel (the todo list) is one object with a [`Panel::fixed_id`]. A kind with many
/// (consoles, git results) makes an object per panel, and registers an opener that brings them back
/// after a resume ([`PanelRegistry::register_opener`](crate::PanelRegistry::register_opener)).
pub trait Panel: Send + Sync {
    /// Identifies the panel within a conversation: `todo`, `console:1`. What stands before the first
    /// colon is its kind.
    fn key(&self) -> &str;

    /// The documented id of a kind with one panel: `P1` to `P9`. Others are numbered from `P10` on.
    fn fixed_id(&self) -> Option<&'static str> {
        None
    }

    /// The title that is shown above the content.
    fn title(&self) -> String;

    /// What makes the content change.
    fn strategy(&self) -> RefreshStrategy;

    /// How often the content is expected to change, which is where layouts put it.
    fn volatility(&self) -> Volatility {
        Volatility::Active
    }

    /// A number that is another one whenever the content may have changed. As long as it stays the
    /// same, the panel is not rendered. [`Revision`] counts.
    fn revision(&self) -> u64;

    /// The whole content; `None` if there is nothing to show. Called before a request whenever the
    /// revision changed: it must be quick, and read neither files nor clocks.
    fn render(&self) -> Option<String>;

    /// Reads what the content depends on, for a panel that is watched or timed. Called on a blocking
    /// thread, at the start of a run and after something may have changed. Must end, whatever lies in
    /// the folder.
    fn refresh(&self, _context: &RefreshContext<'_>) {}

    /// What the model and the person can do with it through the tool `panel`.
    fn actions(&self) -> &'static [PanelAction] {
        &[]
    }

    /// Carries out one of its [`Panel::actions`]. The text says what was done.
    fn act(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        Err(ActionError::UnknownAction { action: call.action.to_owned() })
    }

    /// What an action on a target acts on, for the approval of one that changes files.
    fn subject(&self, _action: &str, _target: &str) -> CallSubject {
        CallSubject::Other
    }

    /// Tools of its own, for what does not fit the tool `panel`. They are declared at the start of the
    /// conversation and stay.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// What must be stored in the session, so that a resumed conversation shows the same.
    fn save(&self) -> Option<Value> {
        None
    }

    /// Takes over what [`Panel::save`] stored; `None` for a conversation that has stored nothing.
    fn restore(&self, _state: Option<&Value>) {}

    /// The panel was closed, or its conversation was left: ends what it runs.
    fn close(&self) {}
}

/// What makes the content of a panel change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshStrategy {
    /// It is derived from state in memory.
    Derived,
    /// It shows files: refreshed when the workspace may have changed.
    Watched,
    /// It shows what nothing announces: refreshed when it is older than this.
    Timed {
        /// The age in seconds.
        seconds: u32,
    },
    /// Something running writes it.
    Streaming,
    /// It never changes.
    Static,
}

/// What a refresh may use.
#[derive(Clone, Copy)]
pub struct RefreshContext<'a> {
    /// The files that the agent may read.
    pub scope: &'a Scope,
    /// The agent's current time.
    pub now: Timestamp,
    /// Tells what changed; none if the folder is not watched, so that a panel must look.
    pub watch: Option<&'a WorkspaceWatch>,
}

impl<'a> RefreshContext<'a> {
    /// A refresh of what is not watched.
    pub fn new(scope: &'a Scope, now: Timestamp) -> Self {
        RefreshContext { scope, now, watch: None }
    }
}

/// Something that can be done with a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanelAction {
    /// Its name, which no other panel's action has: `todo_add`.
    pub name: &'static str,
    /// The arguments that it takes, as the model reads it: `text`, `target, text`.
    pub arguments: &'static str,
    /// Whether it changes files, so that the person is asked.
    pub effect: Effect,
}

impl PanelAction {
    /// An action that changes nothing but the panel.
    pub const fn new(name: &'static str, arguments: &'static str) -> Self {
        PanelAction { name, arguments, effect: Effect::Reads }
    }
}

/// An action with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct ActionCall<'a> {
    /// The name of the action.
    pub action: &'a str,
    /// What it is about: an id, a path, a name.
    pub target: Option<&'a str>,
    /// The text that it is given.
    pub text: Option<&'a str>,
    /// When it is carried out.
    pub now: Timestamp,
}

impl<'a> ActionCall<'a> {
    /// An action without arguments.
    pub fn new(action: &'a str, now: Timestamp) -> Self {
        ActionCall { action, target: None, text: None, now }
    }

    /// The target, which the action needs.
    pub fn target(&self) -> Result<&'a str, ActionError> {
        let given = self.target.map(str::trim).filter(|target| !target.is_empty());
        given.ok_or_else(|| ActionError::Missing { action: self.action.to_owned(), argument: "target" })
    }

    /// The text, which the action needs.
    pub fn text(&self) -> Result<&'a str, ActionError> {
        let given = self.text.filter(|text| !text.trim().is_empty());
        given.ok_or_else(|| ActionError::Missing { action: self.action.to_owned(), argument: "text" })
    }
}

/// Why an action was not carried out. The model and the person read it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActionError {
    /// No panel has such an action.
    #[error("there is no action \"{action}\" here")]
    UnknownAction {
        /// The name as given.
        action: String,
    },
    /// An argument is missing.
    #[error("{action} needs the argument `{argument}`")]
    Missing {
        /// The action.
        action: String,
        /// The argument that it needs.
        argument: &'static str,
    },
    /// Nothing has this name.
    #[error("there is no {what} {name}{}", known_list(known))]
    NotFound {
        /// What was looked for: `panel`, `todo`.
        what: &'static str,
        /// The name as given.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The name is that of a file, which has no pages and cannot be hidden.
    #[error("{id} is the file {path}, which is shown as a whole: close it to take it out of view")]
    OpenFile {
        /// The id as given.
        id: String,
        /// The file's path.
        path: String,
    },
    /// An argument has a value that it cannot have.
    #[error("{name} is no {what}: use {expected}")]
    Invalid {
        /// What it should be.
        what: &'static str,
        /// The value as given.
        name: String,
        /// What it may be.
        expected: &'static str,
    },
    /// It would grow beyond a limit.
    #[error("{what} has no room for that: the limit is {limit}. Remove something first")]
    Full {
        /// What is full.
        what: &'static str,
        /// How much it holds, with the unit.
        limit: String,
    },
    /// The text looks like a secret, which is never stored.
    #[error("not stored: the text holds what looks like a secret ({kind})")]
    Secret {
        /// What it looks like.
        kind: String,
    },
    /// A fixed panel cannot be closed.
    #[error("{id} cannot be closed; hide takes it out of view")]
    Fixed {
        /// The id of the panel.
        id: String,
    },
    /// Something behind the panel failed.
    #[error("{0}")]
    Failed(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl ActionError {
    /// Wraps the error of whatever stands behind a panel.
    pub fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        ActionError::Failed(Box::new(error))
    }
}

fn known_list(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; there is {}", known.join(", ")) }
}

/// Counts the changes of a panel's state.
#[derive(Debug, Default)]
pub struct Revision(AtomicU64);

impl Revision {
    /// The number of changes so far.
    pub fn current(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Counts a change. Called after the state has changed.
    pub fn bump(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}
