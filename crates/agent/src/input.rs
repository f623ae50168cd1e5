//! From what was typed to what goes to the model: commands, the input event, skills and templates.

use std::ops::ControlFlow;

use crate::agent::{Agent, AgentError, Taken, lock};
use crate::events::{Input, InputReply, Note};
use crate::queue::Accepted;

impl Agent {
    /// Passes an input that is no command through every stage before the model. What comes back either goes on, or is
    /// done with.
    pub(crate) async fn accept(&self, input: Input) -> Result<Result<Accepted, Taken>, AgentError> {
        let typed = input.text.clone();
        let mut handled = false;
        let (input, faults) = self
            .events()
            .ask(self, input, |input, reply| match reply {
                InputReply::Continue => ControlFlow::Continue(()),
                InputReply::Transform { text, images } => {
                    input.text = text;
                    input.images = images.unwrap_or_else(|| std::mem::take(&mut input.images));
                    ControlFlow::Continue(())
                }
                InputReply::Handled => {
                    handled = true;
                    ControlFlow::Break(())
                }
            })
            .await;
        self.events().report(&faults);
        if handled {
            return Ok(Err(Taken::Handled));
        }
        let expanded = self.inner.setup.expansions.expand(&input.text);
        for text in expanded.notes {
            self.events().tell(self, Note { text }).await;
        }
        let text = match input.below {
            Some(below) if expanded.text.trim().is_empty() => below,
            Some(below) => format!("{}\n\n{below}", expanded.text),
            None => expanded.text,
        };
        if text.trim().is_empty() && input.images.is_empty() {
            return Err(AgentError::Empty);
        }
        Ok(Ok(Accepted { text, typed, images: input.images }))
    }

    /// Runs the command that a text is, if it is one. No event is raised for it, and nothing waits for the agent.
    pub(crate) async fn run_command(&self, text: &str) -> Option<Taken> {
        let (name, arguments) = command(text)?;
        let command = lock(&self.inner.commands).get(name).cloned()?;
        // A task of its own: a command that breaks breaks nothing else.
        let (arguments, agent) = (arguments.to_owned(), self.clone());
        let task = tokio::spawn(async move { (command.run)(arguments, agent).await });
        let said = match task.await {
            Ok(Ok(said)) => said,
            Ok(Err(error)) => Some(format!("/{name}: {error}")),
            Err(_) => Some(format!("/{name} broke; nothing else was touched")),
        };
        Some(Taken::Command { said })
    }
}

/// The name and the arguments of `/name arguments`.
fn command(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    Some((&rest[..end], rest[end..].trim())).filter(|(name, _)| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn a_command_is_a_name_after_a_slash_at_the_very_start() {
        assert_eq!(command("/model  x y "), Some(("model", "x y")));
        assert_eq!(command("/model"), Some(("model", "")));
        assert_eq!(command(" /model"), None);
        assert_eq!(command("/ model"), None);
        assert_eq!(command("model"), None);
    }
}
