//! [`RpcError`]: why a request failed, which its response says in `error`.

use hardpan_agent::AgentError;
use hardpan_app::context_items::ContextItemError;
use hardpan_app::{ActionError, error_text};
use hardpan_prompt::ImageError;
use hardpan_session::SessionLookupError;

use super::input::MAX_LINE_BYTES;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    #[error(transparent)]
    NotSent(#[from] hardpan_app::attachment_price::AttachmentRefusal),
    #[error(transparent)]
    Request(#[from] InvalidRequestError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// With its causes, which the message of an action leaves out.
    #[error("{}", error_text(.0))]
    Action(#[from] ActionError),
    #[error(transparent)]
    Lookup(#[from] SessionLookupError),
    #[error(transparent)]
    Item(#[from] ContextItemError),
    #[error(transparent)]
    Panel(#[from] hardpan_panels::ActionError),
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The response was dropped unsent.
    #[error("the command crashed. This is a bug in hardpan: please report it")]
    Crashed,
}

/// Why a line of standard input is not a request.
#[derive(Debug, thiserror::Error)]
pub enum InvalidRequestError {
    #[error("ignored a line longer than {} MB", MAX_LINE_BYTES >> 20)]
    TooLong,
    #[error("the line is not UTF-8")]
    NotUtf8,
    #[error("the line is not valid JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    #[error("a request is a JSON object, such as {{\"id\": 1, \"type\": \"get_state\"}}")]
    NotAnObject,
    #[error("a request needs a \"type\": the name of a command")]
    NoType,
    /// `meant` names similar commands, as the end of a clause.
    #[error("unknown command {name:?}{meant}; docs/rpc.md lists the commands")]
    UnknownCommand { name: String, meant: String },
    #[error("a string contains a NUL character: remove it")]
    ContainsNul,
    #[error(transparent)]
    Fields(serde_json::Error),
}

/// Why an answer reaches no question.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    #[error("\"id\" must be the id of the question")]
    NoId,
    #[error(
        "question {id:?} is of the other kind: answer an approval_request with approval_response, an input_request with input_response, a dialog_request with dialog_response"
    )]
    OtherKind { id: String },
    #[error("question {id:?} offers other answers: {choices:?}")]
    NotOffered { id: String, choices: Vec<String> },
    #[error("no question {id:?} waits for an answer: it was answered, or its run was stopped")]
    NotWaiting { id: String },
}
