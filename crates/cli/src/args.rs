//! What can be typed.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};

/// A coding agent whose heart is a context engine: see what is sent to a model, what it costs, and why.
///
/// Without a command, in a terminal, it begins a conversation. `hardpan -p "…"` answers one prompt.
#[derive(Debug, Parser)]
#[command(name = "hardpan", version, max_term_width = 100, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(flatten)]
    pub chat: Chat,
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Args {
    /// What was typed; a mistake is told, and ends the process with exit code 2.
    pub fn read() -> Self {
        Args::try_parse().unwrap_or_else(|error| with_hint(error).exit())
    }
}

/// A word where a command could stand may be meant as a prompt.
fn with_hint(mut error: clap::Error) -> clap::Error {
    let word = error.get(ContextKind::InvalidSubcommand).map(ToString::to_string);
    if word.is_some_and(|word| Args::command().find_subcommand(&word).is_none()) {
        let hint = r#"a prompt is given with -p, in quotes: hardpan -p "…""#;
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the request that would be sent: its blocks, or with --json its exact body
    Request {
        /// The prompt; `-` reads it from standard input
        prompt: Option<String>,
        /// Files to show to the model: text, or images
        files: Vec<PathBuf>,
        #[command(flatten)]
        what: What,
        /// Print the exact body, and nothing else, on standard output
        #[arg(long)]
        json: bool,
        /// With --json: print {"body", "origins"}: every block with where it came from
        #[arg(long, requires = "json")]
        origins: bool,
        /// Send it without tools, and print the answer (with --json: the answer, its usage and its cost)
        #[arg(long, conflicts_with_all = ["origins", "diff"])]
        send: bool,
        /// Name the first block in which two requests differ; each is a snapshot, a body, or a body with origins
        #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["json", "snapshot"])]
        diff: Option<Vec<PathBuf>>,
        /// Write the memory that the layout would keep after this request (for the snapshot of the next one)
        #[arg(long, value_name = "FILE")]
        next_memory: Option<PathBuf>,
    },
    /// Show what the context holds: tokens by region, kind and item, breakpoints, price
    Context {
        /// Files to show to the model: text, or images
        files: Vec<PathBuf>,
        /// The prompt; `-` reads it from standard input
        #[arg(long)]
        prompt: Option<String>,
        #[command(flatten)]
        what: What,
        /// Print the breakdown as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the snapshot that a request would be made from, or the format's schema
    Snapshot {
        /// The prompt; `-` reads it from standard input
        prompt: Option<String>,
        /// Files to show to the model: text, or images
        files: Vec<PathBuf>,
        #[command(flatten)]
        what: What,
        /// Print the JSON schema of the format
        #[arg(long)]
        schema: bool,
    },
    /// Print a compact map of what the code contains
    Map {
        /// Only these files and folders
        paths: Vec<String>,
        /// Keep the highest-ranked definitions, at most so many tokens of them
        #[arg(long, value_name = "N")]
        tokens: Option<usize>,
        /// With --tokens: rank by what these files use, and what uses them
        #[arg(long, value_name = "FILE", num_args = 1..)]
        focus: Vec<String>,
        /// Print files, symbols and imports as JSON
        #[arg(long)]
        json: bool,
        /// The folder [default: this one]
        #[arg(long, value_name = "FOLDER")]
        dir: Option<PathBuf>,
    },
    /// Tell where a symbol is defined, and where it is used
    Symbols {
        /// Its name
        name: String,
        /// Print the places as JSON
        #[arg(long)]
        json: bool,
        /// The folder [default: this one]
        #[arg(long, value_name = "FOLDER")]
        dir: Option<PathBuf>,
    },
    /// Print the system prompt as it would be sent
    Prompt {
        #[command(flatten)]
        what: What,
        /// Print one of the texts it is made from, as it is in use: system.md, agent.md, phrases.toml, …
        #[arg(long, value_name = "NAME")]
        file: Option<String>,
    },
    /// List models: windows, prices, what they can do
    Models {
        /// Only those whose name contains this
        filter: Option<String>,
        /// Only those of this provider
        #[arg(long)]
        provider: Option<String>,
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// List providers: where they are, which variable holds their key, and whether one is set
    Providers {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a provider on loopback that needs no key: strict, caching, scripted, faulty on order
    ///
    /// It speaks Anthropic Messages and OpenAI Chat Completions. The address it prints is the base URL for clients, with or
    /// without /v1; for Hardpan, in config.toml: [providers.anthropic] base_url = "http://127.0.0.1:PORT"
    Simulator {
        /// The port on 127.0.0.1; 0 takes one that is free
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Answer from this script (YAML, docs/simulator.md) in place of the built-in assistant
        #[arg(long, value_name = "FILE")]
        script: Option<PathBuf>,
        /// What goes wrong, such as "status=529,times=2; cut=400,every=3" (docs/simulator.md)
        #[arg(long, value_name = "SPEC")]
        faults: Option<String>,
    },
    /// List this folder's conversations; search, show, export or delete them
    Sessions(crate::sessions::Sessions),
    /// Add up what was paid: by session, day, model, project, kind or item
    Cost(crate::cost::Cost),
    /// Tell why a session paid again for what had been cached
    Why(crate::why::Why),
    /// Write a commit message for what is staged, show it, and commit
    Commit(crate::commit::Commit),
    /// Explain the bill of recorded sessions: what was paid, what a stable prefix would have paid, each loss with its cause
    ///
    /// It reads sessions of pi, Claude Code, Codex and Hardpan, and needs no key and no settings.
    Audit(crate::audit::AuditArgs),
    /// Run recorded sessions through the layouts: what each would have cost, against the bill and against the best there is
    ///
    /// It reads sessions of pi, Claude Code, Codex and Hardpan, and needs no key and no settings (docs/economy.md).
    Replay(crate::replay::ReplayArgs),
    /// Drive the agent from a program: JSON lines on standard input and output (docs/rpc.md)
    Rpc(crate::rpc::Rpc),
    /// Trust this folder: its .hardpan/ settings and prompts are used from now on
    Trust {
        /// The folder; this one if left out
        folder: Option<PathBuf>,
        /// Stop trusting it
        #[arg(long)]
        remove: bool,
    },
    /// Print Hardpan's own documents: their list, or one by name
    Docs {
        /// Which one
        name: Option<String>,
        /// Print the list as JSON
        #[arg(long, conflicts_with = "name")]
        json: bool,
    },
    /// Restrict this process, then become the command (how tools start commands)
    #[command(name = "__sandbox", hide = true)]
    Sandbox {
        /// What the command may do, as JSON
        policy: String,
        /// The command
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<std::ffi::OsString>,
    },
}

/// What a request is made from, and whom it is for.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct What {
    #[arg(skip)]
    pub prompt: Option<String>,
    #[arg(skip)]
    pub files: Vec<PathBuf>,
    /// Start from this snapshot file instead of the folder
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,
    /// Go on with this session (a session file)
    #[arg(long, value_name = "FILE", conflicts_with = "snapshot")]
    pub session: Option<PathBuf>,
    #[command(flatten)]
    pub whom: Whom,
    /// The time of the request, such as 2026-02-19T14:00:00Z [default: now]
    #[arg(long, value_name = "TIME")]
    pub now: Option<String>,
    /// Lay the context anew instead of telling what changed (strata)
    #[arg(long)]
    pub fold: bool,
    /// Declare none of the agent's tools and skills, as --send does
    #[arg(long)]
    pub no_tools: bool,
}

impl What {
    /// The same, with the words of the command line.
    pub fn with(&self, prompt: &Option<String>, files: &[PathBuf]) -> What {
        What { prompt: prompt.clone(), files: files.to_vec(), ..self.clone() }
    }
}

/// Whom a request is for, and where the work is.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Whom {
    /// Attach an image to the prompt
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// How the prompt is ordered: strata, panels, tiers or inline [default: the conversation's, or strata]
    #[arg(long)]
    pub layout: Option<String>,
    /// The provider [default: the model's own, or anthropic]
    #[arg(long)]
    pub provider: Option<String>,
    /// The model, as `hardpan models` lists it [default: the conversation's, or a current Sonnet]
    #[arg(long)]
    pub model: Option<String>,
    /// The most tokens of answer [default: the model's limit, at most 32000]
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u32>,
    /// Let the model think first, within this many tokens
    #[arg(long, value_name = "N")]
    pub thinking: Option<u32>,
    /// The folder to work in [default: this one]
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// Leave the map of the repository's symbols out
    #[arg(long)]
    pub no_map: bool,
}

/// A conversation: how it begins, and how it is shown.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Chat {
    /// Answer this prompt and exit; without one, or with `-`, it is read from standard input. What is piped in beside a prompt
    /// goes with it
    #[arg(short, long, value_name = "PROMPT", num_args = 0..=1, default_missing_value = "-")]
    pub print: Option<String>,
    /// How the work is shown: text, or json (one event per line)
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
    /// Show tokens, cache and cost after each answer
    #[arg(long)]
    pub hud: bool,
    /// Go on with the last conversation in this folder
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["resume", "fork"])]
    pub last: bool,
    /// Go on with this conversation: an id, a name or a file (`hardpan sessions` lists them)
    #[arg(short, long, value_name = "SESSION", conflicts_with = "fork")]
    pub resume: Option<String>,
    /// Begin a conversation of its own with all that was said in this one
    #[arg(long, value_name = "SESSION")]
    pub fork: Option<String>,
    /// With --resume or --fork: go on from this entry instead of the last
    #[arg(long, value_name = "ENTRY")]
    pub at: Option<String>,
    /// Ask nothing: every tool may run. For containers and other places where nothing can be harmed
    #[arg(long)]
    pub yes: bool,
    /// Keep nothing of this conversation
    #[arg(long, conflicts_with_all = ["last", "resume", "fork"])]
    pub no_session: bool,
    #[command(flatten)]
    pub whom: Whom,
}

/// How the work is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// The answer's text.
    #[default]
    Text,
    /// Events, one JSON object per line.
    Json,
}
