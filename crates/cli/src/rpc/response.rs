//! What goes out: responses and questions. Events are the agent's own.

use std::path::PathBuf;
use std::sync::Arc;

use hardpan_agent::Spent;
use hardpan_context::{LayoutName, Target};
use hardpan_prompt::AgentMessage;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::request::{Level, When};

/// A line on standard output that is no event.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// What became of a request: exactly one for each.
    Response(Response),
    /// May this call run? It waits for an `approval_response` with this id.
    ApprovalRequest {
        /// The question's id.
        id: String,
        /// The call's id.
        call_id: Arc<str>,
        /// The tool.
        tool_name: Arc<str>,
        /// The arguments.
        args: Value,
        /// What `remember` would allow from then on, as it is written in the settings; null where a yes holds for this
        /// call alone.
        rule: Option<String>,
    },
    /// A line of text is asked for. It waits for an `input_response` with this id.
    InputRequest {
        /// The question's id.
        id: String,
        /// What is asked.
        prompt: String,
    },
}

/// What became of a request.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Response {
    /// The request's id; null where the line could not be understood.
    pub id: Value,
    /// The request's type, as far as it could be understood.
    pub command: Option<String>,
    /// Whether it was done.
    pub success: bool,
    /// What there is to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// Why it was not done, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a response tells, by command.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Data {
    /// `prompt`, `steer`, `follow_up`.
    Taken(Taken),
    /// `get_state`.
    State(Box<State>),
    /// `get_messages`.
    Messages {
        /// The messages, oldest first.
        messages: Vec<AgentMessage>,
    },
    /// `set_model`.
    Model(Model),
    /// `set_thinking_level`.
    Thinking {
        /// How much the model thinks from now on.
        thinking: Level,
    },
    /// `compact`.
    Compacted {
        /// What stands for the messages before.
        summary: String,
        /// How many messages it stands for.
        messages: usize,
        /// The first message that stayed.
        first_kept: Arc<str>,
        /// Tokens of the conversation before.
        tokens_before: u64,
    },
    /// `bash`.
    Bash {
        /// The command, what it printed, and its exit code.
        message: Box<AgentMessage>,
    },
    /// `get_session_stats`.
    Stats(Stats),
    /// `new_session`, `switch_session`, `fork`.
    Session(Session),
    /// `get_context`.
    Context {
        /// What the last request held, as `hardpan context --json` prints it; null before the first.
        breakdown: Value,
    },
    /// `get_commands`.
    Commands {
        /// What can be called.
        commands: Vec<CommandInfo>,
    },
}

/// What became of something that was said.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "taken", rename_all = "snake_case")]
pub enum Taken {
    /// It is stored, and the agent works on it.
    Started {
        /// The message.
        message_id: String,
    },
    /// It waits for its time.
    Queued {
        /// When it is delivered.
        delivery: When,
    },
    /// It was a command, which ran.
    Command {
        /// What it had to say.
        said: Option<String>,
    },
    /// An extension dealt with it.
    Handled {},
}

/// A model.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Model {
    /// Its provider.
    pub provider: String,
    /// Its id at the provider.
    pub model: String,
    /// Its window in tokens.
    pub context_window: u32,
    /// The most tokens of answer.
    pub max_tokens: u32,
}

impl From<&Target> for Model {
    fn from(target: &Target) -> Self {
        Model {
            provider: target.provider.clone(),
            model: target.model.id.clone(),
            context_window: target.model.context,
            max_tokens: target.max_tokens,
        }
    }
}

/// A conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Session {
    /// Its id.
    pub id: Arc<str>,
    /// Its file, which is made when something is stored.
    pub file: PathBuf,
    /// The name that it was given.
    pub name: Option<Arc<str>>,
    /// How many messages it has.
    pub message_count: usize,
}

/// How things are.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AgentState")]
pub struct State {
    /// Who answers.
    pub model: Model,
    /// How much it thinks.
    pub thinking: Level,
    /// How prompts are ordered.
    #[schemars(with = "String")]
    pub layout: LayoutName,
    /// Whether the agent works.
    pub busy: bool,
    /// The conversation.
    pub session: Session,
    /// What waits to be delivered.
    pub queued: Queued,
    /// What was used.
    pub usage: Usage,
}

/// What waits, as it was typed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Queued {
    /// Delivered after the tool that runs.
    pub steering: Vec<String>,
    /// Delivered when the model has nothing more to do.
    pub follow_up: Vec<String>,
}

/// What was used.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Usage {
    /// By the last request; none where no usage was reported.
    pub last_request: Option<Amounts>,
    /// By the whole session, helper calls included.
    pub session: Amounts,
    /// How many requests that was.
    pub requests: u64,
}

/// Tokens by how they were billed, and their price.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Amounts {
    /// Input that was neither read from a cache nor written to one.
    pub input: u64,
    /// Input read from a cache.
    pub read: u64,
    /// Input written to a cache.
    pub written: u64,
    /// Output.
    pub output: u64,
    /// All of it, in dollars.
    pub dollars: f64,
}

impl From<Spent> for Amounts {
    fn from(Spent { input, read, written, output, dollars }: Spent) -> Self {
        Amounts { input, read, written, output, dollars }
    }
}

/// What was said, used and paid.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Stats {
    /// The conversation.
    pub session: Session,
    /// Messages of the person.
    pub user_messages: usize,
    /// Messages of the model.
    pub assistant_messages: usize,
    /// Calls that the model made.
    pub tool_calls: usize,
    /// Results of calls.
    pub tool_results: usize,
    /// Of those, failed ones.
    pub failed_results: usize,
    /// What was used.
    pub usage: Usage,
    /// Tokens of the last request, as counted here; none before the first.
    pub context_tokens: Option<usize>,
    /// The most tokens that a request may have.
    pub max_input_tokens: u32,
}

/// Something that can be called with `/name`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CommandInfo {
    /// The name, without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Which arguments it takes, where it says so.
    pub argument_hint: Option<String>,
    /// What it is.
    pub source: Source,
}

/// What something that can be called is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A command, which runs at once.
    Command,
    /// A skill, which becomes a prompt.
    Skill,
    /// A template, which becomes a prompt.
    Template,
}
