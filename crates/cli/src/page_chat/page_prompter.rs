//! [`PagePrompter`]: asks the person in the face, unless the face's mode decides.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use hardpan_agent::ApprovalRequest;
use hardpan_agent::approval::ApprovalRule;
use hardpan_agent::events::{Dialog, DialogAnswer};
use hardpan_app::approval::{ApprovalVerdict, UserPrompter, is_yes};
use hardpan_terminal::model::{AgentUpdate, ApprovalAnswer, ApprovalPrompt, QuestionPrompt};
use hardpan_terminal::theme::Theme;
use tokio::sync::{mpsc, oneshot};

use super::call_preview::approval_prompt;
use super::conversation::FaceSender;
use super::editable_part::EditablePart;
use super::modes::{SharedMode, verdict_of_mode};
use crate::key_entry::HiddenInput;

/// The calls whose text is on the page already, because they were asked about.
pub type ShownCalls = Arc<Mutex<BTreeSet<Arc<str>>>>;

/// A question on its way to the face.
pub enum PageQuestion {
    Approval(Box<ApprovalPrompt>),
    Text(QuestionPrompt),
    /// Nobody waits for the answer any more.
    Closed(ClosedQuestion),
}

/// A question whose answer nobody waits for.
#[derive(Clone, Copy)]
pub enum ClosedQuestion {
    Approval { id: u64 },
    Text { id: u64 },
}

/// Where answers go, by the number of their question.
#[derive(Clone, Default)]
pub struct PendingQuestions(Arc<Mutex<Replies>>);

#[derive(Default)]
struct Replies {
    next: u64,
    shown: ShownCalls,
    verdicts: BTreeMap<u64, PendingVerdict>,
    texts: BTreeMap<u64, oneshot::Sender<Option<String>>>,
}

/// A call that waits for a verdict.
struct PendingVerdict {
    reply: oneshot::Sender<ApprovalVerdict>,
    call_id: Arc<str>,
    editable: Option<EditablePart>,
    /// The question, in case the answer cannot be used.
    prompt: ApprovalPrompt,
}

/// What became of an answer.
#[derive(Debug)]
pub enum AnswerEffect {
    /// The run goes on.
    GoesOn,
    /// The run is to stop.
    Stops,
    /// The text that the person made of the call cannot be read: the question is open again.
    AsksAgain(Box<ApprovalPrompt>),
}

impl PendingQuestions {
    fn lock(&self) -> MutexGuard<'_, Replies> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn next_id(&self) -> u64 {
        let mut replies = self.lock();
        replies.next += 1;
        replies.next
    }

    /// Shows a question, if somebody still waits for its answer.
    pub fn ask(&self, question: PageQuestion, face: &FaceSender) {
        let replies = self.lock();
        match question {
            PageQuestion::Approval(prompt) if replies.verdicts.contains_key(&prompt.id) => {
                face.agent(AgentUpdate::ApprovalAsked(*prompt));
            }
            PageQuestion::Text(prompt) if replies.texts.contains_key(&prompt.id) => {
                face.agent(AgentUpdate::QuestionAsked(prompt));
            }
            PageQuestion::Closed(ClosedQuestion::Text { id }) => {
                face.agent(AgentUpdate::QuestionClosed { id });
            }
            PageQuestion::Closed(ClosedQuestion::Approval { id }) => {
                face.agent(AgentUpdate::ApprovalClosed { id });
            }
            _ => {}
        }
    }

    /// Delivers an answer.
    pub fn answer(&self, id: u64, answer: ApprovalAnswer) -> AnswerEffect {
        let mut replies = self.lock();
        let Some(pending) = replies.verdicts.remove(&id) else { return AnswerEffect::GoesOn };
        let (verdict, stops) = match answer {
            ApprovalAnswer::Changed(text) => {
                let Some(args) = pending.editable.as_ref().and_then(|part| part.replaced(text)) else {
                    let prompt = Box::new(pending.prompt.clone());
                    replies.verdicts.insert(id, pending);
                    return AnswerEffect::AsksAgain(prompt);
                };
                // What runs is not what was shown.
                replies.shown.lock().unwrap_or_else(PoisonError::into_inner).remove(&pending.call_id);
                (ApprovalVerdict::Changed(args), false)
            }
            ApprovalAnswer::Once => (ApprovalVerdict::Once, false),
            ApprovalAnswer::Session => (ApprovalVerdict::Session, false),
            ApprovalAnswer::Always => (ApprovalVerdict::Always, false),
            ApprovalAnswer::No(None) => (ApprovalVerdict::No("the person said no".into()), false),
            ApprovalAnswer::No(Some(reason)) => {
                (ApprovalVerdict::No(format!("the person said no: {reason}")), false)
            }
            ApprovalAnswer::NoAndStop => (ApprovalVerdict::No("the person said no and stopped".into()), true),
        };
        // Fails if the run was stopped meanwhile.
        let _ = pending.reply.send(verdict);
        if stops { AnswerEffect::Stops } else { AnswerEffect::GoesOn }
    }

    pub fn answer_text(&self, id: u64, answer: Option<String>) {
        let reply = self.lock().texts.remove(&id);
        if let Some(reply) = reply {
            let _ = reply.send(answer);
        }
    }

    /// Nobody answers any more.
    pub fn clear(&self) {
        let mut replies = self.lock();
        replies.verdicts.clear();
        replies.texts.clear();
    }
}

