//! Compaction: a summary in place of what was said long ago.
//!
//! The request for the summary is the next request of the session with one message more: same tools, same system prompt, same
//! conversation, so that all of it is read from the cache. Nothing leaves the session file.

mod cut; // where a conversation is cut
mod short; // a conversation that is too long to be summarised whole

use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_context::{LayoutName, Snapshot, Texts, fill};
use hardpan_prompt::{AgentMessage, Body, LeftOut, MessageId, Part, Text};
use hardpan_providers::{Answer, Failure, Question, StopReason};
use hardpan_session::{Record, Session};
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::Stop;
use crate::agent::{Agent, AgentError, Choice, lock};
use crate::bill::Times;
use crate::books::On;
use crate::events::{BeforeCompactReply, SessionBeforeCompact, SessionCompact};
use crate::run::{Bench, unless_stopped};
use crate::turn::TextForms;
use cut::KEPT_TOKENS;
use short::SHORT;

/// What a compaction did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compacted {
    /// What stands for the messages before.
    pub summary: String,
    /// How many messages it stands for.
    pub messages: usize,
    /// The first message that stayed.
    pub first_kept: Arc<str>,
    /// Tokens of the conversation before, as counted here.
    pub tokens_before: u64,
}

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyCompact {
    /// The person asked for it.
    Asked,
    /// The window is nearly full.
    NearlyFull,
    /// The provider said that the request is too long.
    TooLong,
}

/// In which form a conversation is shown to be summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As the session's next request: it is read from the cache.
    OnPrefix,
    /// The conversation without tools, system prompt and items.
    Alone,
    /// The same, of what is to be summarised alone, with at most so many characters of each text.
    Short(usize),
}

impl Form {
    /// What is tried next.
    fn next(self, failed: &Aside) -> Option<Form> {
        match (self, failed) {
            (Form::OnPrefix, Aside::Failed(_)) => Some(Form::Alone),
            (Form::OnPrefix | Form::Alone, Aside::TooLong(_)) => Some(Form::Short(SHORT[0])),
            (Form::Short(most), Aside::TooLong(_)) => {
                SHORT.into_iter().find(|shorter| *shorter < most).map(Form::Short)
            }
            (Form::Alone | Form::Short(_), Aside::Failed(_)) => None,
        }
    }
}

/// Why a request beside the conversation gave no answer.
enum Aside {
    /// It does not fit the window.
    TooLong(String),
    /// Anything else.
    Failed(String),
}

impl Agent {
    /// Puts a summary in place of what was said long ago. `instructions` tell what matters. A summary that fails changes
    /// nothing.
    pub async fn compact(&self, instructions: Option<String>) -> Result<Compacted, AgentError> {
        let mut bench = self.inner.bench.try_lock().map_err(|_| AgentError::Busy)?;
        let token = self.fresh_token();
        let compacted = self.compact_now(&mut bench, instructions, WhyCompact::Asked, &token).await;
        drop(bench);
        self.settle().await?;
        compacted
    }

    pub(crate) async fn compact_now(
        &self,
        bench: &mut Bench,
        instructions: Option<String>,
        why: WhyCompact,
        token: &CancellationToken,
    ) -> Result<Compacted, AgentError> {
        let failed = |reason: String| AgentError::Compact { reason };
        let messages = self.messages();
        let count = |message: &AgentMessage| tokens(message, bench);
        let sizes: Vec<usize> = messages.iter().map(count).collect();
        let tokens_before = sizes.iter().sum::<usize>() as u64;
        let wanted = KEPT_TOKENS.min(self.target().max_input_tokens() as usize / 10);
        let cut = cut::first_kept(&messages, &sizes, wanted)
            .ok_or_else(|| failed("there is too little to summarise yet".into()))?;
        let first_kept = messages[cut].id.clone();
        let event = SessionBeforeCompact {
            why,
            instructions: instructions.clone(),
            messages: cut,
            first_kept: first_kept.clone(),
            tokens_before,
        };
        let summary = match self.offer(event).await {
            BeforeCompactReply::Cancel { reason } => return Err(failed(reason)),
            BeforeCompactReply::Summary { text } if text.trim().is_empty() => {
                return Err(failed("the summary was empty; nothing has changed".into()));
            }
            BeforeCompactReply::Summary { text } => text,
            BeforeCompactReply::Continue => {
                let texts = &self.inner.setup.texts;
                let request = request(texts, instructions.as_deref());
                // What the provider has just refused as too long is not sent once more.
                let first = if why == WhyCompact::TooLong { Form::Short(SHORT[0]) } else { Form::OnPrefix };
                let asking = self.summarise(bench, &messages, cut, &request, "compaction", first);
                unless_stopped(token, asking)
                    .await
                    .map_err(|_| failed("it was stopped; nothing has changed".into()))?
                    .map_err(failed)?
            }
        };
        // The files are read off the stored session, which must have caught up.
        let flushed = lock(&self.inner.conversation).flush();
        flushed.await?;
        // The bill of the summary may still be on its way to the file that is read now.
        let flushed = lock(&self.inner.conversation).flush();
        flushed.await?;
        let (summary, details) = self.with_files(&summary, &messages[..cut]);
        let now = self.now();
        let saved = {
            let mut conversation = lock(&self.inner.conversation);
            let record = Record::Compaction {
                summary: Text::new(summary.as_str()),
                first_kept: Some(first_kept.0.clone()),
                tokens_before: Some(tokens_before),
                details: Some(details),
            };
            conversation.compact(record, Text::new(summary.as_str()), cut, now)
        };
        saved.await?;
        // What was sent last says nothing about the next request any more.
        *lock(&self.inner.asked) = None;
        let compacted = Compacted { summary, messages: cut, first_kept: first_kept.0, tokens_before };
        self.events().tell(self, SessionCompact(compacted.clone())).await;
        Ok(compacted)
    }

