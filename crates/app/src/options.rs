//! What a face asks for: [`OpenOptions`] for a conversation, [`RequestOptions`] for a request that
//! is built without one. Both name a model with [`TargetOptions`].

use std::path::PathBuf;

/// The model, the layout and the folder to use. What is not given comes from the environment, the
/// conversation, the settings or the defaults, in this order.
#[derive(Clone, Debug, Default)]
pub struct TargetOptions {
    /// Images to attach to the first prompt.
    pub image: Vec<PathBuf>,
    /// `strata`, `panels`, `tiers` or `inline`.
    pub layout: Option<String>,
    /// Provider id, as the catalogue has it.
    pub provider: Option<String>,
    /// Model, as the catalogue has it.
    pub model: Option<String>,
    /// Token limit of an answer.
    pub max_tokens: Option<u32>,
    /// Token limit of the model's thinking; none for no thinking.
    pub thinking: Option<u32>,
    /// Folder to work in, relative to the current one.
    pub dir: Option<PathBuf>,
    /// Leaves the symbol map out of the prompt.
    pub no_map: bool,
}

/// A request to build without an agent.
#[derive(Clone, Debug, Default)]
pub struct RequestOptions {
    /// The prompt; `-` reads it from standard input.
    pub prompt: Option<String>,
    /// Files to show to the model.
    pub files: Vec<PathBuf>,
    /// Use this snapshot file instead of the folder.
    pub snapshot: Option<PathBuf>,
    /// Include the conversation stored in this session file.
    pub session: Option<PathBuf>,
    /// The model and the layout that the request is for.
    pub target: TargetOptions,
    /// The time to put into the request instead of the current one, in RFC 3339.
    pub now: Option<String>,
    /// In the strata layout: fold.
    pub fold: bool,
    /// Leaves out the agent's tools and skills.
    pub no_tools: bool,
    /// Names of the face's commands, which skills and templates cannot use.
    pub reserved_names: Vec<&'static str>,
}

/// A conversation to open. By default, a new one.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Resume the last conversation of the folder.
    pub last: bool,
    /// Resume a conversation by id, name or file.
    pub resume: Option<String>,
    /// Begin with a copy of another conversation's messages.
    pub fork: Option<String>,
    /// With `resume` or `fork`: go back to this entry.
    pub at: Option<String>,
    /// Run every tool without asking.
    pub yes: bool,
    /// Do not store this conversation.
    pub no_session: bool,
    /// The model, the layout and the folder.
    pub target: TargetOptions,
    /// Names of the face's commands, which skills and templates cannot use.
    pub reserved_names: Vec<&'static str>,
}