/// Asks in the face.
pub struct PagePrompter {
    questions: PendingQuestions,
    sender: mpsc::UnboundedSender<PageQuestion>,
    mode: SharedMode,
    shown: ShownCalls,
    theme: Theme,
    folder: PathBuf,
}

impl PagePrompter {
    /// A prompter, and the questions that it has.
    pub fn new(
        questions: PendingQuestions,
        theme: Theme,
        folder: PathBuf,
    ) -> (Self, mpsc::UnboundedReceiver<PageQuestion>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (mode, shown) = (SharedMode::default(), questions.lock().shown.clone());
        (PagePrompter { questions, sender, mode, shown, theme, folder }, receiver)
    }

    pub fn mode(&self) -> SharedMode {
        self.mode.clone()
    }

    pub fn shown_calls(&self) -> ShownCalls {
        self.shown.clone()
    }

    async fn ask_line(&self, question: &str, is_secret: bool) -> Option<String> {
        let prompt = QuestionPrompt { text: question.to_owned(), is_secret, ..QuestionPrompt::default() };
        self.ask_prompt(prompt).await
    }

    /// Asks with choices, or with a text to begin with. A question that nobody waits for any more goes
    /// from the screen.
    async fn ask_prompt(&self, prompt: QuestionPrompt) -> Option<String> {
        let id = self.questions.next_id();
        let (reply, answer) = oneshot::channel();
        self.questions.lock().texts.insert(id, reply);
        let open = OpenQuestion { question: Some(ClosedQuestion::Text { id }), prompter: self };
        self.sender.send(PageQuestion::Text(QuestionPrompt { id, ..prompt })).ok()?;
        let answer = answer.await.ok()?;
        open.answered();
        answer
    }
}

/// Takes a question back when the future that waits for it is dropped, or nobody can answer it any more.
struct OpenQuestion<'a> {
    question: Option<ClosedQuestion>,
    prompter: &'a PagePrompter,
}

impl OpenQuestion<'_> {
    /// The face knows that the question is over.
    fn answered(mut self) {
        self.question = None;
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let Some(question) = self.question else { return };
        let mut replies = self.prompter.questions.lock();
        match question {
            ClosedQuestion::Approval { id } => drop(replies.verdicts.remove(&id)),
            ClosedQuestion::Text { id } => drop(replies.texts.remove(&id)),
        }
        drop(replies);
        // The face may have ended.
        let _ = self.prompter.sender.send(PageQuestion::Closed(question));
    }
}

/// A dialog of an extension as a question of the face.
fn dialog_prompt(owner: &str, dialog: &Dialog) -> QuestionPrompt {
    let mut text = format!("{owner} asks: {}", dialog.title().replace('\n', " "));
    let (mut choices, mut prefill) = (Vec::new(), String::new());
    match dialog {
        Dialog::Confirm { message, .. } => {
            // What is asked about is printed above the question.
            if let Some(message) = message {
                text = format!("{message}\n{text}");
            }
            choices = vec![YES.to_owned(), NO.to_owned()];
        }
        Dialog::Select { choices: given, .. } => choices.clone_from(given),
        Dialog::Input { placeholder: Some(hint), .. } => text.push_str(&format!(" ({hint})")),
        Dialog::Input { .. } => {}
        Dialog::Editor { text: given, .. } => prefill.clone_from(given),
    }
    let only_choices = !choices.is_empty();
    QuestionPrompt { text, choices, only_choices, prefill, ..QuestionPrompt::default() }
}

