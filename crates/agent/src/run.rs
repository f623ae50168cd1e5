//! A run: from an accepted prompt to the moment when nothing more happens by itself.

use std::ops::ControlFlow;
use std::sync::Arc;

use hardpan_context::{Input as LayoutInput, LayoutName, Memo, Snapshot};
use hardpan_prompt::{AgentMessage, Body, MessageId, Text, Vocabulary};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, AgentError, lock};
use crate::books::Settle;
use crate::compact::{WhyCompact, tokens};
use crate::events::{
    AgentEnd, AgentStart, BeforeAgentStart, CustomMessage, MessageEnd, MessageStart, Note, QueueUpdate, Stop,
    TurnEnd, TurnStart,
};
use crate::guard::Guard;
use crate::queue::{Accepted, Delivery};
use crate::setup::{Look, Occasion};
use crate::turn::Answered;

/// What a run works with, kept from run to run.
pub struct Bench {
    /// What was rendered and counted.
    pub memo: Arc<Memo>,
    pub vocabulary: Vocabulary,
    /// What is around, as the run found it.
    pub around: Option<Snapshot>,
    /// The system prompt of this run, where an extension changed it.
    pub system: Option<Text>,
    pub guard: Guard,
}

impl Bench {
    pub fn new(vocabulary: Vocabulary) -> Self {
        let memo = Arc::new(Memo::new(vocabulary));
        Bench { memo, vocabulary, around: None, system: None, guard: Guard::default() }
    }
}

/// The messages after one; all but the summary where a compaction took it away.
fn since(messages: &[AgentMessage], last: Option<&MessageId>) -> Vec<AgentMessage> {
    let at = messages.iter().position(|message| Some(&message.id) == last);
    let rest = messages.iter().skip(at.map_or(0, |at| at + 1));
    rest.filter(|message| !matches!(*message.body, Body::CompactionSummary { .. })).cloned().collect()
}

/// Waits for a future unless the run is stopped.
pub(crate) async fn unless_stopped<T>(
    token: &CancellationToken,
    future: impl Future<Output = T>,
) -> Result<T, Stop> {
    tokio::select! {
        biased;
        () = token.cancelled() => Err(Stop::Aborted),
        value = future => Ok(value),
    }
}

impl Agent {
    /// Works on a prompt to its end, and on what is said while the end is told: by the handlers of `agent_end`, say.
    pub(crate) async fn run(
        &self,
        bench: &mut Bench,
        mut accepted: Accepted,
        mut token: CancellationToken,
    ) -> Result<Stop, AgentError> {
        loop {
            let ran = self.run_once(bench, accepted, token).await;
            let mut queues = lock(&self.inner.queues);
            if matches!(ran, Ok(Stop::Aborted)) {
                queues.after_abort();
            }
            let Some(next) = queues.after_end() else { return ran };
            drop(queues);
            (accepted, token) = (next, self.fresh_token());
        }
    }

    async fn run_once(
        &self,
        bench: &mut Bench,
        accepted: Accepted,
        token: CancellationToken,
    ) -> Result<Stop, AgentError> {
        // Whatever else has begun and ended meanwhile: this is what an abort is for.
        *lock(&self.inner.abort) = token.clone();
        lock(&self.inner.queues).open();
        let before = lock(&self.inner.conversation).messages.last().map(|message| message.id.clone());
        bench.guard.reset();
        let result = self.work(bench, accepted, &token).await;
        let result = self.store_late().await.and(result);
        lock(&self.inner.queues).close();
        let (stop, error) = match result {
            Ok(stop) => (stop, None),
            Err(error) => (Stop::Error { message: error.to_string() }, Some(error)),
        };
        lock(&self.inner.conversation).settle(Settle::Run, self.now());
        if self.events().is_wanted::<AgentEnd>() {
            let messages = since(&lock(&self.inner.conversation).messages, before.as_ref());
            let (token_usage, queued) = (self.token_usage(), self.waiting());
            self.events().tell(self, AgentEnd { messages, stop: stop.clone(), token_usage, queued }).await;
        }
        error.map_or(Ok(stop), Err)
    }

