//! Compaction: a summary in place of old messages.
//!
//! The request for the summary is the session's next request with one more message: same tools,
//! same system prompt, same conversation, so that all of it is read from the cache. Nothing is
//! removed from the session file.

mod cut; // where a conversation is cut
mod forecast; // CompactionForecast: what a compaction costs and saves
mod truncate; // a conversation that is too long to be summarised whole

use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_context::{LayoutName, PromptTexts, Snapshot, fill_template};
use hardpan_prompt::{AgentMessage, MessageBody, MessageId, MessagePart, Omission, Text, TokenCounter};
use hardpan_providers::{Answer, Client, ClientRequest, StopReason};
use hardpan_session::{Entry, Record};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::agent::{Agent, lock};
use crate::billing::RequestTimes;
use crate::conversation::ConversationError;
use crate::error::{AgentError, CompactError, SideRequestError, SummaryError};
use crate::events::{BeforeCompactReply, SessionBeforeCompact, SessionCompact, SessionCompactFailed};
use crate::last_request::TextFallbacks;
use crate::model_selection::ModelSelection;
use crate::run::{RunState, unless_aborted};
use crate::run_status::Activity;
use crate::session_ledger::CacheBase;
use crate::stored_knowledge::{files_read_and_changed, observations_of};
use truncate::MAX_CHARS_PER_TEXT;

pub use forecast::{CompactionForecast, CompactionPrice};

/// The result of a compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CompactionResult {
    /// The summary that replaces the old messages, with the lists of files they read and changed.
    pub summary: String,
    /// Number of messages that it replaces.
    pub messages: usize,
    /// Id of the first message that was kept.
    pub first_kept: Arc<str>,
    /// Estimated tokens of the conversation before the compaction.
    pub tokens_before: u64,
    /// Why it was compacted.
    #[serde(skip)]
    pub why: CompactReason,
    /// Whether a handler wrote the summary.
    #[serde(skip)]
    pub from_handler: bool,
}

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactReason {
    /// The user asked for it.
    #[serde(rename = "asked")]
    Requested,
    /// The last request filled more of the window than `compact_at` allows.
    NearlyFull,
    /// The provider refused the request as too long.
    TooLong,
}

/// In which form the conversation is sent to be summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SummaryForm {
    /// As the session's next request, which the cache already contains.
    OnPrefix,
    /// The whole conversation without tools, system prompt and items.
    Standalone,
    /// Only the messages to be summarised, with at most this many characters of each text.
    Truncated(usize),
}

impl SummaryForm {
    /// The form to try next after a failure; `None` if there is none left.
    fn fallback_after(self, failed: &SideRequestError) -> Option<SummaryForm> {
        match (self, failed.is_too_long()) {
            (SummaryForm::OnPrefix, false) => Some(SummaryForm::Standalone),
            (SummaryForm::OnPrefix | SummaryForm::Standalone, true) => {
                Some(SummaryForm::Truncated(MAX_CHARS_PER_TEXT[0]))
            }
            (SummaryForm::Truncated(max_chars), true) => MAX_CHARS_PER_TEXT
                .into_iter()
                .find(|shorter| *shorter < max_chars)
                .map(SummaryForm::Truncated),
            (SummaryForm::Standalone | SummaryForm::Truncated(_), false) => None,
        }
    }
}

impl Agent {
    /// Replaces old messages by a summary. `instructions` tell the model what matters. If the
    /// summary fails, nothing changes.
    pub async fn compact(&self, instructions: Option<String>) -> Result<CompactionResult, AgentError> {
        let mut run_state = self.try_begin(Activity::Compacting)?;
        let token = self.new_abort_token();
        let compacting =
            Box::pin(self.compact_now(&mut run_state, instructions, CompactReason::Requested, &token));
        let compacted = compacting.instrument(tracing::info_span!("compaction")).await;
        drop(run_state);
        self.flush_shell_messages_if_idle().await?;
        compacted
    }

    /// Compacts the conversation, and tells handlers how that ended.
    pub(crate) async fn compact_now(
        &self,
        run_state: &mut RunState,
        instructions: Option<String>,
        why: CompactReason,
        token: &CancellationToken,
    ) -> Result<CompactionResult, AgentError> {
        let mut from_handler = false;
        let compacting = self.try_compact(run_state, instructions, why, token, &mut from_handler);
        let compacted = compacting.await;
        match &compacted {
            Ok(result) => {
                let event = SessionCompact(result.clone());
                self.events().emit(self, event).await;
            }
            Err(error) => {
                let is_aborted = matches!(
                    error,
                    AgentError::Compact(CompactError::Aborted | CompactError::Cancelled { .. })
                );
                let error = (!is_aborted).then(|| error.to_string());
                let event = SessionCompactFailed { why, error, is_aborted, from_handler };
                self.events().tell_handlers(self, event).await;
            }
        }
        compacted
    }

