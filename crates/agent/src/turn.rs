//! One request and its answer.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hardpan_context::{
    AssembleError, Assembled, Breakdown, Memo, Snapshot, Target, Texts, assemble, without_images,
    without_tools,
};
use hardpan_prompt::validate::validate;
use hardpan_prompt::{AgentMessage, Body, Kind, Measured, MessageId, Prompt};
use hardpan_providers::{
    Answer, AnswerCall, Client, Event, Failure, Forms, ProviderError, Question, StopReason, Usage,
};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, AgentError, Choice, lock};
use crate::bill::Times;
use crate::books::On;
use crate::conversation::Conversation;
use crate::events::{BeforeProviderRequest, Context, Delta, MessageStart, MessageUpdate, Note, Stop};
use crate::run::{Bench, unless_stopped};
use crate::spending::Spent;

/// A streaming answer is stored this often while it comes: what a crash may lose of it.
const SAVE_EVERY: Duration = Duration::from_millis(400);

/// An answer that is stored, and what to do next.
pub struct Answered {
    pub message: AgentMessage,
    pub calls: Vec<AnswerCall>,
    /// Why the model stopped, where it does not wait for its tools; none if it is to be asked again as it is.
    pub stop: Option<Stop>,
}

/// The last request as it was sent, for whoever wants to see what it held.
pub struct Asked {
    pub assembled: Assembled,
    pub snapshot: Snapshot,
    pub target: Target,
    pub memo: Arc<Memo>,
    pub spent: Option<Spent>,
    /// What was sent in place of the prompt, where the model takes no tools or no images.
    pub form: Option<(Prompt, Measured)>,
}

impl Asked {
    pub fn breakdown(&self) -> Breakdown {
        Breakdown::of(&self.assembled, &self.snapshot, &self.target, &self.memo)
    }

    /// The prompt as it was sent, and its tokens.
    pub fn sent(&self) -> (&Prompt, &Measured) {
        match &self.form {
            Some((prompt, measured)) => (prompt, measured),
            None => (&self.assembled.prompt, &self.assembled.measured),
        }
    }
}

/// A prompt's other forms, with the texts in use. It remembers the last one that was asked for: that one was sent.
pub(crate) struct TextForms<'a> {
    texts: &'a Texts,
    sent: Mutex<Option<Prompt>>,
}

impl<'a> TextForms<'a> {
    pub fn new(texts: &'a Texts) -> Self {
        TextForms { texts, sent: Mutex::default() }
    }

    /// What was sent, if it was another form, with its tokens.
    pub fn sent(&self, memo: &Memo, target: &Target) -> Option<(Prompt, Measured)> {
        let prompt = lock(&self.sent).take()?;
        let measured = memo.counter.measure(&prompt).scaled(&target.factor);
        Some((prompt, measured))
    }
}

impl Forms for TextForms<'_> {
    fn without_tools(&self, prompt: &Prompt) -> Prompt {
        let form = without_tools(prompt, self.texts);
        *lock(&self.sent) = Some(form.clone());
        form
    }
    fn without_images(&self, prompt: &Prompt) -> Prompt {
        let form = without_images(prompt, self.texts);
        *lock(&self.sent) = Some(form.clone());
        form
    }
}

/// An answer that is coming.
struct Coming {
    message: AgentMessage,
    answer: Answer,
    /// What came since the last piece was stored.
    unsaved: Answer,
    first: Timestamp,
}

