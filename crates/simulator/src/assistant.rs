//! Answers without a script: search, no language model.
use hardpan_prompt::Prompt;

use crate::choice::Choice;
use crate::said::Said;

/// The answer to a prompt.
pub fn answer(_prompt: &Prompt, _choice: &Choice) -> Said {
    Said::text("x")
}
