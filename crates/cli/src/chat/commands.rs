//! The slash commands: [`SlashCommand`] is one of them, [`register_commands`] gives all of them to the
//! agent, and so to every face.
//!
//! A command is a row in the table of the file that it belongs to: name, arguments, help, what can be
//! completed, and the function that runs it.

mod acts; // what is done to the context: pin, exclude, fold, defer
pub mod arguments; // what can follow a command's name
mod choice_lists; // ChoiceLists: conversations and messages to choose from
mod context; // what is sent: requests, files, panels, the map
mod export; // what leaves the conversation: files, the clipboard
mod help; // the commands and the keys
mod messages; // what was said: queue, edits of messages, summaries
mod model; // what is asked: agent, model, thinking, tools
mod money; // what it costs
mod request; // what was sent, to the byte
mod session; // which conversation: new, resumed, forked, exported
mod start; // a key, a guide of the project, the index

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use hardpan_agent::{Agent, Command};
use hardpan_app::ConversationApp;
use hardpan_models::did_you_mean;

pub use super::command_error::SlashCommandError;
use crate::output::thousands;
use arguments::{ArgumentQuery, Choice};

pub use acts::{layout_meaning, session_changes};

/// The text to show; empty for none.
type CommandResult = Result<String, SlashCommandError>;

/// A slash command.
pub struct SlashCommand {
    /// Without the slash.
    pub name: &'static str,
    /// What follows the name: `[NAME]`; empty if nothing does.
    pub arguments: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// What can be completed at a place of the arguments.
    pub choices: fn(&ArgumentQuery<'_>) -> Vec<Choice>,
    run: for<'a> fn(CommandCall<'a>) -> BoxFuture<'a, CommandResult>,
}

/// A command that was typed.
#[derive(Clone, Copy)]
struct CommandCall<'a> {
    /// What stood behind the name, trimmed.
    arguments: &'a str,
    app: &'a Arc<ConversationApp>,
    agent: &'a Agent,
    quit_requested: &'a AtomicBool,
}

/// The tables, in the order of `/help`.
const TABLES: &[&[SlashCommand]] = &[
    help::COMMANDS,
    context::COMMANDS,
    request::COMMANDS,
    money::COMMANDS,
    model::COMMANDS,
    acts::COMMANDS,
    session::COMMANDS,
    export::COMMANDS,
    messages::COMMANDS,
    start::COMMANDS,
];

/// A message for later. The faces queue it themselves: what it says may name files.
pub const LATER: &str = "later";

/// How much the agent may do without asking. A face has a mode; the agent has none.
pub const MODE: &str = "mode";

/// Commands that faces carry out themselves.
const FACE_COMMANDS: [&str; 2] = [LATER, MODE];

/// All commands.
pub fn all() -> impl Iterator<Item = &'static SlashCommand> {
    TABLES.iter().copied().flatten()
}

/// The commands' names, which prompt templates cannot use.
pub fn names() -> Vec<&'static str> {
    all().map(|command| command.name).collect()
}

/// Every command with its arguments and what it does, the person's own included.
pub fn descriptions(agent: &Agent) -> Vec<(String, String)> {
    let own = agent.expansions().names().into_iter();
    let own = own.map(|own| (own.name.to_string(), own.description.to_string()));
    let brought = agent.commands().into_iter().filter(|(_, command)| command.owner.is_some());
    let brought = brought.map(|(name, command)| (name, command.description));
    let built_in = all().map(|command| (command.name.to_owned(), command.description()));
    built_in.chain(own).chain(brought).collect()
}

/// The error message for a text that looks like an unknown command; none if it is a known one, a
/// path, or a sentence that begins with a slash.
pub fn unknown_command_hint(agent: &Agent, text: &str) -> Option<String> {
    let name = text.strip_prefix('/')?.split(char::is_whitespace).next().unwrap_or_default();
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'));
    if !is_name
        || FACE_COMMANDS.contains(&name)
        || agent.commands().contains_key(name)
        || agent.expansions().is_known(name)
    {
        return None;
    }
    Some(SlashCommandError::Unknown { name: name.to_owned(), hint: nearest_names(agent, name) }.to_string())
}

/// What was probably meant: `; did you mean /cost?`.
fn nearest_names(agent: &Agent, name: &str) -> String {
    let meant = agent.expansions().nearest(name, &names());
    let meant: Vec<String> = meant.iter().map(|name| format!("/{name}")).collect();
    did_you_mean(&meant)
}

/// Parses a command call into its name, its arguments and the command; none for other texts, and for
/// commands that make a prompt.
pub fn parse_call<'a>(agent: &Agent, text: &'a str) -> Option<(&'a str, &'a str, Command)> {
    let (name, arguments) = split_call(text)?;
    let command = agent.commands().remove(name).filter(|command| !command.is_prompt())?;
    Some((name, arguments.trim(), command))
}

/// Whether a text calls a command, also one that makes a prompt.
pub fn is_call(agent: &Agent, text: &str) -> bool {
    split_call(text).is_some_and(|(name, _)| agent.commands().contains_key(name))
}

fn split_call(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('/')?;
    Some(rest.split_once(char::is_whitespace).unwrap_or((rest, "")))
}

/// Registers the commands with the agent. The returned flag becomes true on `/quit`.
pub fn register_commands(app: &Arc<ConversationApp>) -> Arc<AtomicBool> {
    let quit_requested = Arc::new(AtomicBool::new(false));
    for command in all().filter(|command| !FACE_COMMANDS.contains(&command.name)) {
        let (app_of_calls, quit_requested) = (Arc::downgrade(app), quit_requested.clone());
        app.agent.register_command(command.name, command.help, move |arguments, agent| {
            let (app, quit_requested) = (app_of_calls.upgrade(), quit_requested.clone());
            async move {
                let Some(app) = app else { return Ok(None) };
                let call = CommandCall {
                    arguments: &arguments,
                    app: &app,
                    agent: &agent,
                    quit_requested: &quit_requested,
                };
                let said = (command.run)(call).await?;
                Ok(Some(said).filter(|said| !said.is_empty()))
            }
        });
    }
    acts::run_when_free(app);
    quit_requested
}

impl SlashCommand {
    /// `/name ARGUMENTS`.
    fn usage(&self) -> String {
        format!("/{} {}", self.name, self.arguments).trim_end().to_owned()
    }

    /// Its arguments and its help, in a line.
    fn description(&self) -> String {
        match self.arguments {
            "" => self.help.to_owned(),
            arguments => format!("{arguments} · {}", self.help),
        }
    }
}

async fn quit(CommandCall { agent, quit_requested, .. }: CommandCall<'_>) -> CommandResult {
    quit_requested.store(true, Ordering::Relaxed);
    agent.abort();
    Ok(String::new())
}

/// Appends what an action costs to the message about it.
pub fn with_price(done: &str, cost: Option<String>) -> String {
    cost.map_or_else(|| done.to_owned(), |cost| format!("{done} {cost}"))
}

/// `1 message`, `2 messages`.
pub fn pluralize(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {what}{ending}", thousands(count))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!(
            [0, 1, 1000].map(|count| pluralize(count, "message")),
            ["0 messages", "1 message", "1,000 messages"]
        );
    }

    #[test]
    fn every_command_has_one_name_and_says_what_it_does() {
        let names: BTreeSet<&str> = all().map(|command| command.name).collect();
        assert_eq!(names.len(), all().count());
        for command in all() {
            assert!(!command.help.is_empty() && command.help.len() < 100, "{}", command.name);
            assert!(!command.help.ends_with('.'), "{}", command.name);
        }
    }
}
