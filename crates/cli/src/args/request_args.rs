//! [`RequestArgs`] and [`TargetArgs`]: the flags of commands that build a request.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result};
use hardpan_app::mentions::PromptSource;
use hardpan_app::options::{ForeignSessions, RequestOptions, RequestPurpose, SessionChoice, TargetOptions};
use hardpan_context::{AgentMode, KeepLevel, LifetimeSetting, PromptType};
use hardpan_models::ThinkingSetting;
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use crate::chat::commands;
use crate::command_setup::working_folder;

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
    /// Show the request that would go on with this conversation: its id, name or file
    #[arg(long, visible_alias = "resume", value_name = "SESSION", conflicts_with = "snapshot")]
    pub session: Option<String>,
    /// Show the request that would go on with the last conversation of this folder
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["snapshot", "session"])]
    pub last: bool,
    /// With --session and --send: send it even if the conversation is of another folder, or of a file
    /// that is not among your sessions
    #[arg(long)]
    pub foreign: bool,
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
    #[arg(skip)]
    pub purpose: RequestPurpose,
}

impl RequestArgs {
    /// The request that these flags ask for. Reads standard input if it is the prompt.
    pub fn options(&self) -> Result<RequestOptions> {
        let args = &self.target_args;
        let is_piped = self.prompt.as_deref() == Some("-");
        Ok(RequestOptions {
            prompt_source: if is_piped { PromptSource::Piped } else { PromptSource::Typed },
            prompt: self.prompt.as_deref().map(read_prompt).transpose()?,
            files: self.files.clone(),
            images: args.image.clone(),
            snapshot: self.snapshot.clone(),
            session: self.session_choice(),
            foreign_sessions: if self.foreign { ForeignSessions::Accept } else { ForeignSessions::Refuse },
            target: args.options(),
            now: self.now.as_deref().map(parse_time).transpose()?,
            fold: self.fold,
            tools: !self.no_tools,
            symbol_map: !args.no_map,
            purpose: self.purpose,
            reserved_names: commands::names(),
            ..RequestOptions::new(working_folder(args.dir.as_deref())?)
        })
    }

    fn session_choice(&self) -> SessionChoice {
        match &self.session {
            Some(session) => SessionChoice::Resume { session: session.clone(), at: None },
            None if self.last => SessionChoice::Latest,
            None => SessionChoice::New,
        }
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
    /// Agent that works: default, plan, reviewer, or one of your own (see `hardpan docs agents`)
    /// [default: the conversation's, else default]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Whether the model may call tools: on or off [default: on]
    #[arg(long, value_name = "MODE", value_parser = parse_word::<AgentMode>)]
    pub agent_mode: Option<AgentMode>,
    /// In the inline layout: the system prompt to start from: general, agent or custom [default:
    /// general]
    #[arg(long, value_name = "TYPE", value_parser = parse_word::<PromptType>)]
    pub prompt_type: Option<PromptType>,
    /// In the inline layout: the file of the prompt `custom`
    #[arg(long, value_name = "FILE")]
    pub prompt_path: Option<PathBuf>,
    /// How much of the conversation requests keep: all, history, current or lean; the model can
    /// recall what is left out [default: current]
    #[arg(long, value_name = "LEVEL")]
    pub keep: Option<KeepLevel>,
    /// How long the provider is asked to keep what requests cache, where it offers a choice: auto (by
    /// the pauses of the conversation), 5m or 1h [default: auto]
    #[arg(long, value_name = "TIME")]
    pub cache_lifetime: Option<LifetimeSetting>,
    /// Provider to use [default: the model's own, else anthropic]
    #[arg(long)]
    pub provider: Option<String>,
    /// Model to use: an id as `hardpan models` lists it, or an alias such as sonnet or gpt [default:
    /// the conversation's, else claude-sonnet-5-5]
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
            agent: self.agent.clone(),
            agent_mode: self.agent_mode,
            prompt_type: self.prompt_type,
            prompt_path: self.prompt_path.clone(),
            keep: self.keep,
            cache_lifetime: self.cache_lifetime,
        }
    }
}

/// A word as `config.toml` has it.
fn parse_word<T: DeserializeOwned>(word: &str) -> Result<T, serde_json::Error> {
    serde_json::from_value(word.into())
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
