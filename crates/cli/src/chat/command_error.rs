//! [`SlashCommandError`]: why one of the chat's own slash commands failed.

use std::path::PathBuf;

use hardpan_agent::{AgentError, CommandError, PreviewError};
use hardpan_app::context_items::ContextItemError;
use hardpan_app::target::TargetError;
use hardpan_app::{ActionError, error_text};
use hardpan_models::UnknownThinkingLevel;
use hardpan_providers::ProviderError;
use hardpan_session::{SessionError, SessionLookupError};

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
    #[error(transparent)]
    Resource(#[from] hardpan_app::mcp::ResourceError),
    #[error("nobody is there to ask")]
    NobodyToAsk,
    #[error(transparent)]
    Settings(#[from] hardpan_app::settings::SettingsError),
    #[error(transparent)]
    UnknownName(#[from] hardpan_models::UnknownName),
    #[error("cannot write {path}: {error}")]
    NotWritten { path: String, error: std::io::Error },
    #[error("you are in that conversation already")]
    CurrentConversation,
    #[error("{0} is not open; /open lists what is open")]
    NotOpen(String),
    #[error(transparent)]
    Panel(#[from] hardpan_panels::ActionError),
    #[error(transparent)]
    Item(ContextItemError),
    #[error("cannot write {}: {source}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("there is no answer yet to copy")]
    NothingToCopy,
    #[error("there is no code block {number}: the last answer has {count}")]
    NoCodeBlock { number: usize, count: usize },
    #[error("there are not two requests yet to compare")]
    NothingToCompare,
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// A path that the index does not know.
    #[error("{0}: contains no file of the map; the map leaves out ignored files")]
    NotMapped(String),
    /// No command has this name.
    #[error("unknown command /{name}{hint}; /help lists the commands")]
    Unknown {
        name: String,
        /// What was probably meant, or nothing.
        hint: String,
    },
}

impl From<ContextItemError> for SlashCommandError {
    fn from(error: ContextItemError) -> Self {
        match error {
            ContextItemError::NotOpen(name) => SlashCommandError::NotOpen(name),
            ContextItemError::Agent(error) => SlashCommandError::Agent(error),
            ContextItemError::Panel(error) => SlashCommandError::Panel(error),
            error => SlashCommandError::Item(error),
        }
    }
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
