//! [`AgentUpdate`]: what the agent tells the face, as values that need nothing of the agent.

use std::sync::Arc;
use std::time::Duration;

use hardpan_prompt::Image;
use ratatui::text::Line;

use crate::blocks::{Delivery, FileDiff, RunSummary, Subject};

/// Something that happened in the agent.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentUpdate {
    /// A run begins.
    RunStarted,
    /// A message of the person was delivered during the run.
    Delivered {
        /// The message as typed.
        text: String,
    },
    /// More text of the answer.
    Text(String),
    /// More of the model's reasoning.
    Reasoning(String),
    /// The answer is complete.
    AnswerEnded,
    /// A tool starts to run.
    ToolStarted {
        /// The call's id.
        id: Arc<str>,
        /// Name of the tool.
        name: String,
        /// What it works on: a path, a command.
        subject: Subject,
    },
    /// The whole output of a tool so far.
    ToolOutput {
        /// The call's id.
        id: Arc<str>,
        /// All of it.
        text: String,
    },
    /// A sub-agent has done something.
    TaskProgress {
        /// The id of the call that started it.
        id: Arc<str>,
        /// What it does, and how far it is.
        progress: TaskProgress,
    },
    /// A tool has ended.
    ToolEnded(ToolEnd),
    /// A call was not run.
    ToolNotRun {
        /// Name of the tool.
        name: String,
        /// What it would have worked on.
        subject: Subject,
        /// Why.
        reason: String,
    },
    /// A call waits for a yes or a no.
    ApprovalAsked(ApprovalPrompt),
    /// Nobody waits for an answer any more.
    ApprovalClosed {
        /// Number of the question.
        id: u64,
    },
    /// The model, or a command, asks something.
    QuestionAsked(QuestionPrompt),
    /// Nobody waits for its answer any more.
    QuestionClosed {
        /// Number of the question.
        id: u64,
    },
    /// What is queued now, in the order of delivery.
    Queue(Vec<(Delivery, String)>),
    /// A request failed and is sent again.
    Retry {
        /// What went wrong, in a few words.
        message: String,
        /// How long the agent waits.
        wait: Duration,
        /// The number of the attempt that follows.
        attempt: u32,
        /// The most attempts.
        attempts: u32,
    },
    /// The conversation is being compacted.
    Compacting {
        /// From how much to how much, and what it costs.
        text: String,
    },
    /// Something the person should know.
    Note(String),
    /// A message of an extension, which the model reads too.
    ExtensionMessage {
        /// The extension's name for this kind of message.
        from: String,
        /// What it says.
        text: String,
    },
    /// What a program of the person printed.
    Output(String),
    /// What a command of the conversation replied: sentences, lists and tables.
    Reply(String),
    /// The person or a tool gave the model an image.
    Image(Image),
    /// Lines to be printed as they are.
    Lines(Vec<Line<'static>>),
    /// The run is over.
    RunEnded {
        /// What it did and cost. The face knows itself how long it took.
        summary: Option<RunSummary>,
        /// What went wrong, if something did.
        problem: Option<String>,
    },
    /// Something went wrong outside of a run.
    Problem(String),
    /// Nothing runs any more, whatever was shown to run.
    Idle,
}

/// How far a sub-agent is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskProgress {
    /// Name of the agent.
    pub agent: String,
    /// What it does now: `read src/main.rs`.
    pub activity: String,
    /// What it has used.
    pub facts: Vec<String>,
}

/// How a tool call ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolEnd {
    /// The call's id.
    pub id: Arc<str>,
    /// How much, exit code: what stands behind the subject.
    pub facts: Vec<String>,
    /// Whether it failed.
    pub is_error: bool,
    /// What is printed below it: a diff. A failed call's last lines come from its output.
    pub details: Vec<Line<'static>>,
    /// Whether it changed a file: the details show the diff, or the question before it has shown it, and
    /// the output only repeats it.
    pub has_diff: bool,
    /// Its output. The page prints the last lines of a failed call's alone.
    pub output: String,
}

/// A rule that an answer for longer would make, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleOffer {
    /// What the rule covers: `edits in packages/tui/**`.
    Offered(String),
    /// What forbids it: `rm -rf, --force`.
    NotOffered(String),
}

/// A call that waits for a yes or a no.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalPrompt {
    /// The face's number of the question.
    pub id: u64,
    /// Who wants to make the call, if it is not the model of the conversation: a sub-agent, an extension.
    pub author: Option<String>,
    /// Tool and first words of the call, for one row.
    pub summary: String,
    /// What kind of call it is: it decides the words of the question.
    pub kind: CallKind,
    /// The model's own words about the call; never in place of it.
    pub model_says: Option<String>,
    /// All of the call: the diff or the whole command, with what in it is dangerous. It is printed
    /// before the question.
    pub preview: Vec<Line<'static>>,
    /// The file that it changes, before and after.
    pub diff: Option<Arc<FileDiff>>,
    /// What `s` and `a` would allow.
    pub rule: RuleOffer,
    /// What of the call a person can change in an editor; none if nothing.
    pub editable: Option<String>,
}

/// What a call would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// It changes or writes a file.
    Edit,
    /// It runs a command of so many lines.
    Command {
        /// At least 1.
        lines: usize,
    },
    /// Something else.
    Other {
        /// Name of the tool.
        tool: String,
    },
}

/// The answer to an [`ApprovalPrompt`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Yes, this time.
    Once,
    /// Yes, and calls of the rule until the person leaves.
    Session,
    /// Yes, and calls of the rule from now on.
    Always,
    /// Yes, with the text that the person made of it in the editor.
    Changed(String),
    /// No, with the reason if one was given.
    No(Option<String>),
    /// No, and the run stops.
    NoAndStop,
}

/// Something that is asked in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionPrompt {
    /// The face's number of the question.
    pub id: u64,
    /// What is asked.
    pub text: String,
    /// Choices, if there are any.
    pub choices: Vec<String>,
    /// Whether nothing but one of the choices is an answer.
    pub only_choices: bool,
    /// What the answer begins with.
    pub prefill: String,
    /// What is typed is neither shown nor printed.
    pub is_secret: bool,
}

impl QuestionPrompt {
    /// Whether the number of a choice answers without Enter: only choices count, and each has one digit.
    pub fn takes_one_key(&self) -> bool {
        self.only_choices && self.choices.len() <= 9
    }
}
