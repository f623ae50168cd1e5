//! From what the user typed to a [`PreparedInput`]: slash commands, the input event, skills and
//! templates.

use std::ops::ControlFlow;

use crate::agent::{Agent, InputOutcome, lock};
use crate::error::{AgentError, CommandError};
use crate::events::{Input, InputReply, Note, NoteKind};
use crate::queue::PreparedInput;

impl Agent {
    /// Passes an input that is no slash command through the input event and expansion. Returns the
    /// prepared input, or the outcome if a handler dealt with it.
    pub(crate) async fn prepare_input(
        &self,
        input: Input,
    ) -> Result<Result<PreparedInput, InputOutcome>, AgentError> {
        let typed = input.text.clone();
        let mut handled = false;
        let (input, faults) = self
            .events()
            .ask_handlers(self, input, |input, reply| match reply {
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
        self.events().report_faults(&faults);
        if handled {
            return Ok(Err(InputOutcome::Handled));
        }
        let expanded = self.inner.setup.expansions.expand(&input.text);
        for text in expanded.notes {
            self.events().emit(self, Note { text, kind: NoteKind::Expansion }).await;
        }
        let text = match input.below {
            Some(below) if expanded.text.trim().is_empty() => below,
            Some(below) => format!("{}\n\n{below}", expanded.text),
            None => expanded.text,
        };
        if text.trim().is_empty() && input.images.is_empty() {
            return Err(AgentError::Empty);
        }
        Ok(Ok(PreparedInput { text, typed, images: input.images, id: input.id }))
    }

    /// Runs the text if it is a registered slash command; `None` if it is not. No event is emitted,
    /// and a run in progress is not waited for.
    pub(crate) async fn run_command(&self, text: &str) -> Option<InputOutcome> {
        let (name, arguments) = split_command(text)?;
        let command = lock(&self.inner.commands).get(name).cloned()?;
        let output = match command.run(arguments, self).await {
            Ok(output) => output,
            Err(CommandError::Crashed) => Some(format!("/{name} crashed; nothing else was affected")),
            Err(error) => Some(format!("/{name}: {error}")),
        };
        Some(InputOutcome::Command { output })
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