    /// `from_handler` is set once a handler has given the summary.
    async fn try_compact(
        &self,
        run_state: &mut RunState,
        instructions: Option<String>,
        why: CompactReason,
        token: &CancellationToken,
        from_handler: &mut bool,
    ) -> Result<CompactionResult, AgentError> {
        let messages = self.messages();
        let count = |message: &AgentMessage| estimate_tokens(message, &run_state.render_cache.counter);
        let sizes: Vec<usize> = messages.iter().map(count).collect();
        let tokens_before = sizes.iter().sum::<usize>() as u64;
        let cut = cut::first_kept(&messages, &sizes, cut::kept_tokens(&self.target()))
            .ok_or(CompactError::TooShort)?;
        let first_kept = messages[cut].id.clone();
        let entries = match self.events().has_handlers::<SessionBeforeCompact>() {
            true => self.branch_entries().await,
            false => Vec::new(),
        };
        let event = SessionBeforeCompact {
            why,
            instructions: instructions.clone(),
            messages: cut,
            first_kept: first_kept.clone(),
            tokens_before,
            summarized: messages[..cut].to_vec(),
            entries: Arc::new(entries),
        };
        let asking = unless_aborted(token, self.ask_compact_handlers(event)).await;
        let mut handler_details = None;
        let (mut cut, mut first_kept) = (cut, first_kept);
        let summary = match asking.map_err(|_| CompactError::Aborted)? {
            BeforeCompactReply::Cancel { reason } => return Err(CompactError::Cancelled { reason }.into()),
            BeforeCompactReply::Summary { text, .. } if text.trim().is_empty() => {
                *from_handler = true;
                return Err(CompactError::EmptySummary.into());
            }
            BeforeCompactReply::Summary { text, first_kept: kept, details } => {
                // A place that is no message's keeps what was planned.
                if let Some((at, kept)) = kept.and_then(|kept| {
                    messages
                        .iter()
                        .position(|message| message.id == kept)
                        .filter(|at| *at > 0)
                        .map(|at| (at, kept))
                }) {
                    (cut, first_kept) = (at, kept);
                }
                handler_details = details;
                *from_handler = true;
                text
            }
            BeforeCompactReply::Continue => {
                let texts = &self.inner.setup.texts;
                let request = summary_request_text(texts, instructions.as_deref());
                // The provider has just refused the full conversation as too long, so it is not
                // sent again.
                let first = if why == CompactReason::TooLong {
                    SummaryForm::Truncated(MAX_CHARS_PER_TEXT[0])
                } else {
                    SummaryForm::OnPrefix
                };
                let asking = self.request_summary(run_state, &messages, cut, &request, "compaction", first);
                unless_aborted(token, asking)
                    .await
                    .map_err(|_| CompactError::Aborted)?
                    .map_err(CompactError::from)?
            }
        };
        // The file lists are read from the stored session, so everything must be written first.
        let flushed = lock(&self.inner.conversation).flush();
        flushed.await?;
        // This flushes a second time: the summary's bill may have been appended while the first
        // flush was awaited.
        let leaf = lock(&self.inner.conversation).leaf().cloned();
        let session = match self.read_stored_session().await {
            Ok(session) => Some(session),
            Err(ConversationError::Log(error)) => return Err(error.into()),
            Err(ConversationError::Session(_)) => None,
        };
        let stored = session.as_ref().and_then(|session| session.path_to(leaf.as_deref()).ok());
        let (summary, mut details) = self.append_file_lists(&summary, stored.unwrap_or_default());
        if let Some(handler_details) = handler_details {
            details["extension"] = handler_details;
        }
        let now = self.now();
        let saved = {
            let mut conversation = lock(&self.inner.conversation);
            let record = Record::Compaction {
                summary: Text::new(summary.as_str()),
                first_kept: Some(first_kept.0.clone()),
                tokens_before: Some(tokens_before),
                details: Some(details),
            };
            conversation.record_compaction(record, Text::new(summary.as_str()), cut, now)
        };
        saved.await?;
        // The last request no longer resembles the next one.
        *lock(&self.inner.last_request) = None;
        Ok(CompactionResult {
            summary,
            messages: cut,
            first_kept: first_kept.0,
            tokens_before,
            why,
            from_handler: *from_handler,
        })
    }

