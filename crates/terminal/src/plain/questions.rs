//! What is asked, and what becomes of an answer.

use super::{PlainFace, answers};
use crate::blocks::format::counted;
use crate::model::{ApprovalAnswer, ApprovalPrompt, CallKind, Effect, QuestionPrompt, RuleOffer};

impl PlainFace {
    pub(super) fn answer_approval(&mut self, text: &str) {
        let Some(prompt) = self.approvals.front() else { return };
        let Some(answer) = answers::approval_answer(text, &answers::offered(prompt)) else {
            self.say("note", "answer with one of the numbers");
            return self.repeat_question();
        };
        let id = prompt.id;
        self.approvals.pop_front();
        self.effects.push(Effect::Answer { id, answer });
        self.said_at = self.now;
        self.ask_next();
    }

    pub(super) fn refuse_all(&mut self) {
        let refused = self.approvals.drain(..);
        self.effects
            .extend(refused.map(|prompt| Effect::Answer { id: prompt.id, answer: ApprovalAnswer::No(None) }));
        let unanswered = self.question.take();
        self.effects.extend(unanswered.map(|prompt| Effect::AnswerQuestion { id: prompt.id, answer: None }));
    }

    pub(super) fn ask_approval(&mut self, prompt: ApprovalPrompt) {
        self.approvals.push_back(prompt);
        if self.has_ended {
            self.refuse_all();
        } else if self.approvals.len() == 1 {
            self.ask_next();
        }
    }

    /// Prints all of the call that is next, and asks about it.
    fn ask_next(&mut self) {
        if let Some(prompt) = self.approvals.front() {
            let preview = prompt.preview.clone();
            self.say_lines(&preview);
            self.repeat_question();
        }
    }

    pub(super) fn repeat_question(&mut self) {
        if let Some(prompt) = self.question.clone() {
            return self.ask(prompt);
        }
        let Some(prompt) = self.approvals.front() else { return };
        let question = match &prompt.kind {
            CallKind::Edit => "Change this file?".to_owned(),
            CallKind::Command { lines } => format!("Run this, {}?", counted(*lines, "line", "lines")),
            CallKind::Other { tool } => format!("Run {tool}?"),
        };
        let says = prompt.model_says.as_ref().map(|words| format!(" The model says: \"{}\"", words.trim()));
        let mut text = question + &says.unwrap_or_default();
        if let RuleOffer::NotOffered(why) = &prompt.rule
            && !why.is_empty()
        {
            text += &format!("\nNo rule is offered: {why}");
        }
        for (index, choice) in answers::offered(prompt).iter().enumerate() {
            text += &format!("\n{} {}", index + 1, choice.words);
        }
        self.say("asks", &text);
    }

    pub(super) fn ask(&mut self, prompt: QuestionPrompt) {
        let mut text = prompt.text.clone();
        for (index, choice) in prompt.choices.iter().enumerate() {
            text += &format!("\n{} {choice}", index + 1);
        }
        if self.has_ended {
            return self.effects.push(Effect::AnswerQuestion { id: prompt.id, answer: None });
        }
        self.say("asks", &format!("{text}\nAn empty line gives no answer."));
        self.question = Some(prompt);
    }
}
