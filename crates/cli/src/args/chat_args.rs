//! [`ChatArgs`]: the flags of a conversation. [`ConversationArgs`] are those that every face of a
//! conversation has.

use std::path::PathBuf;

use anyhow::{Result, bail};
use hardpan_app::approval::ApprovalMode;
use hardpan_app::options::{ForeignSessions, OpenOptions, SessionChoice, SessionStorage};
use hardpan_app::settings::SandboxMode;
use hardpan_sandbox::SandboxLauncher;

use super::TargetArgs;
use crate::chat::commands;
use crate::command_setup::working_folder;
use crate::script_output::{ChatOutput, ClaudeOutput};

/// Flags of a conversation in the terminal: how it starts, and how Hardpan shows it.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ChatArgs {
    /// Answer PROMPT and exit
    ///
    /// Without PROMPT, or with `-`, reads it from standard input. With a PROMPT, text that you pipe
    /// in goes to the model along with it.
    #[arg(short, long, value_name = "PROMPT", num_args = 0..=1, default_missing_value = "-")]
    pub print: Option<String>,
    /// Print text for people, JSON events for programs, or what scripts for another agent read
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: ChatOutput,
    /// As Claude Code names it: `text`, `json` or `stream-json`
    #[arg(long, value_enum, hide = true, conflicts_with = "output")]
    pub output_format: Option<ClaudeOutput>,
    /// What Claude Code wants besides `stream-json`; changes nothing here
    #[arg(long, hide = true, requires = "output_format")]
    pub verbose: bool,
    /// As Claude Code names it: `stream_event` lines with `stream-json`
    #[arg(long, hide = true, requires = "output_format")]
    pub include_partial_messages: bool,
    /// Show tokens, cache use and cost after each answer
    #[arg(long)]
    pub hud: bool,
    /// Converse in lines, without cursor movement: for screen readers, and for programs that record
    ///
    /// Also with `HARDPAN_PLAIN=1`, `screen = "plain"` in config.toml, and where TERM is `dumb`.
    #[arg(long, conflicts_with = "print")]
    pub plain: bool,
    #[command(flatten)]
    pub conversation: ConversationArgs,
}

impl ChatArgs {
    /// How the conversation is printed, whichever flag says so.
    pub fn chat_output(&self) -> ChatOutput {
        match self.output_format {
            None => self.output,
            Some(ClaudeOutput::StreamJson) if self.include_partial_messages => ChatOutput::ClaudePartialJson,
            Some(format) => format.into(),
        }
    }
}

/// Flags that choose which conversation a face opens, and how.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ConversationArgs {
    /// Resume the last conversation of this folder
    // `hardpan rpc` once took -l.
    #[arg(short = 'c', short_alias = 'l', long = "continue", conflicts_with_all = ["resume", "fork"])]
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
    /// With --resume or --fork: continue a conversation of another folder, or of a file that is not
    /// among your sessions
    #[arg(long)]
    pub foreign: bool,
    /// Run every tool without asking. Use it in containers and other places where nothing can be
    /// harmed
    #[arg(long)]
    pub yes: bool,
    /// Whether commands run in the sandbox: `required`, `on` or `off` [default: `sandbox` in
    /// config.toml, else on]
    #[arg(long, value_name = "MODE")]
    pub sandbox: Option<SandboxMode>,
    /// Go on by itself while todos are left, within the limits of `[spine]` in config.toml
    #[arg(long)]
    pub auto_continue: bool,
    /// Attach a document that the server has, by its id; repeat for several (layout inline)
    #[arg(long, value_name = "ID")]
    pub doc: Vec<String>,
    /// Load an extension, a TypeScript or JavaScript file or its folder; repeat for several
    ///
    /// Extensions in ~/.config/hardpan/extensions are loaded as well, and those in .hardpan/extensions
    /// and .pi/extensions of a folder that you trust. See `hardpan docs extensions`.
    #[arg(long, value_name = "FILE")]
    pub extension: Vec<PathBuf>,
    /// Give an extension its flag; repeat for several. `hardpan extensions` lists those that there are
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = parse_extension_flag)]
    pub extension_flag: Vec<(String, Option<String>)>,
    /// Load no extensions but those of --extension
    #[arg(long)]
    pub no_extensions: bool,
    /// Do not store this conversation
    #[arg(long, conflicts_with_all = ["last", "resume", "fork"])]
    pub no_session: bool,
    #[command(flatten)]
    pub target_args: TargetArgs,
}

/// `NAME` or `NAME=VALUE`, with or without the dashes of a flag.
fn parse_extension_flag(text: &str) -> Result<(String, Option<String>), std::convert::Infallible> {
    let text = text.trim_start_matches('-');
    Ok(match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (text.to_owned(), None),
    })
}

impl ConversationArgs {
    /// Whether an earlier conversation is asked for.
    pub fn names_session(&self) -> bool {
        self.last || self.resume.is_some() || self.fork.is_some()
    }

    /// The conversation that these flags ask for.
    pub fn options(&self) -> Result<OpenOptions> {
        let args = &self.target_args;
        Ok(OpenOptions {
            session: self.session()?,
            foreign_sessions: if self.foreign { ForeignSessions::Accept } else { ForeignSessions::Refuse },
            storage: if self.no_session { SessionStorage::Temporary } else { SessionStorage::Stored },
            approval: if self.yes { ApprovalMode::AllowAll } else { ApprovalMode::AskUser },
            target: args.options(),
            images: args.image.clone(),
            documents: self.doc.clone(),
            symbol_map: !args.no_map,
            sandbox: self.sandbox,
            // The sandbox is entered by this program, called again.
            sandbox_launcher: SandboxLauncher::installed(),
            auto_continue: self.auto_continue.then_some(true),
            reserved_names: commands::names(),
            extensions: self.extension.clone(),
            extension_flags: self.extension_flag.iter().cloned().collect(),
            discover_extensions: !self.no_extensions,
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::{Args, Command};

    #[test]
    fn every_face_continues_the_last_conversation_with_the_same_flag() {
        for flag in ["--continue", "-c", "-l"] {
            assert!(Args::try_parse_from(["hardpan", flag]).unwrap().chat.conversation.last, "{flag}");
            match Args::try_parse_from(["hardpan", "rpc", flag]).unwrap().command {
                Some(Command::Rpc(rpc)) => assert!(rpc.conversation.last, "{flag}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