    /// The files that the model has read and those that it has changed, as far as the conversation
    /// still shows it.
    pub fn known_file_lists(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let knowledge = lock(&self.inner.conversation).knowledge.clone();
        let present = knowledge.paths().flat_map(|path| knowledge.observations(path));
        files_read_and_changed(present.map(|recorded| &recorded.observation))
    }

    /// The entries of the branch as they are stored; none if the file cannot be read.
    async fn branch_entries(&self) -> Vec<Entry> {
        let Ok((session, leaf)) = self.stored_session().await else { return Vec::new() };
        let path = session.path_to(leaf.as_deref()).unwrap_or_default();
        path.into_iter().cloned().collect()
    }

    async fn ask_compact_handlers(&self, event: SessionBeforeCompact) -> BeforeCompactReply {
        let mut reply = BeforeCompactReply::Continue;
        let (_, faults) = self
            .events()
            .ask_handlers(self, event, |_, handler_reply| {
                if matches!(handler_reply, BeforeCompactReply::Continue) {
                    return std::ops::ControlFlow::Continue(());
                }
                reply = handler_reply;
                std::ops::ControlFlow::Break(())
            })
            .await;
        self.events().report_faults(&faults);
        reply
    }

    /// Asks the model for a summary: first on the session's own prefix, and if the model calls a
    /// tool or says nothing, again without it. If that is too long for the window, shorter forms of
    /// the first `cut` messages follow.
    pub(crate) async fn request_summary(
        &self,
        run_state: &mut RunState,
        messages: &[AgentMessage],
        cut: usize,
        request: &str,
        purpose: &str,
        first: SummaryForm,
    ) -> Result<String, SummaryError> {
        let (selection, client) = self.selection_with_client()?;
        self.ensure_observed(run_state).await?;
        let id = MessageId::from("summary-request");
        let request_message =
            AgentMessage::new(id.clone(), MessageBody::User { content: vec![MessagePart::text(request)] });
        let alone = |messages: Vec<AgentMessage>, now| Snapshot {
            messages,
            first_unsent: Some(id.clone()),
            stands_alone: true,
            ..Snapshot::empty(now)
        };
        let mut form = first;
        loop {
            let with_request = |messages: &[AgentMessage]| {
                messages.iter().cloned().chain([request_message.clone()]).collect()
            };
            let snapshot = match form {
                // As the session's next request would be.
                SummaryForm::OnPrefix => Snapshot {
                    ephemeral: Vec::new(), // it is for the model's next answer
                    ..self.build_snapshot(
                        run_state,
                        &selection,
                        Some(id.clone()),
                        with_request(&self.context_messages(messages.to_vec()).await.messages),
                    )?
                },
                SummaryForm::Standalone => alone(with_request(messages), self.now()),
                SummaryForm::Truncated(max_chars) => {
                    alone(with_request(&truncate::truncate_messages(&messages[..cut], max_chars)), self.now())
                }
            };
            let layout = match form {
                SummaryForm::OnPrefix => selection.layout,
                SummaryForm::Standalone | SummaryForm::Truncated(_) => LayoutName::for_single_request(),
            };
            let selection = ModelSelection { layout, ..selection.clone() };
            let answered = self.send_side_request(run_state, (&selection, &client), &snapshot, purpose).await;
            let failed = match answered.and_then(|answer| summary_text(&answer)) {
                Ok(text) => return Ok(text),
                Err(failed) => failed,
            };
            form = match form.fallback_after(&failed) {
                Some(next) => next,
                None => return Err(failed.into()),
            };
        }
    }

