//! [`Args`]: the command line, declared for clap.
//!
//! The doc comments of commands and flags in this module are what `--help` prints, so they are
//! written for the person who runs `hardpan`.

mod chat_args; // ChatArgs and ConversationArgs: how a conversation starts, and how it is shown
mod request_args; // RequestArgs and TargetArgs: what goes into a request, and which model it is for

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};

pub use chat_args::{ChatArgs, ConversationArgs};
pub use request_args::{RequestArgs, TargetArgs};

use crate::models::ModelsArgs;
use crate::output;

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
        Args::try_parse().unwrap_or_else(|error| exit_with(&with_hint(error)))
    }
}

/// Prints help or an error, and ends. An error quotes arguments, which may be anything.
fn exit_with(error: &clap::Error) -> ! {
    // Help and version: a disk that is full is an error, a reader that went away is not.
    if !error.use_stderr() {
        let failed = output::print_controls(&error.to_string()).map_err(anyhow::Error::from).err();
        let failed = failed.filter(|error| !output::is_output_closed(error));
        failed.iter().for_each(|error| note!("hardpan: {}", output::error_text(error)));
        std::process::exit(i32::from(failed.is_some()));
    }
    let quotes_controls = error.to_string().contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t'));
    if !quotes_controls {
        error.exit();
    }
    note_inline!("{error}");
    std::process::exit(error.exit_code());
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
    /// where its text came from. With --json, prints the exact body. The agent builds it as it builds
    /// its own requests, with the memory and the open files of the conversation. Nothing is stored,
    /// and nothing is sent unless you add --send.
    #[command(after_help = "Examples:
  hardpan request \"What does main do?\" src/main.rs
  hardpan request \"Hi\" --json | jq .messages
  hardpan request \"Hi\" --layout tiers --model gpt-5.5
  hardpan request \"Go on\" --continue --http
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
        /// Print the whole HTTP request: address, headers (keys are masked) and the exact body
        #[arg(long, conflicts_with_all = ["json", "send", "diff"])]
        http: bool,
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
        /// Print the overview that prompts begin with, instead of the map
        #[arg(long, conflicts_with_all = ["json", "focus"])]
        overview: bool,
        /// Keep the highest-ranked definitions that fit into N tokens [default for an overview: 1000]
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
  hardpan models --provider openrouter
  hardpan models --aliases
  hardpan models --check anthropic")]
    Models(ModelsArgs),
    /// List providers: their address, the variable for their key, and whether you set one
    Providers {
        /// Forget what servers have refused, so that the next request tries it again
        #[arg(long, conflicts_with = "json")]
        forget_refusals: bool,
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a fake provider on this machine, for tests and for trying Hardpan without a key
    ///
    /// It speaks Anthropic Messages, OpenAI Responses and Chat Completions, and Gemini's own
    /// protocol, validates requests strictly, models the prompt cache, and can fail on demand. It
    /// prints its address, which is the base URL for clients, with or without /v1. To use it from
    /// Hardpan:
    ///
    ///   ANTHROPIC_BASE_URL=http://127.0.0.1:PORT hardpan
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:
  hardpan simulator --port 8080
  hardpan simulator --script answers.yaml --faults \"status=529,times=2\"
  hardpan simulator --rules"
    )]
    Simulator(crate::simulator::SimulatorArgs),
    /// List the conversations of this folder, or search, show, export and delete them
    Sessions(crate::sessions::SessionsArgs),
    /// Add up what you paid, by session, day, model, project, kind or item
    Cost(crate::cost::CostArgs),
    /// Explain why a session paid again for tokens that were cached
    Why(crate::why::WhyArgs),
    /// Show what tools were allowed to do in this folder, by whom, and how it ended
    Log(crate::log::LogArgs),
    /// Write a commit message for the staged changes, show it to you, and commit
    Commit(crate::commit::CommitArgs),
    /// Analyse recorded sessions: what they cost, what a stable prompt prefix would have saved, and
    /// what caused each loss
    ///
    /// Reads sessions of pi, Claude Code, Codex, Qwen Code and Hardpan. Needs no key and no settings.
    Audit(crate::audit::AuditArgs),
    /// Go on with a conversation that began in Claude Code, Codex, pi or Qwen Code
    ///
    /// Stores it as a conversation of Hardpan, and tells what of it could not be taken. The file of the
    /// other agent stays as it is.
    Import(crate::import::ImportArgs),
    /// Replay recorded sessions through each layout and compare the costs
    ///
    /// Compares each layout with the actual bill and with the cheapest possible one. Reads sessions
    /// of pi, Claude Code, Codex, Qwen Code and Hardpan. Needs no key and no settings. See `hardpan docs
    /// economy`.
    Replay(crate::replay::ReplayArgs),
    /// Drive the agent from another program, with JSON lines on standard input and output
    ///
    /// See `hardpan docs rpc` for the protocol.
    Rpc(crate::rpc::RpcArgs),
    /// Serve an editor over the Agent Client Protocol: Zed, JetBrains, Neovim
    ///
    /// See `hardpan docs acp` for how to set it up.
    Acp(crate::acp::AcpArgs),
    /// List the extensions of this folder, and what each brings
    ///
    /// Loads them as a conversation would. See `hardpan docs extensions`.
    Extensions(crate::extensions::ExtensionsArgs),
    /// List the MCP servers of this folder, their tools, and what these cost
    ///
    /// See `hardpan docs mcp`.
    Mcp(crate::mcp::McpArgs),
    /// Trust a folder: use its .hardpan/ settings, prompts, skills and agents from now on
    ///
    /// Hardpan ignores the .hardpan/ folder of a project, and skills and agents in .agents/ and .claude/,
    /// until you trust it, because its contents
    /// change how the agent behaves. This command shows them; when they change later, Hardpan
    /// ignores them until you run it again, and it shows what changed.
    Trust(crate::trust::TrustArgs),
    /// Check keys, settings, folders, git, the sandbox and the terminal, and say what to do
    Doctor(crate::doctor::DoctorArgs),
    /// Write an AGENTS.md with what is known about the project without a model
    ///
    /// Build and test commands come from the project's manifests, languages and layout from its
    /// files. Shows the text and asks before it writes; an AGENTS.md that is there stays as it is.
    Init(crate::init::InitArgs),
    /// Store a provider's key, typed without being shown, where only you can read it
    Key(crate::key_entry::KeyArgs),
    /// Print a script that completes commands and flags in your shell
    #[command(after_help = "Examples:
  hardpan completions bash > ~/.local/share/bash-completion/completions/hardpan
  hardpan completions zsh > ~/.zfunc/_hardpan
  hardpan completions fish > ~/.config/fish/completions/hardpan.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, for `man`
    #[command(after_help = "Example:
  hardpan man > ~/.local/share/man/man1/hardpan.1")]
    Man,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command below one, with the words that call it.
    fn commands(command: &clap::Command, words: &str) -> Vec<(String, clap::Command)> {
        let below =
            command.get_subcommands().flat_map(|sub| commands(sub, &format!("{words} {}", sub.get_name())));
        std::iter::once((words.to_owned(), command.clone())).chain(below).collect()
    }

    #[test]
    fn a_short_flag_means_the_same_in_every_command() {
        let mut meanings: std::collections::BTreeMap<char, (String, String)> = Default::default();
        let mut shared = 0;
        for (words, command) in commands(&Args::command(), "hardpan") {
            for argument in command.get_arguments() {
                let (Some(short), Some(long)) = (argument.get_short(), argument.get_long()) else { continue };
                let (first, meaning) =
                    meanings.entry(short).or_insert_with(|| (words.clone(), long.to_owned())).clone();
                assert_eq!(long, meaning, "-{short} in {words} and in {first}");
                shared += 1;
            }
        }
        assert_eq!(meanings.get(&'c').map(|(_, long)| &**long), Some("continue"));
        assert!(shared > 2, "{meanings:?}");
    }

    #[test]
    fn the_declaration_is_sound() {
        Args::command().debug_assert();
    }
}