    async fn offer(&self, event: SessionBeforeCompact) -> BeforeCompactReply {
        let mut reply = BeforeCompactReply::Continue;
        let (_, faults) = self
            .events()
            .ask(self, event, |_, said| {
                if matches!(said, BeforeCompactReply::Continue) {
                    return std::ops::ControlFlow::Continue(());
                }
                reply = said;
                std::ops::ControlFlow::Break(())
            })
            .await;
        self.events().report(&faults);
        reply
    }

    /// Asks the model for a summary: first on the session's own prefix, and should it call a tool or say nothing, once more
    /// without it. What is too long for the window is asked about in shorter forms, of the first `cut` messages alone.
    pub(crate) async fn summarise(
        &self,
        bench: &mut Bench,
        messages: &[AgentMessage],
        cut: usize,
        request: &str,
        purpose: &str,
        first: Form,
    ) -> Result<String, String> {
        let choice = self.choice()?;
        self.look_if_needed(bench).await;
        let id = MessageId::from("summary-request");
        let asked = AgentMessage::new(id.clone(), Body::User { content: vec![Part::text(request)] });
        let alone = |messages: Vec<AgentMessage>, now| Snapshot {
            messages,
            fresh: Some(id.clone()),
            ..Snapshot::empty(now)
        };
        let mut form = Some(first);
        let mut why = String::new();
        while let Some(now) = form {
            let with_request =
                |messages: &[AgentMessage]| messages.iter().cloned().chain([asked.clone()]).collect();
            let snapshot = match now {
                Form::OnPrefix => self.snapshot(bench, &choice, Some(id.clone()), with_request(messages)),
                Form::Alone => alone(with_request(messages), self.now()),
                Form::Short(most) => {
                    alone(with_request(&short::shortened(&messages[..cut], most)), self.now())
                }
            };
            // By itself it needs no layout's own tools: what cannot be called is not called.
            let layout = if now == Form::OnPrefix { choice.layout } else { LayoutName::Inline };
            let choice = Choice { layout, ..choice.clone() };
            let answered = self.ask_aside(bench, &choice, &snapshot, purpose).await;
            let failed = match answered.and_then(|answer| usable(&answer).map_err(Aside::Failed)) {
                Ok(text) => return Ok(text),
                Err(failed) => failed,
            };
            form = now.next(&failed);
            let (Aside::TooLong(reason) | Aside::Failed(reason)) = failed;
            why = reason;
        }
        Err(format!("the summary failed ({why}); nothing has changed"))
    }

    /// A request that is not part of the conversation. It is billed all the same.
    async fn ask_aside(
        &self,
        bench: &mut Bench,
        choice: &Choice,
        snapshot: &Snapshot,
        purpose: &str,
    ) -> Result<Answer, Aside> {
        let client = choice.client.clone().ok_or_else(|| Aside::Failed("there is no client".into()))?;
        let assembled = self.assemble(bench, choice, snapshot).map_err(|stop| match stop {
            Stop::TooLong { message } | Stop::Error { message } => Aside::TooLong(message),
            other => Aside::Failed(format!("{other:?}")),
        })?;
        let no_room = |left_out: &LeftOut| {
            left_out.key.starts_with("message:") && left_out.reason.starts_with("no room")
        };
        if assembled.prompt.left_out.iter().any(no_room) {
            // A summary of what the model was not shown would be made up.
            return Err(Aside::TooLong("the conversation does not fit the window".into()));
        }
        let forms = TextForms::new(&self.inner.setup.texts);
        let started = self.now();
        let question = Question {
            prompt: &assembled.prompt,
            wire: &choice.target.wire,
            provider: &choice.target.provider,
            forms: &forms,
            now_ms: started.as_millisecond(),
        };
        let mut first = None;
        let clock = &self.inner.setup.clock;
        let mut sink = |_| first = first.or_else(|| Some(clock()));
        let answer = client.ask(&question, &mut sink).await.map_err(|error| match error.failure {
            Failure::ContextTooLong | Failure::TooLarge => Aside::TooLong(error.to_string()),
            _ => Aside::Failed(error.to_string()),
        })?;
        let began = first.unwrap_or(started);
        let form = forms.sent(&bench.memo, &choice.target);
        let sent = form.as_ref().map_or((&assembled.prompt, &assembled.measured), |form| (&form.0, &form.1));
        let times = Times { sent: started, began };
        let on = if snapshot.tools.is_empty() { On::Nothing } else { On::Conversation };
        let loss = self.bill(purpose, choice, (sent, on), None, answer.usage.as_ref(), times);
        self.tell_loss(None, loss).await;
        Ok(answer)
    }

