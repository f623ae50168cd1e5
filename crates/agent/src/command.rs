//! [`Command`]: what the user types as `/name arguments`, and registering it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hardpan_prompt::Image;
use tokio::sync::watch;

use crate::agent::{Agent, InputOutcome, lock};
use crate::error::{AgentError, CommandError};

type RunCommand =
    dyn Fn(String, Agent) -> BoxFuture<'static, Result<Option<String>, CommandError>> + Send + Sync;

type MakePrompt =
    dyn Fn(String, Agent) -> BoxFuture<'static, Result<CommandPrompt, CommandError>> + Send + Sync;

type CompleteArguments = dyn Fn(String) -> BoxFuture<'static, Vec<ArgumentChoice>> + Send + Sync;

/// A slash command that the user can type: `/name args`.
#[derive(Clone)]
pub struct Command {
    /// One line for `/help` and completion.
    pub description: String,
    /// Who brought it, such as an extension; none for the face's own.
    pub owner: Option<Arc<str>>,
    run: Arc<RunCommand>,
    /// For a command whose call is replaced by a prompt.
    make_prompt: Option<Arc<MakePrompt>>,
    complete: Option<Arc<CompleteArguments>>,
}

/// What stands in the place of a call that makes a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandPrompt {
    /// The text that goes to the model.
    pub text: String,
    /// The images that go with it.
    pub images: Vec<Image>,
}

/// Something that can stand behind a command's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentChoice {
    /// What is typed.
    pub text: String,
    /// What it is; may be empty.
    pub detail: String,
}

impl Command {
    /// Runs the command with the text after its name, trimmed. It runs in a task of its own, so that
    /// a panic stays there. The text it returns is shown to the user. The command of an extension is not
    /// waited for any more once the person stops the agent ([`Agent::stop`]).
    pub async fn run(self, arguments: &str, agent: &Agent) -> Result<Option<String>, CommandError> {
        let (arguments, agent) = (arguments.to_owned(), agent.clone());
        // Called within the task: a command may panic before its future exists.
        let (owner, stop) = (self.owner.clone(), agent.command_stop());
        let mut task = tokio::spawn(async move { (self.run)(arguments, agent).await });
        let stopped = async {
            match owner {
                Some(owner) => {
                    stop.cancelled().await;
                    owner
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = &mut task => done.unwrap_or(Err(CommandError::Crashed)),
            owner = stopped => {
                task.abort();
                Err(CommandError::Stopped(owner))
            }
        }
    }

    /// Gives the command an owner, for lists and for [`Agent::remove_commands_of`].
    #[must_use]
    pub fn of(mut self, owner: &str) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Lets the command complete its arguments from what was typed of them.
    #[must_use]
    pub fn completed_by<F>(mut self, complete: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Vec<ArgumentChoice>> + Send + 'static,
    {
        self.complete = Some(Arc::new(move |typed| Box::pin(complete(typed))));
        self
    }

    /// What can follow the name, given what was typed of it; empty if the command does not say.
    pub async fn choices(&self, typed: &str) -> Vec<ArgumentChoice> {
        match &self.complete {
            Some(complete) => complete(typed.to_owned()).await,
            None => Vec::new(),
        }
    }

    /// A command without an owner.
    pub fn new<F>(description: &str, run: impl Fn(String, Agent) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Option<String>, CommandError>> + Send + 'static,
    {
        let run: Arc<RunCommand> = Arc::new(move |arguments, agent| Box::pin(run(arguments, agent)));
        Command { description: description.to_owned(), owner: None, run, make_prompt: None, complete: None }
    }

    /// A command whose call is replaced by a prompt that `make` writes, and is otherwise handled as if
    /// that had been typed.
    pub fn for_prompt<F>(description: &str, make: impl Fn(String, Agent) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<CommandPrompt, CommandError>> + Send + 'static,
    {
        let refuse = |_, _| async { Err(CommandError::failed("it is a prompt: type it as a message")) };
        let make: Arc<MakePrompt> = Arc::new(move |arguments, agent| Box::pin(make(arguments, agent)));
        Command { make_prompt: Some(make), ..Command::new(description, refuse) }
    }

    /// Whether a call is replaced by a prompt.
    pub fn is_prompt(&self) -> bool {
        self.make_prompt.is_some()
    }
}

impl Agent {
    /// Registers the slash command `/name`, replacing one of the same name.
    pub fn register_command<F>(
        &self,
        name: &str,
        description: &str,
        run: impl Fn(String, Agent) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<Option<String>, CommandError>> + Send + 'static,
    {
        self.add_command(name, Command::new(description, run));
    }

    /// The same for a command that has an owner, or completes its arguments.
    pub fn add_command(&self, name: &str, command: Command) {
        lock(&self.inner.commands).insert(name.to_owned(), command);
        self.inner.command_changes.send_replace(());
    }

    /// Takes all slash commands of an owner away.
    pub fn remove_commands_of(&self, owner: &str) {
        lock(&self.inner.commands).retain(|_, command| command.owner.as_deref() != Some(owner));
        self.inner.command_changes.send_replace(());
    }

    /// Takes a slash command away.
    pub fn remove_command(&self, name: &str) {
        lock(&self.inner.commands).remove(name);
        self.inner.command_changes.send_replace(());
    }

    /// Sees changes of [`Agent::commands`] from now on, for faces that show a list of them. It does not keep
    /// the agent alive.
    pub fn watch_commands(&self) -> watch::Receiver<()> {
        self.inner.command_changes.subscribe()
    }

    /// All registered slash commands, by name without the slash.
    pub fn commands(&self) -> BTreeMap<String, Command> {
        lock(&self.inner.commands).clone()
    }

    /// Runs the text if it is a registered slash command; `None` if it is not. No event is emitted,
    /// and a run in progress is not waited for.
    pub(crate) async fn run_command(&self, text: &str) -> Option<InputOutcome> {
        let (name, arguments) = split_command(text)?;
        let command = lock(&self.inner.commands).get(name).filter(|command| !command.is_prompt()).cloned()?;
        let output = match command.run(arguments, self).await {
            Ok(output) => output,
            Err(CommandError::Crashed) => Some(format!("/{name} crashed; nothing else was affected")),
            Err(error) => Some(format!("/{name}: {error}")),
        };
        Some(InputOutcome::Command { output })
    }

    /// The prompt in the place of a call; `None` if the text calls no command that makes one.
    pub(crate) async fn command_prompt(&self, text: &str) -> Result<Option<CommandPrompt>, AgentError> {
        let Some((name, arguments)) = split_command(text) else { return Ok(None) };
        let command = lock(&self.inner.commands).get(name).cloned();
        let Some(make) = command.and_then(|command| command.make_prompt) else { return Ok(None) };
        let made = make(arguments.to_owned(), self.clone()).await;
        let failed = |error: CommandError| AgentError::CommandPrompt {
            name: name.to_owned(),
            problem: error.to_string(),
        };
        made.map(Some).map_err(failed)
    }
}

/// Splits `/name arguments`; `None` if the text does not begin with a slash and a name.
fn split_command(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    Some((&rest[..end], rest[end..].trim())).filter(|(name, _)| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::split_command;

    #[test]
    fn a_command_is_a_name_after_a_slash_at_the_very_start() {
        assert_eq!(split_command("/model  x y "), Some(("model", "x y")));
        assert_eq!(split_command("/model"), Some(("model", "")));
        assert_eq!(split_command(" /model"), None);
        assert_eq!(split_command("/ model"), None);
        assert_eq!(split_command("model"), None);
    }
}
