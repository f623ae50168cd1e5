//! What keys mean in each state.

use std::time::Duration;

use crate::editor::{EditOutcome, Submission, SubmissionKind};
use crate::keymap::{Action, KeyLayer, KeyMeaning, KeyPress};
use crate::model::{
    ApprovalAnswer, ApprovalFocus, ApprovalPrompt, Effect, FaceState, Model, OpenQuestion, Phase,
    QuestionFocus, QuestionPrompt, RuleOffer, TWICE_TIME, ViewKind,
};

/// The answers to an approval, in the order in which ↑ and ↓ mark them.
pub const CHOICES: [Action; 8] = [
    Action::ApproveOnce,
    Action::ApproveSession,
    Action::ApproveAlways,
    Action::Refuse,
    Action::EditCall,
    Action::ShowDiff,
    Action::ShowWhole,
    Action::RefuseAndStop,
];

/// Whether an approval offers an answer.
pub fn is_offered(prompt: &ApprovalPrompt, choice: Action) -> bool {
    match choice {
        Action::ApproveSession | Action::ApproveAlways => matches!(prompt.rule, RuleOffer::Offered(_)),
        Action::EditCall => prompt.editable.is_some(),
        Action::ShowDiff => prompt.diff.is_some(),
        _ => true,
    }
}

/// How long Enter waits after an extension has changed the line.
const READING_TIME: Duration = Duration::from_millis(500);

impl Model {
    /// Takes a key that was pressed at `at`.
    pub(super) fn press(&mut self, key: KeyPress, at: Duration, effects: &mut Vec<Effect>) {
        let state = self.state_of_key(at);
        let layers = self.layers(state);
        let prefix = self.pending_key.take();
        match self.keymap.meaning(&layers, prefix, key) {
            KeyMeaning::Prefix => self.pending_key = Some(key),
            KeyMeaning::Action(action) => self.act(action, state, effects),
            KeyMeaning::None if prefix.is_some() => {}
            KeyMeaning::None => {
                // A question has all keys.
                let is_line = layers.contains(&KeyLayer::Editor) && state != FaceState::Question;
                if is_line
                    && state != FaceState::ApprovalReason
                    && let Some(name) = self.extension_keys.get(&key)
                {
                    effects.push(Effect::ExtensionKey(name.clone()));
                } else if let Some(c) = key.typed() {
                    self.type_char(c, state, effects);
                }
            }
        }
    }

    /// The state that a key belongs to: a question that was not on the screen when the key was pressed
    /// gets none.
    fn state_of_key(&self, at: Duration) -> FaceState {
        match (self.state(), &self.approval_focus) {
            (FaceState::ApprovalActive, ApprovalFocus::Active { drawn_at, .. })
                if drawn_at.is_none_or(|drawn_at| at <= drawn_at) =>
            {
                FaceState::ApprovalWaiting
            }
            (FaceState::Question, _) if self.is_question_new(at) => self.state_of_line(),
            (state, _) => state,
        }
    }

    /// Whether the open question was not on the screen at this time.
    fn is_question_new(&self, at: Duration) -> bool {
        self.question.as_ref().is_some_and(|question| match question.focus {
            QuestionFocus::Active { drawn_at } => drawn_at.is_none_or(|drawn_at| at < drawn_at),
            QuestionFocus::Waiting => true,
        })
    }

    fn layers(&self, state: FaceState) -> Vec<KeyLayer> {
        match state {
            FaceState::ApprovalActive => return vec![KeyLayer::Approval],
            FaceState::ApprovalReason => return vec![KeyLayer::Reason, KeyLayer::Editor],
            FaceState::Question => return vec![KeyLayer::Question, KeyLayer::Editor],
            _ => {}
        }
        if self.editor.search().is_some() {
            return vec![KeyLayer::Search];
        }
        let mut layers = Vec::new();
        if self.editor.is_empty() {
            layers.extend((state == FaceState::Retry).then_some(KeyLayer::Retry));
            layers.push(KeyLayer::EmptyLine);
        }
        if self.editor.list().is_some() {
            layers.push(KeyLayer::List);
        }
        layers.push(KeyLayer::Editor);
        layers
    }

