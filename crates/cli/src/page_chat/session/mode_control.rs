//! How a person changes the mode, and what becomes of a plan.

use std::sync::PoisonError;

use hardpan_agent::Delivery;
use hardpan_terminal::editor::{Submission, SubmissionKind};
use hardpan_terminal::model::{AgentUpdate, Event, Mode, QuestionPrompt};

use super::Session;
use crate::page_chat::modes;

impl Session {
    pub fn current_mode(&self) -> Mode {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_mode(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// Changes the mode, and lets the face say so.
    fn change_mode(&self, mode: Mode) {
        self.set_mode(mode);
        self.face.event(Event::ModeSet(mode));
    }

    /// Takes the mode that the conversation was left in.
    pub fn restore_mode(&self) {
        let mode = modes::stored_mode(&self.app.agent);
        if mode != self.current_mode() {
            self.change_mode(mode);
        }
    }

    /// `/mode NAME`.
    pub(super) fn choose_mode(&self, name: &str) {
        match Mode::by_name(name) {
            None => {
                let line = |mode: Mode| {
                    let mark = if mode == self.current_mode() { '*' } else { ' ' };
                    format!("{mark} {:<6} {}", mode.name(), mode.meaning())
                };
                self.face.agent(AgentUpdate::Reply(Mode::EVERY.map(line).join("\n")));
            }
            Some(Mode::All) if !modes::has_sandbox(&self.app) => {
                self.note("mode all needs the sandbox, which is off or not available here");
            }
            Some(mode) => self.change_mode(mode),
        }
    }

    /// Tells the model with the prompt that follows whether it is to plan, if that has changed.
    pub(super) fn tell_of_plan(&mut self) {
        let is_plan = self.current_mode() == Mode::Plan;
        if std::mem::replace(&mut self.is_plan_told, is_plan) != is_plan {
            modes::tell_of_plan(&self.app.agent, is_plan);
        }
    }

    /// A run in plan mode ends with a plan: asks what becomes of it.
    pub(super) fn ask_about_plan(&mut self) {
        if self.current_mode() != Mode::Plan || modes::last_answer(&self.app.agent).is_none() {
            return;
        }
        let id = self.questions.next_id();
        self.plan_question = Some(id);
        let choices = modes::PLAN_ANSWERS.map(str::to_owned).to_vec();
        let text = modes::PLAN_QUESTION.to_owned();
        self.face.agent(AgentUpdate::QuestionAsked(QuestionPrompt {
            id,
            text,
            choices,
            is_secret: false,
            ..QuestionPrompt::default()
        }));
    }

    /// Carries out a plan, gives it to the editor, or goes on with what the person said instead.
    pub(super) fn answer_plan(&mut self, answer: Option<String>) {
        self.plan_question = None;
        let Some(answer) = answer else { return };
        let [yes, change] = modes::PLAN_ANSWERS;
        let answer = match answer.trim() {
            "y" | "yes" => yes,
            "e" => change,
            answer => answer,
        };
        if answer == yes || answer == change {
            self.change_mode(Mode::Edits);
        }
        if answer == change {
            let plan = modes::last_answer(&self.app.agent).unwrap_or_default();
            return self.face.event(Event::EditText(format!("Carry out this plan:\n\n{plan}")));
        }
        let text = if answer == yes { modes::CARRY_OUT } else { answer }.to_owned();
        let submission = Submission { shown: text.clone(), text, kind: SubmissionKind::Prompt };
        self.send(&submission, Delivery::Steer, false);
    }
}