    async fn work(
        &self,
        bench: &mut Bench,
        accepted: Accepted,
        token: &CancellationToken,
    ) -> Result<Stop, AgentError> {
        // What was typed is stored first of all: whatever comes next, it is not lost.
        let mut fresh = Some(self.say(Body::User { content: accepted.parts() }).await?);
        self.keep_thinking();
        let extension = match self.prepare(bench, &accepted, token).await {
            Ok(messages) => messages,
            Err(stop) => return Ok(stop),
        };
        let next_turn = std::mem::take(&mut *lock(&self.inner.next_turn));
        for CustomMessage { custom_type, content, display } in next_turn.into_iter().chain(extension) {
            self.say(Body::Custom { custom_type, content, display }).await?;
        }
        self.events().tell(self, AgentStart {}).await;
        // A compaction that failed is not tried with every turn: each try is paid for.
        let mut may_compact = true;
        for turn in 1..=self.inner.setup.settings.most_turns {
            self.events().tell(self, TurnStart { turn }).await;
            self.store_late().await?;
            if may_compact && self.is_nearly_full(bench) {
                may_compact = self.make_room(bench, WhyCompact::NearlyFull, token).await;
            }
            let mut asked = self.ask(bench, fresh.clone(), token).await?;
            if let Err(Stop::TooLong { .. }) = asked
                && self.make_room(bench, WhyCompact::TooLong, token).await
            {
                asked = self.ask(bench, fresh.clone(), token).await?;
            }
            let Answered { message, calls, stop } = match asked {
                Ok(answered) => answered,
                Err(stop) => return Ok(stop),
            };
            let (tool_results, looping) = self.answer_calls(bench, &calls, token).await?;
            let none = calls.is_empty();
            if self.may_have_changed(&calls)
                && let Ok(Ok(around)) =
                    unless_stopped(token, self.look(Occasion::Changed, &accepted.text)).await
            {
                bench.around = Some(around);
            }
            self.events().tell(self, TurnEnd { turn, message, tool_results }).await;
            if let Some(stop @ (Stop::Aborted | Stop::Error { .. })) = stop {
                return Ok(stop);
            }
            if token.is_cancelled() {
                return Ok(Stop::Aborted);
            }
            if let Some(tool) = looping {
                return Ok(Stop::Looping { tool });
            }
            let mut due = self.due(Delivery::Steer);
            if due.is_empty() && none {
                match stop {
                    Some(stop) if stop != Stop::Done => return Ok(stop),
                    Some(_) => due = self.due(Delivery::FollowUp),
                    None => continue,
                }
                if due.is_empty() {
                    // Something may have come in since: then the run is not over.
                    if lock(&self.inner.queues).close_if_empty() {
                        return Ok(Stop::Done);
                    }
                    due = self.due(Delivery::Steer);
                    if due.is_empty() {
                        due = self.due(Delivery::FollowUp);
                    }
                }
            }
            fresh = self.deliver(bench, due).await?;
        }
        let most = self.inner.setup.settings.most_turns;
        Ok(Stop::Error { message: format!("the run took {most} turns; say \"go on\" to continue") })
    }

    /// Whether the last request, with what was said since, comes near the end of the window.
    fn is_nearly_full(&self, bench: &Bench) -> bool {
        let share = self.inner.setup.settings.compact_at;
        let asked = lock(&self.inner.asked);
        let Some(asked) = asked.as_ref().filter(|_| share > 0.0) else { return false };
        let input =
            asked.spent.map_or(0, |spent| spent.prompt()).max(asked.assembled.measured.total() as u64);
        let sent = asked.snapshot.messages.last().map(|message| &message.id);
        let conversation = lock(&self.inner.conversation);
        let at = conversation.messages.iter().rposition(|message| Some(&message.id) == sent);
        let new = at.map_or(&[][..], |at| &conversation.messages[at + 1..]);
        let added: usize = new.iter().map(|message| asked.target.factor.scale(tokens(message, bench))).sum();
        (input + added as u64) as f64 > share * f64::from(asked.target.max_input_tokens())
    }

    /// Compacts, and says so where it cannot be done. The run goes on either way: what does not fit is left out.
    async fn make_room(&self, bench: &mut Bench, why: WhyCompact, token: &CancellationToken) -> bool {
        match self.compact_now(bench, None, why, token).await {
            Ok(compacted) => {
                let text =
                    format!("{} messages were compacted into a summary; /tree goes back", compacted.messages);
                self.events().tell(self, Note { text }).await;
                true
            }
            Err(error) => {
                self.events().tell(self, Note { text: error.to_string() }).await;
                false
            }
        }
    }