    fn type_char(&mut self, c: char, state: FaceState, effects: &mut Vec<Effect>) {
        match state {
            // Other keys do nothing: a stray one is no answer, and no draft.
            FaceState::ApprovalActive => {}
            FaceState::ApprovalReason => self.edit_reason(|reason| reason.insert_char(c)),
            FaceState::Question => match self.choice_of_key(c) {
                Some(choice) => self.answer_question(choice, effects),
                None => self.edit_answer(|answer| answer.insert_char(c)),
            },
            _ => {
                self.return_to_line();
                self.editor.insert_char(c);
            }
        }
    }

    pub(super) fn paste(&mut self, text: &str, at: Duration) {
        match self.state_of_key(at) {
            FaceState::ApprovalActive => {}
            FaceState::ApprovalReason => self.edit_reason(|reason| reason.insert(text)),
            FaceState::Question => self.edit_answer(|answer| answer.insert(text)),
            _ => {
                self.return_to_line();
                match image_mention(text) {
                    Some(mention) => self.editor.insert_text(&mention),
                    None => self.editor.paste(text),
                }
            }
        }
    }

    /// A question that became active before it was drawn goes on waiting when a key reaches the line.
    fn return_to_line(&mut self) {
        if matches!(self.approval_focus, ApprovalFocus::Active { .. }) {
            self.approval_focus = ApprovalFocus::Waiting;
        }
    }

    fn edit_reason(&mut self, edit: impl FnOnce(&mut crate::editor::EditBuffer)) {
        if let ApprovalFocus::Reason { reason } = &mut self.approval_focus {
            edit(reason);
        }
    }

    fn edit_answer(&mut self, edit: impl FnOnce(&mut crate::editor::EditBuffer)) {
        if let Some(question) = &mut self.question {
            edit(&mut question.answer);
            question.marked = None;
        }
    }

    fn act(&mut self, action: Action, state: FaceState, effects: &mut Vec<Effect>) {
        match state {
            FaceState::ApprovalActive => return self.act_on_approval(action, effects),
            FaceState::ApprovalReason => return self.act_on_reason(action, effects),
            FaceState::Question => return self.act_on_question(action, effects),
            _ => {}
        }
        match action {
            Action::Submit => self.submit(state, effects),
            Action::Queue => self.queue_line(state, effects),
            Action::Stop => self.escape(state, effects),
            Action::Interrupt => self.interrupt(effects),
            Action::DeleteOrLeave if self.editor.is_empty() => self.leave_or_ask(effects),
            Action::NextMode => self.change_mode(effects),
            Action::Up if self.editor.is_empty() && !self.queue.is_empty() => effects.push(Effect::TakeBack),
            Action::ExternalEditor => effects.push(Effect::OpenEditor(self.editor.buffer().expanded())),
            Action::RetryNow => effects.push(Effect::RetryNow),
            Action::PasteImage => effects.push(Effect::PasteImage),
            Action::Suspend => effects.push(Effect::Suspend),
            Action::Redraw => effects.push(Effect::Redraw),
            Action::ViewContext => effects.push(Effect::Open(ViewKind::Context)),
            Action::ViewModel => effects.push(Effect::Open(ViewKind::Model)),
            Action::ViewSessions => effects.push(Effect::Open(ViewKind::Sessions)),
            Action::ViewTree => effects.push(Effect::Open(ViewKind::Tree)),
            Action::FullScreen => effects.push(Effect::Open(ViewKind::Full)),
            Action::LastCall => effects.push(Effect::Open(ViewKind::LastCall)),
            Action::ViewChanges => effects.push(Effect::Open(ViewKind::Changes)),
            Action::ViewLayout => effects.push(Effect::Open(ViewKind::Layout)),
            Action::ViewHelp | Action::EmptyHelp => effects.push(Effect::Open(ViewKind::Help)),
            action => {
                self.return_to_line();
                // An arrow at the end of the history does nothing.
                let _: EditOutcome = self.editor.apply(action);
            }
        }
    }

