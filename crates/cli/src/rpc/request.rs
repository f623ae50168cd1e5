//! What comes in: requests. `docs/rpc.schema.json` is made from this and from what goes out.

use hardpan_agent::Delivery;
use hardpan_models::did_you_mean;
use hardpan_prompt::{Image, Thinking};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request: one line on standard input.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("unevaluatedProperties" = false))]
pub struct Request {
    /// Comes back with the response, whatever it is. In an answer to a question it is the question's id.
    #[serde(default)]
    pub id: Value,
    /// What is to be done.
    #[serde(flatten)]
    pub command: Command,
}

/// What is to be done.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Says something to the agent. The response comes when it is stored, or done with; the run ends with `agent_end`.
    Prompt {
        /// The text. `/name` calls a command, a skill or a template; `@path` adds a file.
        #[serde(default)]
        message: String,
        /// Images that go with it.
        #[serde(default)]
        images: Vec<Image>,
        /// How it is delivered while the agent works. Without it, a prompt is then refused.
        when_busy: Option<When>,
    },
    /// Says something that is delivered after the tool that runs; begins a run when the agent is idle.
    Steer {
        /// The text.
        #[serde(default)]
        message: String,
        /// Images that go with it.
        #[serde(default)]
        images: Vec<Image>,
    },
    /// Says something that is delivered when the model has nothing more to do; begins a run when the agent is idle.
    FollowUp {
        /// The text.
        #[serde(default)]
        message: String,
        /// Images that go with it.
        #[serde(default)]
        images: Vec<Image>,
    },
    /// Stops the run. What was received is kept.
    Abort {},
    /// Tells the model, the session, what waits, and what was used.
    GetState {},
    /// Tells the messages of the conversation.
    GetMessages {},
    /// Chooses the model of the next request.
    SetModel {
        /// The model, as `hardpan models` lists it.
        model: String,
        /// The provider, where several have it.
        provider: Option<String>,
    },
    /// Chooses how much the model thinks.
    SetThinkingLevel {
        /// `off`, or the most tokens of thought.
        level: Level,
    },
    /// Puts a summary in place of what was said long ago. The response comes when it is done.
    Compact {
        /// What matters.
        instructions: Option<String>,
    },
    /// Runs a command of the person, without asking anyone. The response comes when it has ended.
    Bash {
        /// The command line.
        command: String,
        /// The model is not told.
        #[serde(default)]
        exclude_from_context: bool,
    },
    /// Ends the command of the person that runs.
    AbortBash {},
    /// Begins another conversation. The agent must be idle.
    NewSession {},
    /// Goes on with another conversation. The agent must be idle.
    SwitchSession {
        /// Its id, its name or its file.
        session: String,
    },
    /// Goes on in a conversation of its own. The agent must be idle.
    Fork {
        /// The entry to go on from; without it, the last.
        entry: Option<String>,
    },
    /// Tells what the last request held.
    GetContext {},
    /// Counts what was said, used and paid.
    GetSessionStats {},
    /// Lists what can be called with `/name` in a prompt.
    GetCommands {},
    /// Answers an `approval_request`; `id` is the question's.
    ApprovalResponse {
        /// The answer.
        verdict: YesOrNo,
        /// Why not: told to the model.
        reason: Option<String>,
        /// With yes: how long it holds. Without it, for this call alone.
        remember: Option<Remember>,
    },
    /// Answers an `input_request`; `id` is the question's.
    InputResponse {
        /// What was typed; none where the person gave up.
        value: Option<String>,
    },
}

/// The names of the commands, in the order of [`Command`].
pub const COMMANDS: [&str; 19] = [
    "prompt",
    "steer",
    "follow_up",
    "abort",
    "get_state",
    "get_messages",
    "set_model",
    "set_thinking_level",
    "compact",
    "bash",
    "abort_bash",
    "new_session",
    "switch_session",
    "fork",
    "get_context",
    "get_session_stats",
    "get_commands",
    "approval_response",
    "input_response",
];

/// When something that is said while the agent works is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// After the tool that runs.
    Steer,
    /// When the model has nothing more to do.
    FollowUp,
}

impl From<When> for Delivery {
    fn from(when: When) -> Self {
        match when {
            When::Steer => Delivery::Steer,
            When::FollowUp => Delivery::FollowUp,
        }
    }
}

impl From<Delivery> for When {
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::Steer => When::Steer,
            Delivery::FollowUp => When::FollowUp,
        }
    }
}

/// How much the model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected \"off\" or a number of tokens")]
pub enum Level {
    /// Not at all.
    Word(Off),
    /// At most so many tokens.
    Tokens(u32),
}

/// The word for no thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Off {
    /// Not at all.
    Off,
}

impl From<Level> for Thinking {
    fn from(level: Level) -> Self {
        match level {
            Level::Word(Off::Off) | Level::Tokens(0) => Thinking::Off,
            Level::Tokens(tokens) => Thinking::Budget(tokens),
        }
    }
}

impl From<Thinking> for Level {
    fn from(thinking: Thinking) -> Self {
        match thinking {
            Thinking::Off => Level::Word(Off::Off),
            Thinking::Budget(tokens) => Level::Tokens(tokens),
        }
    }
}

/// The answer to an approval question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum YesOrNo {
    /// The call may run.
    Yes,
    /// It may not.
    No,
}

/// How long a yes holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Remember {
    /// As long as this process runs.
    Session,
    /// From now on.
    Always,
}

/// A line that is no request, and as much of it as could be understood.
#[derive(Debug, PartialEq)]
pub struct Refused {
    pub id: Value,
    pub command: Option<String>,
    pub error: String,
}

impl Request {
    /// Reads a line: the command's name, and the request.
    pub fn parse(line: &str) -> Result<(String, Self), Refused> {
        let refused = |error: String| Refused { id: Value::Null, command: None, error };
        let value: Value =
            serde_json::from_str(line).map_err(|error| refused(format!("the line is not JSON: {error}")))?;
        let Value::Object(mut fields) = value else {
            return Err(refused(
                "a request is a JSON object such as {\"id\": 1, \"type\": \"get_state\"}".into(),
            ));
        };
        let id = fields.shift_remove("id").unwrap_or_default();
        let name = fields.get("type").and_then(Value::as_str).map(str::to_owned);
        let refused = |error: String| {
            let command = name.as_ref().map(|name| name.chars().take(LONGEST_NAME).collect());
            Refused { id: id.clone(), command, error }
        };
        let Some(name) = &name else {
            return Err(refused("a request needs a \"type\", the name of a command".into()));
        };
        if !COMMANDS.contains(&name.as_str()) {
            let name: String = name.chars().take(LONGEST_NAME).collect();
            let meant = did_you_mean(&hardpan_models::nearest(&name, COMMANDS.into_iter()));
            return Err(refused(format!("there is no command {name:?}{meant}; docs/rpc.md lists them")));
        }
        let fields = Value::Object(fields);
        if has_nul(&fields) {
            return Err(refused("a text holds a NUL character, which no text has: leave it out".into()));
        }
        match serde_json::from_value(fields) {
            Ok(command) => Ok((name.clone(), Request { id, command })),
            Err(error) => Err(refused(error.to_string())),
        }
    }
}

/// Of a name that is none, so many characters are repeated.
const LONGEST_NAME: usize = 60;

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(has_nul),
        Value::Object(fields) => fields.values().any(has_nul),
        _ => false,
    }
}