impl Agent {
    /// Makes the next request and takes in its answer.
    pub(crate) async fn ask(
        &self,
        bench: &mut Bench,
        fresh: Option<MessageId>,
        token: &CancellationToken,
    ) -> Result<Result<Answered, Stop>, AgentError> {
        let choice = match self.choice() {
            Ok(choice) => choice,
            Err(message) => return Ok(Err(Stop::Error { message })),
        };
        let Some(client) = choice.client.clone() else { return Ok(Err(Stop::Aborted)) };
        let messages = match unless_stopped(token, self.context()).await {
            Ok(messages) => messages,
            Err(stop) => return Ok(Err(stop)),
        };
        let mut snapshot = self.snapshot(bench, &choice, fresh, messages);
        self.begin_tiers(bench, &choice, &mut snapshot).await;
        let assembled = match self.assemble(bench, &choice, &snapshot) {
            Ok(assembled) => assembled,
            Err(stop) => return Ok(Err(stop)),
        };
        if self.events().is_wanted::<BeforeProviderRequest>() {
            let event = BeforeProviderRequest {
                provider: choice.target.provider.clone(),
                model: choice.target.model.id.clone(),
                layout: choice.layout.word(),
                tokens: assembled.measured.total(),
                prompt: Arc::new(assembled.prompt.clone()),
            };
            self.events().tell(self, event).await;
        }
        let forms = TextForms::new(&self.inner.setup.texts);
        let heard = self.listen(&client, &choice, &assembled, &forms, token).await;
        let usage = heard.coming.as_ref().and_then(|coming| coming.answer.usage.clone());
        let spent = usage.as_ref().map(|usage| Spent::of(usage, &choice.target));
        let target = choice.target.clone();
        let memo = bench.memo.clone();
        if let Some(usage) = &usage {
            self.inner.setup.connect.used(&target, &assembled, &bench.memo, usage);
        }
        let form = forms.sent(&memo, &target);
        let asked = Arc::new(Asked { assembled, snapshot, target, memo, spent, form });
        *lock(&self.inner.asked) = Some(asked.clone());
        self.finish(heard, &asked, &choice, usage).await
    }

    /// What is chosen now, with a client for it.
    pub(crate) fn choice(&self) -> Result<Choice, String> {
        let mut choice = lock(&self.inner.choice);
        if choice.client.is_none() {
            let session = lock(&self.inner.conversation).session.clone();
            choice.client = Some(Arc::new(self.inner.setup.connect.client(&choice.target, &session)?));
        }
        Ok(choice.clone())
    }

    /// The conversation as handlers of the context event leave it. Without handlers nothing is copied twice.
    async fn context(&self) -> Vec<AgentMessage> {
        let messages = lock(&self.inner.conversation).messages.clone();
        if !self.events().has::<Context>() {
            return messages;
        }
        let take = |event: &mut Context, reply: Option<Vec<AgentMessage>>| {
            event.messages = reply.unwrap_or_else(|| std::mem::take(&mut event.messages));
            ControlFlow::Continue(())
        };
        let (event, faults) = self.events().ask(self, Context { messages }, take).await;
        self.events().report(&faults);
        event.messages
    }

    /// Everything the next request depends on.
    pub(crate) fn snapshot(
        &self,
        bench: &Bench,
        choice: &Choice,
        fresh: Option<MessageId>,
        messages: Vec<AgentMessage>,
    ) -> Snapshot {
        let setup = &self.inner.setup;
        let mut snapshot = bench.around.clone().unwrap_or_else(|| Snapshot::empty(self.now()));
        snapshot.now = self.now();
        let conversation = lock(&self.inner.conversation);
        for item in snapshot.items.iter_mut().filter(|item| item.kind == Kind::File) {
            // The call that read or changed a file has told the model what is in it.
            let told = conversation.knowledge.of(item.name()).filter(|known| known.hash == item.body.hash());
            item.said_by = told.and_then(|known| known.message.clone()).or(item.said_by.take());
        }
        snapshot.fold |= self.is_cold(&conversation, &choice.target, snapshot.now);
        snapshot.system.whole = bench.system.clone();
        snapshot.tools = setup.tools.iter().map(|tool| tool.declaration().clone()).collect();
        snapshot.thinking = choice.thinking;
        snapshot.messages = messages;
        snapshot.fresh = fresh;
        snapshot.memory = conversation.memory.clone();
        snapshot
    }

    /// Whether the cache is lost anyway and there is garbage to drop: then a fold is free.
    fn is_cold(&self, conversation: &Conversation, target: &Target, now: Timestamp) -> bool {
        let Some((at, provider, model)) = &conversation.last else { return false };
        let other = **provider != *target.provider || **model != *target.model.id;
        let age = now.as_second() - at.as_second();
        let expired = target.wire.cache.lifetime.is_some_and(|lifetime| age >= i64::from(lifetime));
        conversation.memory.strata.account.garbage > 0 && (other || expired)
    }

