//! [`SimulatedAnswer`]: an answer of the simulated model, independent of the protocol.

use std::time::Duration;

use hardpan_prompt::{Text, TokenCounter, TokenUsage};

/// An answer of the simulated model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedAnswer {
    /// Reasoning, texts and calls, in order.
    pub parts: Vec<SimulatedPart>,
    /// Why the answer ends.
    pub stop: FinishReason,
    /// The delay before the response's headers are sent, as if the model were thinking.
    pub delay: Duration,
    /// The delay between two chunks of a stream.
    pub pace: Duration,
}

/// A part of a [`SimulatedAnswer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimulatedPart {
    /// Reasoning, which Anthropic's protocol sends with a signature.
    Reasoning(String),
    /// A search of the web by the server's own tool, for this. It finds one page.
    Search(String),
    /// Text for the user.
    Text(String),
    /// A tool call.
    Call {
        /// The call's id; generated if it is `None`.
        id: Option<String>,
        /// The name of the tool.
        name: String,
        /// The arguments as JSON; cut off anywhere if the answer reached its token limit.
        arguments: String,
    },
}

/// Why a [`SimulatedAnswer`] ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The answer is complete.
    End,
    /// The model waits for the results of its calls.
    ToolUse,
    /// The request's token limit.
    Length,
    /// The end of the model's context window.
    Window,
    /// The request's stop sequence that the model wrote.
    Sequence(String),
    /// The model refuses to answer.
    Refusal,
}

impl SimulatedAnswer {
    /// An answer with one text and nothing else.
    pub fn text(text: impl Into<String>) -> Self {
        SimulatedAnswer::new(vec![SimulatedPart::Text(text.into())])
    }

    /// An answer without delays. It ends with [`FinishReason::ToolUse`] if there is a call.
    pub fn new(parts: Vec<SimulatedPart>) -> Self {
        let calls = parts.iter().any(|part| matches!(part, SimulatedPart::Call { .. }));
        let stop = if calls { FinishReason::ToolUse } else { FinishReason::End };
        SimulatedAnswer { parts, stop, delay: Duration::ZERO, pace: Duration::ZERO }
    }

    /// Counts the tokens of the answer: its `output` and `reasoning`. A call counts as its name, a
    /// newline and its arguments, as in a prompt.
    pub fn count_tokens(&self, counter: &TokenCounter) -> TokenUsage {
        let count = |part: &SimulatedPart| {
            let output = part.tokens(counter) as u64;
            let reasoning = matches!(part, SimulatedPart::Reasoning(_)).then_some(output);
            TokenUsage { output, reasoning, ..TokenUsage::default() }
        };
        self.parts.iter().map(count).sum()
    }

    /// Ends the answer before the first stop sequence in its text.
    pub fn truncate_at_stop_sequence(&mut self, sequences: &[String]) {
        let sequences = || sequences.iter().filter(|sequence| !sequence.is_empty());
        for (index, part) in self.parts.iter_mut().enumerate() {
            let SimulatedPart::Text(text) = part else { continue };
            let found = sequences().filter_map(|sequence| Some((text.find(sequence.as_str())?, sequence)));
            let Some((at, sequence)) = found.min_by_key(|(at, sequence)| (*at, sequence.len())) else {
                continue;
            };
            text.truncate(at);
            let keep = index + usize::from(!text.is_empty());
            self.stop = FinishReason::Sequence(sequence.clone());
            self.parts.truncate(keep);
            return;
        }
    }

    /// Ends the answer after `max` tokens, in the middle of a call's arguments if necessary.
    pub fn truncate_to_tokens(&mut self, max: usize, why: &FinishReason, counter: &TokenCounter) {
        let mut left = max;
        for index in 0..self.parts.len() {
            let tokens = self.parts[index].tokens(counter);
            if tokens <= left {
                left -= tokens;
                continue;
            }
            self.stop = why.clone();
            let keep = self.parts[index].cut(left, counter);
            self.parts.truncate(index + usize::from(keep));
            return;
        }
    }
}

impl SimulatedPart {
    fn tokens(&self, counter: &TokenCounter) -> usize {
        match self {
            SimulatedPart::Reasoning(text) | SimulatedPart::Search(text) | SimulatedPart::Text(text) => {
                count(text, counter)
            }
            SimulatedPart::Call { name, arguments, .. } => count(&format!("{name}\n{arguments}"), counter),
        }
    }

    /// Keeps at most `max` tokens. Returns whether anything is left.
    fn cut(&mut self, max: usize, counter: &TokenCounter) -> bool {
        match self {
            SimulatedPart::Search(_) => false,
            SimulatedPart::Reasoning(text) | SimulatedPart::Text(text) => {
                text.truncate(longest_prefix(text, max, "", counter));
                !text.is_empty()
            }
            SimulatedPart::Call { name, arguments, .. } => {
                let head = format!("{name}\n");
                let begun = count(&head, counter) <= max;
                arguments.truncate(longest_prefix(arguments, max, &head, counter));
                begun
            }
        }
    }
}

fn count(text: &str, counter: &TokenCounter) -> usize {
    counter.count(&Text::new(text))
}

/// The length in bytes of the longest prefix of `text` that together with `head` has at most `max`
/// tokens.
fn longest_prefix(text: &str, max: usize, head: &str, counter: &TokenCounter) -> usize {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let fits = |end: &usize| count(&format!("{head}{}", &text[..*end]), counter) <= max;
    ends.partition_point(fits).checked_sub(1).map_or(0, |index| ends[index])
}

#[cfg(test)]
mod tests {
    use hardpan_prompt::Vocabulary;

    use super::*;

    fn call(arguments: &str) -> SimulatedPart {
        SimulatedPart::Call { id: None, name: "read".into(), arguments: arguments.into() }
    }

    #[test]
    fn an_answer_ends_before_its_stop_sequence() {
        let mut answer = SimulatedAnswer::new(vec![SimulatedPart::Text("one END two".into()), call("{}")]);
        answer.truncate_at_stop_sequence(&["two".into(), "END".into()]);
        assert_eq!(answer.parts, [SimulatedPart::Text("one ".into())]);
        assert_eq!(answer.stop, FinishReason::Sequence("END".into()));
    }

    #[test]
    fn a_call_is_cut_in_its_middle() {
        let counter = TokenCounter::new(Vocabulary::O200k);
        let mut answer = SimulatedAnswer::new(vec![
            SimulatedPart::Text("Let me look.".into()),
            call(r#"{"path":"src/very/long/name.rs"}"#),
        ]);
        let whole = answer.count_tokens(&counter).output;
        let most = whole as usize - 3;
        answer.truncate_to_tokens(most, &FinishReason::Length, &counter);
        assert_eq!(answer.stop, FinishReason::Length);
        let [_, SimulatedPart::Call { arguments, .. }] = &answer.parts[..] else { panic!("{answer:?}") };
        assert!(arguments.starts_with(r#"{"path""#) && !arguments.ends_with('}'), "{arguments}");
        assert!(answer.count_tokens(&counter).output <= whole - 3);
    }

    #[test]
    fn no_tokens_leave_nothing() {
        let counter = TokenCounter::new(Vocabulary::O200k);
        let mut answer = SimulatedAnswer::new(vec![SimulatedPart::Text("Hello".into())]);
        answer.truncate_to_tokens(0, &FinishReason::Length, &counter);
        assert_eq!(answer.parts, []);
    }
}
