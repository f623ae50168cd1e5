//! [`PendingQuestions`]: asks the user through the client, and delivers its answers.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use hardpan_agent::ApprovalRequest;
use hardpan_agent::approval::ApprovalRule;
use hardpan_agent::events::{Dialog, DialogAnswer};
use hardpan_app::approval::{ApprovalVerdict, UserPrompter, is_yes};
use hardpan_app::attachment_price::AttachmentPrice;
use tokio::sync::oneshot;

use super::error::AnswerError;
use super::response::{OutputMessage, PriceQuestion};
use super::writer::JsonWriter;

/// The reason that the model reads when nobody can answer any more.
const NOBODY: &str = "nobody is there to ask any more";

/// The questions that wait for an answer from the client.
pub struct PendingQuestions {
    out: JsonWriter,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// No more answers will come: standard input has ended.
    closed: bool,
    /// How many questions were asked so far; numbers their ids.
    asked_count: u64,
    waiting: BTreeMap<String, AnswerChannel>,
}

/// Where the answer to a question goes.
enum AnswerChannel {
    Verdict(oneshot::Sender<ApprovalVerdict>),
    Text(oneshot::Sender<Option<String>>),
    /// The same about the price of a prompt, which is not sent until then.
    Price(oneshot::Sender<Option<String>>),
    /// With the answers that are offered, if no others count.
    Dialog(oneshot::Sender<Option<DialogAnswer>>, Vec<String>),
}

/// The client's answer to a question.
pub enum Answer {
    /// To an `approval_request`.
    Verdict(ApprovalVerdict),
    /// To an `input_request`; none if the user gave no text.
    Text(Option<String>),
    /// To a `dialog_request`; none if the user gave no answer.
    Dialog(Option<DialogAnswer>),
}

impl PendingQuestions {
    pub fn new(out: &JsonWriter) -> Self {
        PendingQuestions { out: out.clone(), state: Mutex::default() }
    }

    /// Delivers the answer to the question with this id.
    pub fn answer(&self, id: Option<&str>, answer: Answer) -> Result<(), AnswerError> {
        let id = id.ok_or(AnswerError::NoId)?;
        let mut state = self.state();
        // A question whose run was stopped in the meantime counts as unknown.
        let sent = match (state.waiting.remove(id), answer) {
            (Some(AnswerChannel::Verdict(question)), Answer::Verdict(verdict)) => {
                question.send(verdict).is_ok()
            }
            (Some(AnswerChannel::Text(question) | AnswerChannel::Price(question)), Answer::Text(text)) => {
                question.send(text).is_ok()
            }
            (Some(AnswerChannel::Dialog(question, choices)), Answer::Dialog(answer)) => {
                if let Some(DialogAnswer::Text(text)) = &answer
                    && !choices.is_empty()
                    && !choices.contains(text)
                {
                    let id = id.to_owned();
                    state.waiting.insert(id.clone(), AnswerChannel::Dialog(question, choices.clone()));
                    return Err(AnswerError::NotOffered { id, choices });
                }
                question.send(answer).is_ok()
            }
            (Some(question), _) => {
                state.waiting.insert(id.to_owned(), question);
                return Err(AnswerError::OtherKind { id: id.to_owned() });
            }
            (None, _) => false,
        };
        sent.then_some(()).ok_or_else(|| AnswerError::NotWaiting { id: id.to_owned() })
    }

    /// Answers questions about prices with no: what they are about is not to be sent any more.
    pub fn decline_prices(&self) {
        self.state().waiting.retain(|_, question| !matches!(question, AnswerChannel::Price(_)));
    }

    /// Answers all open and future questions with no, because no more answers will come.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.waiting.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a question, and returns its id and the channel for its answer. None once closed.
    fn open<T>(
        &self,
        kind: impl FnOnce(oneshot::Sender<T>) -> AnswerChannel,
    ) -> Option<(String, oneshot::Receiver<T>)> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        let (sender, answer) = oneshot::channel();
        state.asked_count += 1;
        let id = format!("q{}", state.asked_count);
        state.waiting.insert(id.clone(), kind(sender));
        Some((id, answer))
    }
}

impl UserPrompter for PendingQuestions {
    fn ask_approval<'a>(
        &'a self,
        question: &'a ApprovalRequest,
        rule: Option<&'a ApprovalRule>,
    ) -> BoxFuture<'a, ApprovalVerdict> {
        Box::pin(async move {
            let Some((id, answer)) = self.open(AnswerChannel::Verdict) else {
                return ApprovalVerdict::No(NOBODY.into());
            };
            // Stopping the run drops this future, and with it the question.
            let _remove = RemoveOnDrop { questions: self, id: &id };
            self.out.write_line(&OutputMessage::ApprovalRequest {
                id: id.clone(),
                call_id: question.call_id.clone(),
                tool_name: question.tool_name.clone(),
                args: question.args.clone(),
                agent: question.agent.clone(),
                claim: question.claim,
                handler_reason: question.handler_reason.clone(),
                rule: rule.map(ToString::to_string),
            });
            answer.await.unwrap_or_else(|_| ApprovalVerdict::No(NOBODY.into()))
        })
    }

    fn ask_text<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.ask_line(question.to_owned(), None))
    }

    fn ask_dialog<'a>(&'a self, owner: &'a str, dialog: &'a Dialog) -> BoxFuture<'a, Option<DialogAnswer>> {
        Box::pin(async move {
            let choices = match dialog {
                Dialog::Select { choices, .. } => choices.clone(),
                _ => Vec::new(),
            };
            let (id, answer) = self.open(|question| AnswerChannel::Dialog(question, choices))?;
            let _remove = RemoveOnDrop { questions: self, id: &id };
            let (owner, dialog) = (owner.to_owned(), dialog.clone());
            self.out.write_line(&OutputMessage::DialogRequest { id: id.clone(), owner, dialog });
            answer.await.ok().flatten()
        })
    }

    fn mode(&self) -> &'static str {
        "rpc"
    }

    fn confirm_price(&self, subject: &str, price: AttachmentPrice, limit: f64) -> BoxFuture<'_, bool> {
        let question = format!("{subject} costs {price}. Send it? yes or no");
        let AttachmentPrice { tokens, dollars } = price;
        let answer = self.ask_line(question, Some(PriceQuestion { tokens, dollars, limit }));
        Box::pin(async move { answer.await.is_some_and(|answer| is_yes(&answer)) })
    }
}

impl PendingQuestions {
    /// Asks for a line of text.
    async fn ask_line(&self, prompt: String, price: Option<PriceQuestion>) -> Option<String> {
        let kind = if price.is_some() { AnswerChannel::Price } else { AnswerChannel::Text };
        let (id, answer) = self.open(kind)?;
        let _remove = RemoveOnDrop { questions: self, id: &id };
        self.out.write_line(&OutputMessage::InputRequest { id: id.clone(), prompt, price });
        answer.await.ok().flatten()
    }
}

/// Removes a question when the future that waits for it ends or is dropped.
struct RemoveOnDrop<'a> {
    questions: &'a PendingQuestions,
    id: &'a str,
}

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        self.questions.state().waiting.remove(self.id);
    }
}