    pub(crate) fn assemble(
        &self,
        bench: &mut Bench,
        choice: &Choice,
        snapshot: &Snapshot,
    ) -> Result<Assembled, Stop> {
        let target = &choice.target;
        if target.vocabulary() != bench.vocabulary {
            bench.vocabulary = target.vocabulary();
            bench.memo = Arc::new(Memo::new(bench.vocabulary));
        }
        let texts = &self.inner.setup.texts;
        let assembled = assemble(snapshot, choice.layout, target, texts, &bench.memo).map_err(|error| {
            let message = error.to_string();
            match error {
                AssembleError::TooLong { .. } => Stop::TooLong { message },
                AssembleError::Thinking { .. } => Stop::Error { message },
            }
        })?;
        let rules = hardpan_providers::rules(&target.wire, target.model.prefill);
        validate(&assembled.prompt, &rules).map_err(|violation| Stop::Error {
            message: format!("the request would be refused ({violation}); this is a fault of hardpan: please report it with the session file"),
        })?;
        Ok(assembled)
    }

    /// Sends, and takes in what comes, until it ends or the run is stopped.
    async fn listen(
        &self,
        client: &Client,
        choice: &Choice,
        assembled: &Assembled,
        forms: &TextForms<'_>,
        token: &CancellationToken,
    ) -> Heard {
        let started = self.now();
        let mut sent = started;
        let question = Question {
            prompt: &assembled.prompt,
            wire: &choice.target.wire,
            provider: &choice.target.provider,
            forms,
            now_ms: started.as_millisecond(),
        };
        let (sender, mut events) = mpsc::unbounded_channel();
        let mut sink = move |event| drop(sender.send(event));
        let mut coming = None;
        let asking = client.ask(&question, &mut sink);
        tokio::pin!(asking);
        let mut save = tokio::time::interval(SAVE_EVERY);
        save.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let end = loop {
            tokio::select! {
                biased;
                () = token.cancelled() => break End::Stopped,
                Some(event) = events.recv() => {
                    if coming.is_none() && matches!(event, Event::Footnote(_)) {
                        sent = self.now(); // what was sent before was not answered
                    }
                    self.hear(&mut coming, event, choice, assembled).await;
                }
                result = &mut asking => break match result {
                    Ok(_) => End::Over,
                    Err(error) => End::Failed(error),
                },
                _ = save.tick() => self.save_piece(&mut coming, choice),
            }
        };
        while let Ok(event) = events.try_recv() {
            if matches!(end, End::Stopped) {
                // Received before the stop: kept, but nobody is told any more.
                if let Some(coming) = &mut coming {
                    coming.answer.push(event);
                }
            } else {
                self.hear(&mut coming, event, choice, assembled).await;
            }
        }
        Heard { coming, end, sent }
    }

    /// Takes in one event of an answer.
    async fn hear(&self, coming: &mut Option<Coming>, event: Event, choice: &Choice, assembled: &Assembled) {
        if let Event::Footnote(text) = &event {
            self.events().tell(self, Note { text: text.clone() }).await;
            if coming.is_none() {
                return;
            }
        }
        let coming = match coming {
            Some(coming) => coming,
            None => {
                // The provider has begun to answer: what the layout remembers holds from now on.
                let now = self.now();
                let message = {
                    let mut conversation = lock(&self.inner.conversation);
                    conversation.remember(assembled.memory.clone(), now);
                    conversation.message(spoken(choice, &Answer::default(), None), now)
                };
                self.events().tell(self, MessageStart { message: message.clone() }).await;
                let (answer, unsaved) = Default::default();
                coming.insert(Coming { message, answer, unsaved, first: now })
            }
        };
        let delta = delta(&event);
        match &event {
            Event::Text(_) | Event::Reasoning(_) | Event::Signature(_) | Event::RedactedReasoning(_) => {
                coming.unsaved.push(event.clone());
            }
            _ => {}
        }
        let ended = if let Event::CallEnd { index } = event { Some(index) } else { None };
        coming.answer.push(event);
        // A call is stored once it is whole: half of one is nothing that could be run or answered.
        if let Some(call) = ended.and_then(|index| coming.answer.calls().into_iter().nth(index)) {
            let (id, name) = (call.call.id.to_string(), call.call.name.to_string());
            let index = coming.unsaved.calls().len();
            coming.unsaved.extend([
                Event::CallStart { index, id, name },
                Event::CallDelta { index, json: call.raw },
                Event::CallEnd { index },
            ]);
        }
        if let Some(delta) = delta {
            let id = coming.message.id.clone();
            self.events().tell(self, MessageUpdate { id, delta }).await;
        }
    }