    /// Delivers what was queued. The first of its messages is what was just said.
    async fn deliver(&self, bench: &mut Bench, due: Vec<Accepted>) -> Result<Option<MessageId>, AgentError> {
        let mut first = None;
        for accepted in &due {
            let id = self.say(Body::User { content: accepted.parts() }).await?;
            first = first.or(Some(id));
        }
        if first.is_some() {
            bench.guard.reset();
            self.events().tell(self, QueueUpdate(self.waiting())).await;
        }
        Ok(first)
    }

    /// Puts a message into the conversation. It is acknowledged when it is stored.
    pub(crate) async fn say(&self, body: Body) -> Result<MessageId, AgentError> {
        let message = lock(&self.inner.conversation).message(body, self.now());
        let id = message.id.clone();
        self.events().tell(self, MessageStart { message: message.clone() }).await;
        self.store(message, None).await?;
        Ok(id)
    }

    /// Stores a message, then says so.
    pub(crate) async fn store(
        &self,
        message: AgentMessage,
        details: Option<serde_json::Value>,
    ) -> Result<(), AgentError> {
        let saved = lock(&self.inner.conversation).add(message.clone(), details);
        saved.await?;
        self.events().tell(self, MessageEnd { message }).await;
        Ok(())
    }

    /// Looks around, and lets extensions add to the prompt: once per run.
    async fn prepare(
        &self,
        bench: &mut Bench,
        accepted: &Accepted,
        token: &CancellationToken,
    ) -> Result<Vec<CustomMessage>, Stop> {
        let around = unless_stopped(token, self.look(Occasion::Prompt, &accepted.text)).await?;
        let around = around.map_err(|_| Stop::Error {
            message: "looking at the folder failed inside; this is a fault of hardpan: please report it"
                .into(),
        })?;
        bench.around = Some(around);
        bench.system = None;
        if !self.events().has::<BeforeAgentStart>() {
            return Ok(Vec::new());
        }
        let base = self.system_prompt(bench);
        let event = BeforeAgentStart {
            prompt: accepted.text.clone(),
            images: accepted.images.clone(),
            system_prompt: base.clone(),
        };
        let mut messages = Vec::new();
        let asking = self.events().ask(self, event, |event, reply| {
            messages.extend(reply.message);
            event.system_prompt =
                reply.system_prompt.unwrap_or_else(|| std::mem::take(&mut event.system_prompt));
            ControlFlow::Continue(())
        });
        let (event, faults) = unless_stopped(token, asking).await?;
        self.events().report(&faults);
        bench.system = (event.system_prompt != base).then(|| Text::new(event.system_prompt));
        Ok(messages)
    }

    /// Looks around on a thread of its own.
    fn look(&self, occasion: Occasion, prompt: &str) -> tokio::task::JoinHandle<Snapshot> {
        let surroundings = self.inner.setup.surroundings.clone();
        let target = self.target();
        let (window, factor) = (target.model.context as usize, target.model.token_factor);
        let (now, prompt, known) = (self.now(), prompt.to_owned(), self.known_files());
        let look = Look { now, occasion, prompt, window, factor, known };
        tokio::task::spawn_blocking(move || surroundings.observe(&look))
    }

    /// The files that the model knows. Only `strata` keeps them true; elsewhere they are what the seeds say: a result.
    fn known_files(&self) -> Vec<(String, bool)> {
        if self.layout() != LayoutName::Strata {
            return Vec::new();
        }
        let conversation = lock(&self.inner.conversation);
        conversation.knowledge.files().map(|(path, known)| (path.clone(), known.changed)).collect()
    }

    /// Looks around unless a run has done so.
    pub(crate) async fn look_if_needed(&self, bench: &mut Bench) {
        if bench.around.is_none() {
            bench.around = self.look(Occasion::Prompt, "").await.ok();
        }
    }

    /// The system prompt as the recipe has it.
    fn system_prompt(&self, bench: &Bench) -> String {
        let choice = lock(&self.inner.choice).clone();
        let snapshot = self.snapshot(bench, &choice, None, Vec::new());
        let texts: &Arc<_> = &self.inner.setup.texts;
        let input = LayoutInput { snapshot: &snapshot, target: &choice.target, texts, memo: &bench.memo };
        let segments = hardpan_context::system_prompt(&input, choice.layout);
        segments.iter().map(|segment| segment.text.as_str()).collect()
    }
}
