//! From what the user typed to a [`PreparedInput`]: the input event, skills and templates.

use std::ops::ControlFlow;

use crate::agent::{Agent, InputOutcome};
use crate::error::AgentError;
use crate::events::{Input, InputReply, Note, NoteKind};
use crate::expand::ExpandedText;
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
        let (mut input, faults) = self
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
        let made = match input.source.is_typed() {
            true => self.command_prompt(&input.text).await?,
            false => None,
        };
        let expanded = match made {
            Some(made) => {
                input.images.extend(made.images);
                ExpandedText::unchanged(&made.text)
            }
            None if input.source.is_typed() => self.expansions().expand(&input.text),
            None => ExpandedText::unchanged(&input.text),
        };
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
        Ok(Ok(PreparedInput { text, typed, images: input.images, id: input.id, custom: None }))
    }
}
