//! What the simulated model says, before it has the form of a protocol.

use std::time::Duration;

use hardpan_prompt::{Counter, Text};

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Its parts, in order.
    pub parts: Vec<SaidPart>,
    /// Why it ends.
    pub stop: Stop,
    /// How long the model thinks about it: the time until the head is sent.
    pub delay: Duration,
    /// The time between two pieces of a stream.
    pub pace: Duration,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaidPart {
    /// Reasoning.
    Reasoning(String),
    /// Text.
    Text(String),
    /// A tool call.
    Call {
        /// Its id; made up where there is none.
        id: Option<String>,
        /// The tool.
        name: String,
        /// The arguments in JSON: cut anywhere where the answer was cut.
        arguments: String,
    },
}

/// Why an answer ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All is said.
    End,
    /// The model waits for its tools.
    ToolUse,
    /// The request's limit of tokens.
    Length,
    /// The end of the window.
    Window,
    /// One of the request's stop sequences: this one.
    Sequence(String),
    /// The model refuses.
    Refusal,
}

impl Stop {
    /// Anthropic's word.
    pub fn anthropic(&self) -> &'static str {
        match self {
            Stop::End => "end_turn",
            Stop::ToolUse => "tool_use",
            Stop::Length => "max_tokens",
            Stop::Window => "model_context_window_exceeded",
            Stop::Sequence(_) => "stop_sequence",
            Stop::Refusal => "refusal",
        }
    }

    /// OpenAI's word.
    pub fn openai(&self) -> &'static str {
        match self {
            Stop::End | Stop::Sequence(_) => "stop",
            Stop::ToolUse => "tool_calls",
            Stop::Length | Stop::Window => "length",
            Stop::Refusal => "content_filter",
        }
    }
}

/// The tokens of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    /// All of them.
    pub output: usize,
    /// Those of its reasoning.
    pub reasoning: usize,
}

impl Said {
    /// A text and nothing else.
    pub fn text(text: impl Into<String>) -> Self {
        Said::new(vec![SaidPart::Text(text.into())])
    }

    /// Parts that come at once; with a call among them the model waits for its tools.
    pub fn new(parts: Vec<SaidPart>) -> Self {
        let calls = parts.iter().any(|part| matches!(part, SaidPart::Call { .. }));
        let stop = if calls { Stop::ToolUse } else { Stop::End };
        Said { parts, stop, delay: Duration::ZERO, pace: Duration::ZERO }
    }

    /// What it counts: a call as its name, a newline and its arguments, as a prompt counts it.
    pub fn spoken(&self, counter: &Counter) -> Spoken {
        let mut spoken = Spoken::default();
        for part in &self.parts {
            let tokens = part.tokens(counter);
            spoken.output += tokens;
            if matches!(part, SaidPart::Reasoning(_)) {
                spoken.reasoning += tokens;
            }
        }
        spoken
    }

    /// Ends the answer before the first of the stop sequences in its text.
    pub fn stop_at(&mut self, sequences: &[String]) {
        let sequences = || sequences.iter().filter(|sequence| !sequence.is_empty());
        for (index, part) in self.parts.iter_mut().enumerate() {
            let SaidPart::Text(text) = part else { continue };
            let found = sequences().filter_map(|sequence| Some((text.find(sequence.as_str())?, sequence)));
            let Some((at, sequence)) = found.min_by_key(|(at, sequence)| (*at, sequence.len())) else {
                continue;
            };
            text.truncate(at);
            let keep = index + usize::from(!text.is_empty());
            self.stop = Stop::Sequence(sequence.clone());
            self.parts.truncate(keep);
            return;
        }
    }

    /// Ends the answer after so many tokens, in the middle of a call's arguments if need be.
    pub fn limit(&mut self, max: usize, why: &Stop, counter: &Counter) {
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

impl SaidPart {
    fn tokens(&self, counter: &Counter) -> usize {
        match self {
            SaidPart::Reasoning(text) | SaidPart::Text(text) => count(text, counter),
            SaidPart::Call { name, arguments, .. } => count(&format!("{name}\n{arguments}"), counter),
        }
    }

    /// Keeps at most so many tokens. Whether anything is left.
    fn cut(&mut self, max: usize, counter: &Counter) -> bool {
        match self {
            SaidPart::Reasoning(text) | SaidPart::Text(text) => {
                text.truncate(longest(text, max, "", counter));
                !text.is_empty()
            }
            SaidPart::Call { name, arguments, .. } => {
                let head = format!("{name}\n");
                let begun = count(&head, counter) <= max;
                arguments.truncate(longest(arguments, max, &head, counter));
                begun
            }
        }
    }
}

fn count(text: &str, counter: &Counter) -> usize {
    counter.count(&Text::new(text))
}

/// The longest beginning of `text`, in bytes, that together with `head` counts at most `max` tokens.
fn longest(text: &str, max: usize, head: &str, counter: &Counter) -> usize {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let fits = |end: &usize| count(&format!("{head}{}", &text[..*end]), counter) <= max;
    ends.partition_point(fits).checked_sub(1).map_or(0, |index| ends[index])
}

#[cfg(test)]
mod tests {
    use hardpan_prompt::Vocabulary;

    use super::*;

    fn call(arguments: &str) -> SaidPart {
        SaidPart::Call { id: None, name: "read".into(), arguments: arguments.into() }
    }

    #[test]
    fn an_answer_ends_before_its_stop_sequence() {
        let mut said = Said::new(vec![SaidPart::Text("one END two".into()), call("{}")]);
        said.stop_at(&["two".into(), "END".into()]);
        assert_eq!(said.parts, [SaidPart::Text("one ".into())]);
        assert_eq!(said.stop, Stop::Sequence("END".into()));
    }

    #[test]
    fn a_call_is_cut_in_its_middle() {
        let counter = Counter::new(Vocabulary::O200k);
        let mut said = Said::new(vec![
            SaidPart::Text("Let me look.".into()),
            call(r#"{"path":"src/very/long/name.rs"}"#),
        ]);
        let whole = said.spoken(&counter).output;
        said.limit(whole - 3, &Stop::Length, &counter);
        assert_eq!(said.stop, Stop::Length);
        let [_, SaidPart::Call { arguments, .. }] = &said.parts[..] else { panic!("{said:?}") };
        assert!(arguments.starts_with(r#"{"path""#) && !arguments.ends_with('}'), "{arguments}");
        assert!(said.spoken(&counter).output <= whole - 3);
    }

    #[test]
    fn no_tokens_leave_nothing() {
        let counter = Counter::new(Vocabulary::O200k);
        let mut said = Said::new(vec![SaidPart::Text("Hello".into())]);
        said.limit(0, &Stop::Length, &counter);
        assert_eq!(said.parts, []);
    }
}