    fn submit(&mut self, state: FaceState, effects: &mut Vec<Effect>) {
        // What an extension has just put there was not read yet.
        if self.line_changed_at.is_some_and(|changed| self.now < changed + READING_TIME) {
            self.hint = Some(("an extension has just changed the line: read it first".to_owned(), self.now));
            return;
        }
        if self.editor.continue_line() {
            return;
        }
        let Some(submission) = self.take_line(effects) else { return };
        let is_command = submission.kind == SubmissionKind::Command;
        if let Some(view) = ViewKind::for_command(&submission.text).filter(|_| is_command) {
            return effects.push(Effect::Open(view));
        }
        let is_prompt = submission.kind == SubmissionKind::Prompt;
        self.expects_reply = !is_prompt && self.holds_text();
        match state {
            FaceState::Idle => {
                self.print_prompt(&submission);
                if is_prompt {
                    submission.text.clone_into(&mut self.last_prompt);
                    self.phase = Phase::Streaming;
                    self.run_since = Some(self.now);
                    (self.has_text, self.has_begun) = (false, false);
                }
                effects.push(Effect::Send(submission));
            }
            _ if !is_prompt => {
                self.print_prompt(&submission);
                effects.push(Effect::Send(submission));
            }
            _ => effects.push(Effect::Steer(submission)),
        }
    }

    fn queue_line(&mut self, state: FaceState, effects: &mut Vec<Effect>) {
        if state == FaceState::ApprovalWaiting {
            return self.activate_approval();
        }
        if state == FaceState::Idle {
            return;
        }
        if let Some(submission) = self.take_line(effects) {
            effects.push(Effect::QueueForEnd(submission));
        }
    }

    fn take_line(&mut self, effects: &mut Vec<Effect>) -> Option<Submission> {
        let (submission, line) = self.editor.submit()?;
        effects.extend(line.map(Effect::AppendHistory));
        Some(submission)
    }

    fn escape(&mut self, state: FaceState, effects: &mut Vec<Effect>) {
        match state {
            FaceState::ApprovalWaiting => self.activate_approval(),
            FaceState::Stopping => effects.push(Effect::Kill),
            FaceState::Idle => {
                if self.editor.is_empty() && self.background_work.take().is_some() {
                    effects.push(Effect::StopBackgroundWork);
                }
                let is_second = self.escape_at.take().is_some_and(|first| self.now < first + TWICE_TIME);
                match (is_second, self.editor.is_empty()) {
                    (true, true) => effects.push(Effect::Open(ViewKind::Tree)),
                    (true, false) => self.editor.clear(),
                    (false, is_empty) => {
                        self.escape_at = Some(self.now);
                        let what = if is_empty { "opens the tree" } else { "clears the line" };
                        self.show_hint(format!("{} again {what}", self.keymap.hint(Action::Stop)));
                    }
                }
            }
            _ => self.stop(effects),
        }
    }

    pub(super) fn stop(&mut self, effects: &mut Vec<Effect>) {
        let is_taken_back = !self.has_begun && self.editor.is_empty() && !self.last_prompt.is_empty();
        if is_taken_back {
            let prompt = std::mem::take(&mut self.last_prompt);
            self.editor.set_text(&prompt);
        }
        self.phase = Phase::Stopping;
        self.approvals.clear();
        self.question = None;
        self.waiting_questions.clear();
        self.ask_next();
        effects.push(if is_taken_back { Effect::StopAndTakeBack } else { Effect::Stop });
    }

    fn interrupt(&mut self, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Stopping {
            return effects.push(Effect::Kill);
        }
        if self.is_running() {
            return self.stop(effects);
        }
        if !self.editor.is_empty() {
            self.editor.clear();
            self.show_hint(format!("{} brings the line back", self.keymap.hint(Action::Yank)));
            return;
        }
        if self.interrupt_at.take().is_some_and(|first| self.now < first + TWICE_TIME) {
            return effects.push(Effect::Leave);
        }
        self.interrupt_at = Some(self.now);
        self.show_hint(format!("{} again leaves", self.keymap.hint(Action::Interrupt)));
    }

