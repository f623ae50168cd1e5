//! [`Args`]: the command line, declared for clap.
//!
//! The doc comments of commands and flags in this file are what `--help` prints, so they are
//! written for the person who runs `hardpan`.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};
use hardpan_app::approval::ApprovalMode;
use hardpan_app::options::{OpenOptions, RequestOptions, SessionChoice, SessionStorage, TargetOptions};
use hardpan_models::ThinkingSetting;
use hardpan_tools::SandboxLauncher;
use jiff::Timestamp;

use crate::chat::commands;
use crate::command_setup::working_folder;

/// A coding agent for the terminal that shows what it sends to the model, what that costs, and why
///
/// Run `hardpan` in a terminal to start a conversation about the folder you are in. Run
/// `hardpan -p "…"` to get one answer and exit. The commands below inspect what Hardpan sends
/// without sending it, and account for what you paid.
#[derive(Debug, Parser)]
#[command(
    name = "hardpan",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  hardpan                                    start a conversation
  hardpan -p \"Why does the build fail?\"      answer one prompt and exit
  cargo test 2>&1 | hardpan -p \"Explain\"     send the output of a command along
  hardpan --continue                         resume the last conversation of this folder
  hardpan request \"Explain\" src/main.rs      show the request without sending it

Set ANTHROPIC_API_KEY (or another provider's variable, see `hardpan providers`) first. Without a
key, a built-in simulator answers, so that you can try everything for free."
)]
pub struct Args {
    #[command(flatten)]
    pub chat: ChatArgs,
    /// Write what happens inside to FILE; HARDPAN_LOG sets the level [default: info], see `hardpan
    /// docs logging`
    #[arg(long, value_name = "FILE", global = true)]
    pub log: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Args {
    /// Parses the process's arguments. Prints mistakes and exits with code 2.
    pub fn read() -> Self {
        Args::try_parse().unwrap_or_else(|error| with_hint(error).exit())
    }
}

/// Suggests `-p` where somebody typed a prompt in the place of a command.
fn with_hint(mut error: clap::Error) -> clap::Error {
    let word = error.get(ContextKind::InvalidSubcommand).map(ToString::to_string);
    if word.is_some_and(|word| Args::command().find_subcommand(&word).is_none()) {
        let hint = r#"to send a prompt, use -p and quotes: hardpan -p "…""#;
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the request that Hardpan would send, without sending it
    ///
    /// Prints one row per block: where it stands in the body, its tokens, its cache breakpoint, and
    /// where its text came from. With --json, prints the exact body. Nothing is sent unless you add
    /// --send.
    #[command(after_help = "Examples:
  hardpan request \"What does main do?\" src/main.rs
  hardpan request \"Hi\" --json | jq .messages
  hardpan request \"Hi\" --layout tiers --model gpt-5.5
  hardpan request --diff before.json after.json")]
    Request {
        /// Prompt to send; `-` reads it from standard input
        prompt: Option<String>,
        /// Files to put into the context: text or images
        files: Vec<PathBuf>,
        #[command(flatten)]
        request_args: RequestArgs,
        /// Print the exact request body on standard output, and nothing else
        #[arg(long)]
        json: bool,
        /// With --json: print {"body", "origins"}, where "origins" says where each block came from
        #[arg(long, requires = "json")]
        origins: bool,
        /// Send the request, without tools, and print the answer (with --json: answer, usage and
        /// cost)
        #[arg(long, conflicts_with_all = ["origins", "diff"])]
        send: bool,
        /// Compare two requests and name the first block that differs. A and B are snapshots,
        /// bodies (--json), or bodies with origins (--json --origins)
        #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["json", "snapshot"])]
        diff: Option<Vec<PathBuf>>,
        /// Write the layout's state after this request to FILE; put it into the snapshot of the
        /// next request as "memory"
        #[arg(long, value_name = "FILE")]
        next_memory: Option<PathBuf>,
    },
    /// Show what fills the context window: tokens by region, kind and item, breakpoints, price
    #[command(after_help = "Examples:
  hardpan context
  hardpan context src/main.rs src/lib.rs --prompt \"Explain\"
  hardpan context --layout tiers --json")]
    Context {
        /// Files to put into the context: text or images
        files: Vec<PathBuf>,
        /// Prompt to count as well; `-` reads it from standard input
        #[arg(long)]
        prompt: Option<String>,
        #[command(flatten)]
        request_args: RequestArgs,
        /// Print the breakdown as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the snapshot that a request is built from, or the JSON schema of snapshots
    ///
    /// A snapshot holds everything that a request depends on, so the same snapshot always gives the
    /// same bytes. Pass it to other commands with --snapshot.
    #[command(after_help = "Example:
  hardpan snapshot \"Explain\" src/main.rs > snapshot.json
  hardpan request --snapshot snapshot.json --layout panels")]
    Snapshot {
        /// Prompt to include; `-` reads it from standard input
        prompt: Option<String>,
        /// Files to put into the context: text or images
        files: Vec<PathBuf>,
        #[command(flatten)]
        request_args: RequestArgs,
        /// Print the JSON schema of the snapshot format and exit
        #[arg(long)]
        schema: bool,
    },
    /// Print a compact map of the code: files, definitions and imports
    #[command(after_help = "Examples:
  hardpan map src
  hardpan map --tokens 2000 --focus src/main.rs")]
    Map {
        /// Files and folders to map [default: the whole repository]
        paths: Vec<String>,
        /// Keep the highest-ranked definitions that fit into N tokens
        #[arg(long, value_name = "N")]
        tokens: Option<usize>,
        /// With --tokens: rank higher what these files use, and what uses them
        #[arg(long, value_name = "FILE", num_args = 1..)]
        focus: Vec<String>,
        /// Print files, symbols and imports as JSON
        #[arg(long)]
        json: bool,
        /// Folder to work in [default: the current folder]
        #[arg(long, value_name = "FOLDER")]
        dir: Option<PathBuf>,
    },
    /// Find where a symbol is defined and which files use it
    Symbols {
        /// Name of the function, type, constant, …
        name: String,
        /// Print the definitions as JSON
        #[arg(long)]
        json: bool,
        /// Folder to work in [default: the current folder]
        #[arg(long, value_name = "FOLDER")]
        dir: Option<PathBuf>,
    },
    /// Print the system prompt that Hardpan would send
    Prompt {
        #[command(flatten)]
        request_args: RequestArgs,
        /// Print one of the texts behind it instead, with your overrides: system.md, agent.md,
        /// phrases.toml, …
        #[arg(long, value_name = "NAME")]
        file: Option<String>,
    },
    /// List models with their context windows, prices and abilities
    #[command(after_help = "Examples:
  hardpan models sonnet
  hardpan models --provider openrouter")]
    Models {
        /// List only models whose name contains this text
        filter: Option<String>,
        /// List only models of this provider
        #[arg(long)]
        provider: Option<String>,
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// List providers: their address, the variable for their key, and whether you set one
    Providers {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a fake provider on this machine, for tests and for trying Hardpan without a key
    ///
    /// It speaks Anthropic Messages and OpenAI Chat Completions, validates requests strictly,
    /// models the prompt cache, and can fail on demand. It prints its address, which is the base
    /// URL for clients, with or without /v1. To use it from Hardpan, put this into config.toml:
    ///
    ///   [providers.anthropic]
    ///   base_url = "http://127.0.0.1:PORT"
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:
  hardpan simulator --port 8080
  hardpan simulator --script answers.yaml --faults \"status=529,times=2\""
    )]
    Simulator {
        /// Port on 127.0.0.1; 0 picks a free one
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Answer from this YAML script instead of the built-in assistant (see `hardpan docs
        /// simulator`)
        #[arg(long, value_name = "FILE")]
        script: Option<PathBuf>,
        /// Inject faults, such as "status=529,times=2; cut=400,every=3" (see `hardpan docs
        /// simulator`)
        #[arg(long, value_name = "SPEC")]
        faults: Option<String>,
    },
    /// List the conversations of this folder, or search, show, export and delete them
    Sessions(crate::sessions::SessionsArgs),
    /// Add up what you paid, by session, day, model, project, kind or item
    Cost(crate::cost::CostArgs),
    /// Explain why a session paid again for tokens that were cached
    Why(crate::why::WhyArgs),
    /// Write a commit message for the staged changes, show it to you, and commit
    Commit(crate::commit::CommitArgs),
    /// Analyse recorded sessions: what they cost, what a stable prompt prefix would have saved, and
    /// what caused each loss
    ///
    /// Reads sessions of pi, Claude Code, Codex and Hardpan. Needs no key and no settings.
    Audit(crate::audit::AuditArgs),
    /// Replay recorded sessions through each layout and compare the costs
    ///
    /// Compares each layout with the actual bill and with the cheapest possible one. Reads sessions
    /// of pi, Claude Code, Codex and Hardpan. Needs no key and no settings. See `hardpan docs
    /// economy`.
    Replay(crate::replay::ReplayArgs),
    /// Drive the agent from another program, with JSON lines on standard input and output
    ///
    /// See `hardpan docs rpc` for the protocol.
    Rpc(crate::rpc::RpcArgs),
    /// Trust a folder: use its .hardpan/ settings, prompts and skills from now on
    ///
    /// Hardpan ignores the .hardpan/ folder of a project until you trust it, because its contents
    /// change how the agent behaves. Read them first.
    Trust {
        /// Folder to trust [default: the current folder]
        folder: Option<PathBuf>,
        /// Stop trusting it
        #[arg(long)]
        remove: bool,
    },
    /// Print Hardpan's documentation
    #[command(after_help = "Examples:
  hardpan docs          list the documents
  hardpan docs agent    print one")]
    Docs {
        /// Document to print; without it, lists all documents
        name: Option<String>,
        /// Print the list as JSON
        #[arg(long, conflicts_with = "name")]
        json: bool,
    },
    /// Enter the sandbox, then exec a command (internal: this is how tools start commands)
    #[command(name = "__sandbox", hide = true)]
    Sandbox {
        /// Sandbox policy as JSON
        policy: String,
        /// Command to exec
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<std::ffi::OsString>,
    },
}

/// Flags of the commands that build a request: what goes into it, and which model it is for.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RequestArgs {
    #[arg(skip)]
    pub prompt: Option<String>,
    #[arg(skip)]
    pub files: Vec<PathBuf>,
    /// Build the request from this snapshot file instead of the folder
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,
    /// Include the conversation stored in this session file
    #[arg(long, value_name = "FILE", conflicts_with = "snapshot")]
    pub session: Option<PathBuf>,
    #[command(flatten)]
    pub target_args: TargetArgs,
    /// Time to put into the request, such as 2026-02-19T14:00:00Z [default: now]
    #[arg(long, value_name = "TIME")]
    pub now: Option<String>,
    /// In the strata layout: fold, that is, send current file contents instead of updates to old
    /// ones
    #[arg(long)]
    pub fold: bool,
    /// Leave out the agent's tools and skills
    #[arg(long)]
    pub no_tools: bool,
}

impl RequestArgs {
    /// The request that these flags ask for. Reads standard input if it is the prompt.
    pub fn options(&self) -> Result<RequestOptions> {
        let args = &self.target_args;
        Ok(RequestOptions {
            prompt: self.prompt.as_deref().map(read_prompt).transpose()?,
            files: self.files.clone(),
            images: args.image.clone(),
            snapshot: self.snapshot.clone(),
            session: self.session.clone(),
            target: args.options(),
            now: self.now.as_deref().map(parse_time).transpose()?,
            fold: self.fold,
            tools: !self.no_tools,
            symbol_map: !args.no_map,
            reserved_names: commands::names(),
            ..RequestOptions::new(working_folder(args.dir.as_deref())?)
        })
    }

    /// Adds the positional arguments, whose order differs between commands.
    pub fn with_input(&self, prompt: &Option<String>, files: &[PathBuf]) -> RequestArgs {
        RequestArgs { prompt: prompt.clone(), files: files.to_vec(), ..self.clone() }
    }
}

/// Flags that choose the model, the layout and the folder.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TargetArgs {
    /// Attach an image to the prompt; repeat for several
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// Order of the prompt: strata, panels, tiers or inline (see `hardpan docs layouts`) [default:
    /// the conversation's, else strata]
    #[arg(long)]
    pub layout: Option<String>,
    /// Provider to use [default: the model's own, else anthropic]
    #[arg(long)]
    pub provider: Option<String>,
    /// Model to use, as `hardpan models` lists it [default: the conversation's, else a current
    /// Sonnet]
    #[arg(long)]
    pub model: Option<String>,
    /// Limit the answer to N tokens [default: the model's limit, at most 32000]
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u32>,
    /// How much the model thinks before it answers: off, minimal, low, medium, high, xhigh, max, a
    /// number of tokens, or default; where a model has no such form, the nearest is used
    #[arg(long, value_name = "LEVEL")]
    pub thinking: Option<ThinkingSetting>,
    /// Folder to work in [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// Leave the map of the repository's symbols out of the prompt
    #[arg(long)]
    pub no_map: bool,
}

impl TargetArgs {
    /// The model and the layout that these flags ask for.
    pub fn options(&self) -> TargetOptions {
        TargetOptions {
            provider: self.provider.clone(),
            model: self.model.clone(),
            max_tokens: self.max_tokens,
            thinking: self.thinking,
            layout: self.layout.clone(),
        }
    }
}

/// Flags of a conversation: how it starts, and how Hardpan shows it.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ChatArgs {
    /// Answer PROMPT and exit
    ///
    /// Without PROMPT, or with `-`, reads it from standard input. With a PROMPT, text that you pipe
    /// in goes to the model along with it.
    #[arg(short, long, value_name = "PROMPT", num_args = 0..=1, default_missing_value = "-")]
    pub print: Option<String>,
    /// Print text for people, or JSON events for programs, one per line
    #[arg(long, value_enum, default_value_t)]
    pub output: OutputFormat,
    /// Show tokens, cache use and cost after each answer
    #[arg(long)]
    pub hud: bool,
    /// Resume the last conversation of this folder
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["resume", "fork"])]
    pub last: bool,
    /// Resume a conversation by id, name or file (`hardpan sessions` lists them)
    #[arg(short, long, value_name = "SESSION", conflicts_with = "fork")]
    pub resume: Option<String>,
    /// Start a new conversation with a copy of another one's messages
    #[arg(long, value_name = "SESSION")]
    pub fork: Option<String>,
    /// With --resume or --fork: go back to this entry (`hardpan sessions show` lists them)
    #[arg(long, value_name = "ENTRY")]
    pub at: Option<String>,
    /// Run every tool without asking. Use it in containers and other places where nothing can be
    /// harmed
    #[arg(long)]
    pub yes: bool,
    /// Do not store this conversation
    #[arg(long, conflicts_with_all = ["last", "resume", "fork"])]
    pub no_session: bool,
    #[command(flatten)]
    pub target_args: TargetArgs,
}