/// The choices of a question for yes or no.
const YES: &str = "yes";
const NO: &str = "no";

/// What the answer means; none for a text that is none of the choices.
fn dialog_answer(dialog: &Dialog, answer: String) -> Option<DialogAnswer> {
    match dialog {
        Dialog::Confirm { .. } => Some(DialogAnswer::Confirmed(is_yes(&answer))),
        Dialog::Select { choices, .. } => {
            let chosen = choices.iter().find(|choice| choice.trim() == answer.trim());
            chosen.cloned().map(DialogAnswer::Text)
        }
        Dialog::Input { .. } | Dialog::Editor { .. } => Some(DialogAnswer::Text(answer)),
    }
}

impl UserPrompter for PagePrompter {
    fn ask_approval<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        rule: Option<&'a ApprovalRule>,
    ) -> BoxFuture<'a, ApprovalVerdict> {
        Box::pin(async move {
            if let Some(verdict) = verdict_of_mode(&self.mode, request, rule) {
                return verdict;
            }
            let id = self.questions.next_id();
            let prompt = approval_prompt(id, request, rule, &self.folder, &self.theme);
            let (reply, answer) = oneshot::channel();
            let (call_id, editable) = (request.call_id.clone(), EditablePart::of(&request.args));
            let pending = PendingVerdict { reply, call_id, editable, prompt: prompt.clone() };
            self.questions.lock().verdicts.insert(id, pending);
            let open = OpenQuestion { question: Some(ClosedQuestion::Approval { id }), prompter: self };
            self.shown.lock().unwrap_or_else(PoisonError::into_inner).insert(request.call_id.clone());
            if self.sender.send(PageQuestion::Approval(Box::new(prompt))).is_err() {
                return ApprovalVerdict::No("nobody is there to ask".into());
            }
            match answer.await {
                Ok(verdict) => {
                    open.answered();
                    verdict
                }
                Err(_) => ApprovalVerdict::No("the person did not answer".into()),
            }
        })
    }

    fn ask_text<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move { self.ask_line(question, false).await })
    }

    fn ask_dialog<'a>(&'a self, owner: &'a str, dialog: &'a Dialog) -> BoxFuture<'a, Option<DialogAnswer>> {
        Box::pin(async move {
            let answer = self.ask_prompt(dialog_prompt(owner, dialog)).await?;
            dialog_answer(dialog, answer)
        })
    }

    fn ask_secret<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let hidden = HiddenInput::start();
            let answer = self.ask_line(question, true).await;
            drop(hidden);
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use hardpan_tools::CallSubject;
    use serde_json::json;

    use super::*;

    fn request() -> ApprovalRequest {
        ApprovalRequest {
            call_id: "extension:evil".into(),
            tool_name: "bash".into(),
            args: json!({ "command": "ls" }),
            subject: CallSubject::Command("ls".into()),
            claim: None,
            agent: Some("extension evil".into()),
            handler_reason: None,
        }
    }

    #[tokio::test]
    async fn a_question_that_nobody_can_answer_any_more_is_a_no_and_leaves_the_face() {
        let questions = PendingQuestions::default();
        let (prompter, mut asked) = PagePrompter::new(questions.clone(), Theme::default(), PathBuf::new());
        let request = request();
        let asking = prompter.ask_approval(&request, None);
        let clearing = async {
            let Some(PageQuestion::Approval(prompt)) = asked.recv().await else { panic!("it asks") };
            questions.clear();
            prompt.id
        };
        let (verdict, asked_id) = tokio::join!(asking, clearing);
        assert_eq!(verdict, ApprovalVerdict::No("the person did not answer".into()));
        let closed = asked.recv().await;
        assert!(
            matches!(closed, Some(PageQuestion::Closed(ClosedQuestion::Approval { id })) if id == asked_id)
        );
        // One whose asker is gone leaves it, too.
        drop(tokio::time::timeout(std::time::Duration::ZERO, prompter.ask_approval(&request, None)).await);
        assert!(matches!(asked.recv().await, Some(PageQuestion::Approval(_))));
        assert!(matches!(asked.recv().await, Some(PageQuestion::Closed(ClosedQuestion::Approval { .. }))));
    }
}