    fn leave_or_ask(&mut self, effects: &mut Vec<Effect>) {
        let is_second = self.leave_at.take().is_some_and(|first| self.now < first + TWICE_TIME);
        if !self.is_running() || is_second {
            return effects.push(Effect::Leave);
        }
        self.leave_at = Some(self.now);
        self.show_hint(format!("{} again stops the run and leaves", self.keymap.hint(Action::DeleteOrLeave)));
    }

    fn change_mode(&mut self, effects: &mut Vec<Effect>) {
        self.set_mode(self.mode.next());
        effects.push(Effect::SetMode(self.mode));
    }

    fn act_on_approval(&mut self, action: Action, effects: &mut Vec<Effect>) {
        let Some(prompt) = self.approvals.front() else { return };
        match action {
            Action::NextChoice => return self.mark_choice(1),
            Action::PreviousChoice => return self.mark_choice(-1),
            Action::TakeChoice => {
                let ApprovalFocus::Active { marked: Some(marked), .. } = self.approval_focus else { return };
                let offered: Vec<Action> = self.offered_choices();
                if let Some(choice) = offered.get(marked) {
                    self.act_on_approval(*choice, effects);
                }
                return;
            }
            Action::LeaveApproval => {
                self.approval_focus = ApprovalFocus::Parked;
                return;
            }
            Action::ApprovalMode => return self.change_mode(effects),
            action if !is_offered(prompt, action) => return,
            _ => {}
        }
        match action {
            Action::ApproveOnce => self.answer(ApprovalAnswer::Once, effects),
            Action::ApproveSession => self.answer(ApprovalAnswer::Session, effects),
            Action::ApproveAlways => self.answer(ApprovalAnswer::Always, effects),
            Action::Refuse => self.approval_focus = ApprovalFocus::Reason { reason: Default::default() },
            Action::EditCall => {
                let Some(text) = prompt.editable.clone() else { return };
                effects.push(Effect::EditCall { id: prompt.id, text });
            }
            Action::ShowWhole => effects.push(Effect::Open(ViewKind::WholeCall)),
            Action::ShowDiff => effects.push(Effect::Open(ViewKind::CallDiff)),
            Action::RefuseAndStop => {
                self.answer(ApprovalAnswer::NoAndStop, effects);
                // An extension asks without a run, too.
                if self.is_running() {
                    self.phase = Phase::Stopping;
                }
            }
            _ => {}
        }
    }

    /// The answers that the first approval offers, in order.
    pub fn offered_choices(&self) -> Vec<Action> {
        let prompt = self.approvals.front();
        let offered = |choice: &Action| prompt.is_some_and(|prompt| is_offered(prompt, *choice));
        CHOICES.into_iter().filter(offered).collect()
    }

    fn mark_choice(&mut self, step: isize) {
        let count = self.offered_choices().len();
        let ApprovalFocus::Active { marked, .. } = &mut self.approval_focus else { return };
        *marked = moved(*marked, step, count);
    }

    fn act_on_reason(&mut self, action: Action, effects: &mut Vec<Effect>) {
        match action {
            Action::SendReason => {
                let ApprovalFocus::Reason { reason } = &self.approval_focus else { return };
                let reason = Some(reason.expanded().trim().to_owned()).filter(|reason| !reason.is_empty());
                self.answer(ApprovalAnswer::No(reason), effects);
            }
            Action::CancelReason => self.activate_approval(),
            action => self.edit_reason(|reason| _ = reason.apply(action)),
        }
    }

    /// Gives an answer to the first approval, and prints it.
    fn answer(&mut self, answer: ApprovalAnswer, effects: &mut Vec<Effect>) {
        let Some(prompt) = self.approvals.pop_front() else { return };
        self.print_answer(&prompt, &answer);
        self.approvals_answered += 1;
        effects.push(Effect::Answer { id: prompt.id, answer });
        self.approval_focus = ApprovalFocus::Waiting;
        self.ask_next();
    }

    /// The person changed the call in the editor: unless it is the same, that is a yes.
    pub(super) fn answer_with_change(&mut self, id: u64, text: String, effects: &mut Vec<Effect>) {
        let is_change = |prompt: &ApprovalPrompt| prompt.id == id && prompt.editable.as_ref() != Some(&text);
        if self.approvals.front().is_some_and(is_change) {
            self.answer(ApprovalAnswer::Changed(text), effects);
        }
    }

