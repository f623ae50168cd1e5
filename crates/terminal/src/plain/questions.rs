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
        let unanswered = unanswered.into_iter().chain(self.waiting_questions.drain(..));
        self.effects.extend(unanswered.map(|prompt| Effect::AnswerQuestion { id: prompt.id, answer: None }));
        self.release_held();
    }

    pub(super) fn ask_approval(&mut self, prompt: ApprovalPrompt) {
        self.approvals.push_back(prompt);
        if self.has_ended {
            self.refuse_all();
        } else if self.approvals.len() == 1 && self.question.is_none() {
            self.ask_again();
        }
    }

    /// Asks in words, unless something else is asked. A command that the person has just sent asks at once, and
    /// the question about a call is asked again after it.
    pub(super) fn ask_question(&mut self, prompt: QuestionPrompt) {
        let is_free = !self.is_asked() || (self.is_command_sent && self.question.is_none());
        match is_free {
            true => self.ask(prompt),
            false => self.waiting_questions.push_back(prompt),
        }
    }

    /// Nobody waits for the answer to a question about a call any more.
    pub(super) fn close_approval(&mut self, id: u64) {
        let is_open = self.question.is_none() && self.approvals.front().is_some_and(|prompt| prompt.id == id);
        self.approvals.retain(|prompt| prompt.id != id);
        if is_open {
            self.tell_closed();
        }
    }

    /// Nobody waits for the answer to a question in words any more.
    pub(super) fn close_question(&mut self, id: u64) {
        self.waiting_questions.retain(|prompt| prompt.id != id);
        if self.question.take_if(|prompt| prompt.id == id).is_some() {
            self.tell_closed();
        }
    }

    /// Whoever reads the question must not answer the next one with what is meant for it.
    fn tell_closed(&mut self) {
        self.say("note", "no answer is needed any more");
        self.ask_next();
    }

    /// A question is over: says what was said meanwhile, and asks what is next.
    pub(super) fn ask_next(&mut self) {
        self.release_held();
        if self.approvals.is_empty()
            && let Some(prompt) = self.waiting_questions.pop_front()
        {
            return self.ask(prompt);
        }
        self.ask_again();
    }

    /// Asks what is asked, with all of the call that it is about: something else was said since.
    pub(super) fn ask_again(&mut self) {
        if self.question.is_none()
            && let Some(prompt) = self.approvals.front()
        {
            let preview = prompt.preview.clone();
            self.say_lines(&preview);
        }
        self.repeat_question();
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
        let author = prompt.author.as_ref().map(|author| format!(" This is what {author} asks."));
        let mut text = question + &author.unwrap_or_default() + &says.unwrap_or_default();
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