impl ChatArgs {
    /// The conversation that these flags ask for.
    pub fn options(&self) -> Result<OpenOptions> {
        let args = &self.target_args;
        Ok(OpenOptions {
            session: self.session()?,
            storage: if self.no_session { SessionStorage::Temporary } else { SessionStorage::Stored },
            approval: if self.yes { ApprovalMode::AllowAll } else { ApprovalMode::AskUser },
            target: args.options(),
            images: args.image.clone(),
            symbol_map: !args.no_map,
            // The sandbox is entered by this program, in its hidden command.
            sandbox_launcher: std::env::current_exe()
                .ok()
                .map(|program| SandboxLauncher { program, arguments: vec!["__sandbox".into()] }),
            reserved_names: commands::names(),
            ..OpenOptions::new(working_folder(args.dir.as_deref())?)
        })
    }

    fn session(&self) -> Result<SessionChoice> {
        let at = self.at.clone();
        Ok(match (&self.resume, &self.fork) {
            (_, Some(session)) => SessionChoice::Fork { session: session.clone(), at },
            (Some(session), None) => SessionChoice::Resume { session: session.clone(), at },
            (None, None) if at.is_some() => {
                bail!("--at needs a conversation: name one with --resume or --fork")
            }
            (None, None) if self.last => SessionChoice::Latest,
            (None, None) => SessionChoice::New,
        })
    }
}

fn parse_time(text: &str) -> Result<Timestamp> {
    text.parse().with_context(|| format!("--now {text}: expected a time, such as 2026-02-19T14:00:00Z"))
}

/// The prompt; `-` stands for standard input.
fn read_prompt(prompt: &str) -> Result<String> {
    if prompt != "-" {
        return Ok(prompt.to_owned());
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .context("cannot read the prompt on standard input as UTF-8")?;
    Ok(text.trim_end().to_owned())
}

/// How Hardpan prints a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// The answer's text
    #[default]
    Text,
    /// The agent's events, one JSON object per line
    Json,
}
