//! [`PipedLines`]: lines of a pipe or a file. They are a list of prompts and commands: each one waits
//! until what came before it is done.

use std::collections::VecDeque;

use super::answers;
use super::{PlainEvent, PlainFace};
use crate::editor::SubmissionKind;
use crate::model::ApprovalAnswer;

/// Lines that were read and not used yet. The last one may be the end.
#[derive(Debug, Default)]
pub struct PipedLines {
    waiting: VecDeque<PlainEvent>,
}

impl PipedLines {
    /// Keeps a line, or the end of all lines, until its turn comes.
    pub fn push(&mut self, event: PlainEvent) {
        self.waiting.push_back(event);
    }

    /// What the face gets next; none while something runs.
    ///
    /// A line answers a question only if it is one of the answers offered: whoever wrote the list did
    /// not know that there would be a question, and the next prompt must not become a yes, or be lost
    /// as a reason. Otherwise the question is answered with no, and the line is the next prompt.
    pub fn next_for(&mut self, face: &PlainFace) -> Option<PlainEvent> {
        let PlainEvent::Line(line) = self.waiting.front()? else {
            return self.waiting.pop_front();
        };
        match face.line_use(line) {
            LineUse::Take => self.waiting.pop_front(),
            LineUse::AnswerBefore(answer) => Some(PlainEvent::Line(answer.to_owned())),
            LineUse::Wait => None,
        }
    }
}

/// What becomes of a line that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineUse {
    /// The face takes it.
    Take,
    /// It is for later; what is asked gets this answer.
    AnswerBefore(&'static str),
    /// It is for later.
    Wait,
}

impl PlainFace {
    fn line_use(&self, line: &str) -> LineUse {
        let line = line.trim();
        if let Some(question) = &self.question {
            let chosen = answers::choice_or_text(line, &question.choices);
            let is_answer =
                question.choices.is_empty() || chosen.is_none_or(|chosen| question.choices.contains(&chosen));
            return if is_answer { LineUse::Take } else { LineUse::AnswerBefore("") };
        }
        if let Some(prompt) = self.approvals.front() {
            let answer = answers::approval_answer(line, &answers::offered(prompt));
            let is_answer = match answer {
                Some(ApprovalAnswer::No(Some(reason))) => reason != line,
                Some(_) => SubmissionKind::of(line) == SubmissionKind::Prompt,
                None => false,
            };
            return if is_answer { LineUse::Take } else { LineUse::AnswerBefore("n") };
        }
        if self.is_busy() { LineUse::Wait } else { LineUse::Take }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{AgentUpdate, ApprovalPrompt, CallKind, Effect, Event, QuestionPrompt, RuleOffer};
    use crate::plain::PlainDetail;
    use crate::theme::Theme;

    /// A face with a list of lines.
    struct PipedFace {
        face: PlainFace,
        lines: PipedLines,
        effects: Vec<Effect>,
    }

    impl PipedFace {
        fn new(lines: &[&str]) -> Self {
            let face = PlainFace::new(Theme::default(), 80, PlainDetail::Everything, false);
            let mut piped = PipedFace { face, lines: PipedLines::default(), effects: Vec::new() };
            lines.iter().for_each(|line| piped.lines.push(PlainEvent::Line((*line).to_owned())));
            piped.lines.push(PlainEvent::End);
            piped.feed();
            piped
        }

        fn feed(&mut self) {
            while let Some(event) = self.lines.next_for(&self.face) {
                let (_, effects) = self.face.update(event, Duration::ZERO);
                self.effects.extend(effects);
            }
        }

        fn agent(&mut self, update: AgentUpdate) {
            let event = PlainEvent::Other(Event::Agent(update));
            let (_, effects) = self.face.update(event, Duration::ZERO);
            self.effects.extend(effects);
            self.feed();
        }

        /// What is to be done since this was last asked, in words.
        fn done(&mut self) -> Vec<String> {
            let word = |effect: Effect| match effect {
                Effect::Send(submission) => submission.text,
                Effect::Answer { answer, .. } => format!("{answer:?}"),
                Effect::AnswerQuestion { answer, .. } => format!("{answer:?}"),
                other => format!("{other:?}"),
            };
            std::mem::take(&mut self.effects).into_iter().map(word).collect()
        }
    }

    fn approval() -> AgentUpdate {
        AgentUpdate::ApprovalAsked(ApprovalPrompt {
            author: None,
            summary: String::new(),
            id: 1,
            kind: CallKind::Edit,
            model_says: None,
            preview: Vec::new(),
            diff: None,
            rule: RuleOffer::Offered("edits".into()),
            editable: None,
        })
    }

    #[test]
    fn each_line_waits_until_the_one_before_it_is_done() {
        let mut piped = PipedFace::new(&["one", "two", "/quit"]);
        assert_eq!(piped.done(), ["one"]);
        piped.agent(AgentUpdate::Text("Fine.".into()));
        assert_eq!(piped.done(), [""; 0]);
        piped.agent(AgentUpdate::Idle);
        assert_eq!(piped.done(), ["two"]);
        piped.agent(AgentUpdate::Idle);
        assert_eq!(piped.done(), ["/quit"]);
        piped.agent(AgentUpdate::Idle);
        assert_eq!(piped.done(), ["Leave"]);
    }

    #[test]
    fn a_question_is_answered_by_an_answer_and_not_by_the_next_prompt() {
        for (line, answer, rest) in [
            ("y", "Once", "Leave"),
            ("1", "Once", "Leave"),
            ("n too wide", "No(Some(\"too wide\"))", "Leave"),
            ("and the changelog", "No(None)", "and the changelog"),
            ("/cost", "No(None)", "/cost"),
            ("z", "No(None)", "z"),
        ] {
            let mut piped = PipedFace::new(&["change it", line]);
            piped.done();
            piped.agent(approval());
            assert_eq!(piped.done(), [answer], "{line}");
            piped.agent(AgentUpdate::Idle);
            assert_eq!(piped.done(), [rest], "{line}");
        }
    }

    #[test]
    fn a_choice_is_made_by_its_number_or_its_words_and_a_free_answer_by_any_line() {
        let ask = |choices: &[&str]| {
            let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
            AgentUpdate::QuestionAsked(QuestionPrompt {
                id: 7,
                text: "Which?".into(),
                choices,
                ..QuestionPrompt::default()
            })
        };
        for (choices, line, answer) in [
            (&["red", "blue"][..], "2", "Some(\"blue\")"),
            (&["red", "blue"][..], "red", "Some(\"red\")"),
            (&["red", "blue"][..], "go on", "None"),
            (&[][..], "go on", "Some(\"go on\")"),
        ] {
            let mut piped = PipedFace::new(&["begin", line]);
            piped.done();
            piped.agent(ask(choices));
            assert_eq!(piped.done(), [answer], "{line}");
        }
    }

    #[test]
    fn the_end_refuses_what_is_asked_and_leaves_when_all_is_done() {
        let mut piped = PipedFace::new(&["change it"]);
        piped.done();
        piped.agent(approval());
        assert_eq!(piped.done(), ["No(None)"]);
        piped.agent(AgentUpdate::Idle);
        assert_eq!(piped.done(), ["Leave"]);
    }
}