    /// Sends a request that is not part of the conversation, and bills it to the session.
    async fn send_side_request(
        &self,
        run_state: &mut RunState,
        (selection, client): (&ModelSelection, &Client),
        snapshot: &Snapshot,
        purpose: &str,
    ) -> Result<Answer, SideRequestError> {
        let assembled = self.assemble_request(run_state, selection, &mut snapshot.clone())?;
        if assembled.prompt.left_out.iter().any(Omission::is_message_without_room) {
            return Err(SideRequestError::DoesNotFit);
        }
        let forms = TextFallbacks::new(&self.inner.setup.texts);
        let started = self.now();
        let request = ClientRequest {
            prompt: &assembled.prompt,
            profile: &selection.target.profile,
            provider: &selection.target.provider,
            fallbacks: &forms,
            previous_answer: None,
            now_ms: started.as_millisecond(),
        };
        let mut stream = client.send(request);
        let mut began = None;
        while let Some(event) = stream.next_event().await {
            event?;
            began = began.or_else(|| Some(self.now()));
        }
        let (answer, began) = (stream.into_answer(), began.unwrap_or(started));
        let form = forms.take_sent(&run_state.render_cache, &selection.target);
        let sent = form.as_ref().map_or((&assembled.prompt, &assembled.measured), |form| (&form.0, &form.1));
        let times = RequestTimes { sent: started, began };
        let base = if snapshot.stands_alone { CacheBase::Standalone } else { CacheBase::Conversation };
        let loss = self.record_bill(purpose, selection, (sent, base), None, &answer, times);
        self.emit_cache_loss(None, loss).await;
        Ok(answer)
    }

    /// The summary, followed by the files that were read and changed on the whole branch, including
    /// before earlier compactions; and the same lists as data.
    fn append_file_lists(&self, summary: &str, stored: Vec<&Entry>) -> (String, serde_json::Value) {
        let knowledge = lock(&self.inner.conversation).knowledge.clone();
        let stored: Vec<_> = stored.into_iter().flat_map(observations_of).collect();
        // What the conversation still contains counts even if the session cannot be read.
        let present = knowledge.paths().flat_map(|path| knowledge.observations(path));
        let present = present.map(|recorded| &recorded.observation);
        let (read, changed) = files_read_and_changed(stored.iter().chain(present));
        let phrases = &self.inner.setup.texts.phrases.agent;
        let list = |paths: &BTreeSet<String>| paths.iter().cloned().collect::<Vec<_>>().join(", ");
        let mut text = summary.trim().to_owned();
        for (phrase, paths) in [(&phrases.files_read, &read), (&phrases.files_changed, &changed)] {
            if !paths.is_empty() {
                text.push_str(&format!("\n\n{}", fill_template(phrase, &[("files", &list(paths))])));
            }
        }
        (text, json!({"read": read, "changed": changed}))
    }
}

/// The message that asks for the summary.
fn summary_request_text(texts: &PromptTexts, instructions: Option<&str>) -> String {
    let more = instructions.map(str::trim).filter(|more| !more.is_empty());
    let more =
        more.map(|more| fill_template(&texts.phrases.agent.summary_instructions, &[("instructions", more)]));
    format!("{}{}", texts.compaction, more.map_or_else(String::new, |more| format!("\n\n{more}")))
}

/// The text of an answer if it can serve as a summary, or why it cannot.
fn summary_text(answer: &Answer) -> Result<String, SideRequestError> {
    let text = answer.text().trim().to_owned();
    match (&answer.error, &answer.stop) {
        (Some(error), _) => Err(error.clone().into()),
        _ if !answer.calls().is_empty() => Err(SideRequestError::CalledTool),
        _ if text.is_empty() => Err(SideRequestError::Empty),
        (None, Some(StopReason::End | StopReason::StopSequence)) => Ok(text),
        (None, stop) => Err(SideRequestError::Incomplete(stop.clone())),
    }
}

/// Estimated tokens of a message, good enough to decide where to cut.
pub(crate) fn estimate_tokens(message: &AgentMessage, counter: &TokenCounter) -> usize {
    let part = |part: &MessagePart| match part {
        MessagePart::Text { text } | MessagePart::Reasoning { text, .. } => counter.count(text),
        MessagePart::Image(image) => image.tokens(),
        MessagePart::ToolCall(call) => call.arguments.as_str().len() / 4,
        MessagePart::ProviderBlock(block) => block.json.as_str().len() / 4,
        MessagePart::Sources { .. } => 0,
    };
    match &*message.body {
        MessageBody::User { content }
        | MessageBody::Assistant { content, .. }
        | MessageBody::ToolResult { content, .. }
        | MessageBody::Custom { content, .. } => content.iter().map(part).sum(),
        MessageBody::BashExecution { output, .. } => counter.count(output),
        MessageBody::CompactionSummary { summary } | MessageBody::BranchSummary { summary } => {
            counter.count(summary)
        }
    }
}
