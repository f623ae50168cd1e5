//! [`SlashCommandError`]: why one of the chat's own slash commands failed.

use hardpan_agent::{AgentError, CommandError, PreviewError};
use hardpan_app::mentions::MentionError;
use hardpan_app::target::TargetError;
use hardpan_app::{ActionError, error_text};
use hardpan_models::UnknownThinkingLevel;
use hardpan_session::SessionLookupError;

/// Why a slash command failed. The message is printed after the command's name.
#[derive(Debug, thiserror::Error)]
pub enum SlashCommandError {
    /// Its arguments are not what it expects.
    #[error("expected {0}")]
    Usage(&'static str),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Preview(#[from] PreviewError),
    /// With its causes, which the message of an action leaves out.
    #[error("{}", error_text(.0))]
    Action(#[from] ActionError),
    #[error("{}", error_text(.0))]
    Target(#[from] TargetError),
    #[error(transparent)]
    Thinking(#[from] UnknownThinkingLevel),
    #[error(transparent)]
    Lookup(#[from] SessionLookupError),
    #[error("you are in that conversation already")]
    CurrentConversation,
    #[error("{name} is not open; /open lists the open files")]
    NotOpen { name: String },
    #[error(transparent)]
    Panel(#[from] hardpan_panels::ActionError),
    #[error("{name}: {error}")]
    NotOpened {
        name: String,
        #[source]
        error: MentionError,
    },
    #[error("{name} is an image: mention it in the prompt that asks about it, @{name}")]
    IsImage { name: String },
    /// A command of the list that nothing here runs.
    #[error("unknown command")]
    Unknown,
}

impl From<SlashCommandError> for CommandError {
    fn from(error: SlashCommandError) -> Self {
        match error {
            SlashCommandError::Usage(usage) => CommandError::Usage(usage),
            SlashCommandError::Agent(error) => CommandError::Agent(error),
            error => CommandError::failed(error),
        }
    }
}