    fn act_on_question(&mut self, action: Action, effects: &mut Vec<Effect>) {
        let Some(OpenQuestion { prompt, marked, answer, .. }) = &mut self.question else { return };
        let id = prompt.id;
        match action {
            Action::NextAnswer => *marked = moved(*marked, 1, prompt.choices.len()),
            Action::PreviousAnswer => *marked = moved(*marked, -1, prompt.choices.len()),
            Action::SendAnswer => {
                let chosen = marked.and_then(|marked| prompt.choices.get(marked).cloned());
                let typed = answer.expanded();
                let chosen = chosen.or_else(|| chosen_by_words(prompt, typed.trim()));
                if prompt.only_choices && chosen.is_none() {
                    return self.show_hint("type the number of an answer, or mark one with an arrow".into());
                }
                let answer = Some(chosen.unwrap_or(typed)).filter(|answer| !answer.trim().is_empty());
                self.close_question(answer, id, effects);
            }
            Action::RefuseAnswer => self.close_question(None, id, effects),
            Action::StopFromQuestion => {
                self.close_question(None, id, effects);
                if self.is_running() {
                    self.stop(effects);
                } else {
                    // A command of an extension.
                    effects.push(Effect::Stop);
                }
            }
            action => _ = answer.apply(action),
        }
    }

    /// The choice that one key takes: its number, or its first letter if there are two.
    fn choice_of_key(&self, key: char) -> Option<String> {
        let OpenQuestion { prompt, answer, .. } = self.question.as_ref()?;
        let is_choice = key.is_ascii_digit() || prompt.choices.len() == 2;
        if !prompt.takes_one_key() || !answer.expanded().is_empty() || !is_choice {
            return None;
        }
        chosen_by_words(prompt, key.encode_utf8(&mut [0; 4]))
    }

    fn answer_question(&mut self, answer: String, effects: &mut Vec<Effect>) {
        if let Some(id) = self.question.as_ref().map(|question| question.prompt.id) {
            self.close_question(Some(answer), id, effects);
        }
    }

    fn close_question(&mut self, answer: Option<String>, id: u64, effects: &mut Vec<Effect>) {
        let is_secret = self.question.take().is_some_and(|question| question.prompt.is_secret);
        let shown = if is_secret { answer.as_ref().map(|_| "(not shown)") } else { answer.as_deref() };
        self.print_question_answer(shown);
        self.ask_next();
        effects.push(Effect::AnswerQuestion { id, answer });
    }
}

/// The choice that words name: its number, or where only choices count, the beginning of one alone.
fn chosen_by_words(prompt: &QuestionPrompt, words: &str) -> Option<String> {
    let choices = &prompt.choices;
    if let Ok(number) = words.parse::<usize>() {
        return number.checked_sub(1).and_then(|index| choices.get(index).cloned());
    }
    if !prompt.only_choices || words.is_empty() {
        return None;
    }
    let words = words.to_lowercase();
    let mut meant = choices.iter().filter(|choice| choice.to_lowercase().starts_with(&words));
    meant.next().filter(|_| meant.next().is_none()).cloned()
}

/// The mention of an image whose path was pasted, or dropped on the terminal.
fn image_mention(pasted: &str) -> Option<String> {
    let path = pasted.trim().trim_matches(['\'', '"']);
    let path = path.strip_prefix("file://").unwrap_or(path);
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase())?;
    let is_image = matches!(extension.as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp");
    let is_path = path.starts_with(['/', '~', '.']) && !path.contains(char::is_whitespace);
    (is_image && is_path).then(|| format!("@{path} "))
}

/// The index `step` further, round at the ends; the first key marks the first or the last.
fn moved(marked: Option<usize>, step: isize, count: usize) -> Option<usize> {
    let count = isize::try_from(count).ok().filter(|count| *count > 0)?;
    let start = match marked {
        Some(marked) => isize::try_from(marked).ok()? + step,
        None if step > 0 => 0,
        None => count - 1,
    };
    usize::try_from(start.rem_euclid(count)).ok()
}