    fn save_piece(&self, coming: &mut Option<Coming>, choice: &Choice) {
        let Some(coming) = coming else { return };
        let parts = std::mem::take(&mut coming.unsaved).parts();
        if !parts.is_empty() {
            let maker = (choice.target.provider.as_str(), choice.target.model.id.as_str());
            let now = self.now();
            lock(&self.inner.conversation).partial(&coming.message.id, parts, maker, now);
        }
    }

    /// Stores what was said and what it cost.
    async fn finish(
        &self,
        Heard { coming, end, sent }: Heard,
        asked: &Asked,
        choice: &Choice,
        usage: Option<Usage>,
    ) -> Result<Result<Answered, Stop>, AgentError> {
        let Some(Coming { message, answer, first, .. }) = coming else {
            return Ok(Err(match end {
                End::Stopped => Stop::Aborted,
                End::Failed(error) if error.failure == Failure::ContextTooLong => {
                    Stop::TooLong { message: error.to_string() }
                }
                End::Failed(error) => Stop::Error { message: error.to_string() },
                End::Over => Stop::Error { message: "the provider said nothing".into() },
            }));
        };
        let (reason, stop) = why(&answer, &end);
        let message = AgentMessage { body: spoken(choice, &answer, Some(&reason)).into(), ..message };
        let is_complete = !matches!(stop, Some(Stop::Aborted | Stop::Error { .. }));
        let saved = lock(&self.inner.conversation).add(message.clone(), None);
        // An answer that came whole without a report of its usage is billed by our own count.
        let loss = (usage.is_some() || is_complete).then(|| {
            let times = Times { sent, began: first };
            self.bill(
                "turn",
                choice,
                (asked.sent(), On::Conversation),
                Some(&message.id),
                usage.as_ref(),
                times,
            )
        });
        if is_complete {
            self.count_response(asked);
        }
        saved.await?;
        self.events().tell(self, crate::events::MessageEnd { message: message.clone() }).await;
        self.tell_loss(Some(&message.id), loss.flatten()).await;
        // The calls of an answer that broke off are not answered for: they are left out of what is sent.
        let calls = if is_complete { answer.calls() } else { Vec::new() };
        Ok(Ok(Answered { message, calls, stop }))
    }
}

/// What was heard of an answer.
struct Heard {
    coming: Option<Coming>,
    end: End,
    /// When the request was sent that was answered.
    sent: Timestamp,
}

/// How listening ended.
enum End {
    Over,
    Stopped,
    Failed(ProviderError),
}

/// The stored word for how an answer ended, and what follows from it.
fn why(answer: &Answer, end: &End) -> (String, Option<Stop>) {
    if matches!(end, End::Stopped) {
        return ("aborted".into(), Some(Stop::Aborted));
    }
    if let Some(error) = &answer.error {
        return ("error".into(), Some(Stop::Error { message: error.to_string() }));
    }
    if let End::Failed(error) = end {
        return ("error".into(), Some(Stop::Error { message: error.to_string() }));
    }
    let reason = answer.stop.clone().unwrap_or(StopReason::Cut);
    let stop = match &reason {
        StopReason::End | StopReason::StopSequence | StopReason::ToolUse => Some(Stop::Done),
        StopReason::Length => Some(Stop::Length),
        StopReason::Refusal => Some(Stop::Refused),
        StopReason::Pause => None,
        StopReason::Other(word) => Some(Stop::Error { message: format!("the answer ended with \"{word}\", which is not known") }),
        StopReason::Cut => Some(Stop::Error {
            message: "the connection broke off in the middle of the answer; what came is kept. Say \"go on\" to continue".into(),
        }),
    };
    (reason.word().to_owned(), stop)
}

fn spoken(choice: &Choice, answer: &Answer, reason: Option<&str>) -> Body {
    Body::Assistant {
        content: answer.parts(),
        provider: Some(choice.target.provider.as_str().into()),
        model: Some(choice.target.model.id.as_str().into()),
        stop_reason: reason.map(Into::into),
    }
}

fn delta(event: &Event) -> Option<Delta> {
    Some(match event {
        Event::Text(text) => Delta::Text { text: text.clone() },
        Event::Reasoning(text) => Delta::Reasoning { text: text.clone() },
        Event::CallStart { index, id, name } => {
            Delta::Call { index: *index, call_id: id.clone(), name: name.clone() }
        }
        Event::CallDelta { index, json } => Delta::Arguments { index: *index, json: json.clone() },
        _ => return None,
    })
}