    /// The summary with the files that were read and changed so far, over the whole branch: earlier summaries included.
    fn with_files(&self, summary: &str, before: &[AgentMessage]) -> (String, serde_json::Value) {
        let path = lock(&self.inner.conversation).path().to_owned();
        let leaf = lock(&self.inner.conversation).leaf().cloned();
        let session = Session::open(&path).ok();
        let stored =
            session.as_ref().and_then(|session| session.path_to(leaf.as_deref()).ok()).unwrap_or_default();
        let stored = stored.iter().filter_map(|entry| match &entry.record {
            Record::Message(message) => Some(&**message),
            _ => None,
        });
        let (mut read, mut changed) = (BTreeSet::new(), BTreeSet::new());
        for message in stored.chain(before) {
            note_files(message, &mut read, &mut changed);
        }
        read.retain(|path| !changed.contains(path));
        let phrases = &self.inner.setup.texts.phrases.agent;
        let list = |paths: &BTreeSet<String>| paths.iter().cloned().collect::<Vec<_>>().join(", ");
        let mut text = summary.trim().to_owned();
        for (phrase, paths) in [(&phrases.files_read, &read), (&phrases.files_changed, &changed)] {
            if !paths.is_empty() {
                text.push_str(&format!("\n\n{}", fill(phrase, &[("files", &list(paths))])));
            }
        }
        (text, json!({"read": read, "changed": changed}))
    }
}

/// What the model is asked for.
fn request(texts: &Texts, instructions: Option<&str>) -> String {
    let more = instructions.map(str::trim).filter(|more| !more.is_empty());
    let more = more.map(|more| fill(&texts.phrases.agent.summary_instructions, &[("instructions", more)]));
    format!("{}{}", texts.compaction, more.map_or_else(String::new, |more| format!("\n\n{more}")))
}

/// The text of an answer that is a summary.
fn usable(answer: &Answer) -> Result<String, String> {
    let text = answer.text().trim().to_owned();
    match (&answer.error, &answer.stop) {
        (Some(error), _) => Err(error.to_string()),
        _ if !answer.calls().is_empty() => Err("the model called a tool instead".into()),
        _ if text.is_empty() => Err("it was empty".into()),
        (None, Some(StopReason::End | StopReason::StopSequence)) => Ok(text),
        (None, stop) => Err(format!("it ended with {}", stop.as_ref().map_or("nothing", StopReason::word))),
    }
}

/// A message's size, near enough to cut by.
pub(crate) fn tokens(message: &AgentMessage, bench: &Bench) -> usize {
    let part = |part: &Part| match part {
        Part::Text { text } | Part::Reasoning { text, .. } => bench.memo.counter.count(text),
        Part::Image(image) => image.tokens(),
        Part::ToolCall(call) => call.arguments.as_str().len() / 4,
    };
    match &*message.body {
        Body::User { content }
        | Body::Assistant { content, .. }
        | Body::ToolResult { content, .. }
        | Body::Custom { content, .. } => content.iter().map(part).sum(),
        Body::BashExecution { output, .. } => bench.memo.counter.count(output),
        Body::CompactionSummary { summary } | Body::BranchSummary { summary } => {
            bench.memo.counter.count(summary)
        }
    }
}

/// The files that a message's calls name.
fn note_files(message: &AgentMessage, read: &mut BTreeSet<String>, changed: &mut BTreeSet<String>) {
    let Body::Assistant { content, .. } = &*message.body else { return };
    for part in content {
        let Part::ToolCall(call) = part else { continue };
        let path = call.arguments.value()["path"].as_str().map(str::to_owned);
        match &*call.name {
            "read" => read.extend(path),
            "write" | "edit" => changed.extend(path),
            _ => {}
        }
    }
}
