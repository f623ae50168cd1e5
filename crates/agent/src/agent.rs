//! The agent: one conversation, and whoever takes part in it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use hardpan_context::{Breakdown, LayoutName, Target};
use hardpan_prompt::{AgentMessage, Thinking};
use hardpan_providers::Client;
use hardpan_session::{LogError, Record};
use jiff::Timestamp;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::books::Settle;
use crate::conversation::Conversation;
use crate::conversation::NO_THINKING;
use crate::events::{
    CustomMessage, Events, Input, ModelSelect, QueueUpdate, SessionFork, SessionShutdown, SessionStart,
    SessionSwitch,
};
use crate::expand::Expansions;
use crate::queue::{Accepted, Delivery, Queues, Waiting};
use crate::run::{Bench, unless_stopped};
use crate::setup::Setup;
use crate::spending::TokenUsage;
use crate::turn::Asked;

/// Why something asked of an agent was not done.
#[derive(Clone, Debug, Error)]
pub enum AgentError {
    /// It works on something already.
    #[error("the agent is at work: steer it, queue a follow-up, or stop it first")]
    Busy,
    /// There is nothing to say.
    #[error("there is nothing to send: type a prompt")]
    Empty,
    /// The conversation was not compacted.
    #[error("not compacted: {reason}")]
    Compact {
        /// Why.
        reason: String,
    },
    /// A command of the person was not run.
    #[error("{reason}")]
    Bash {
        /// Why.
        reason: String,
    },
    /// The cache was not kept warm.
    #[error("not pinged: {reason}")]
    Ping {
        /// Why.
        reason: String,
    },
    /// There is no such entry, or it cannot be gone to.
    #[error("{reason}")]
    Entry {
        /// Why.
        reason: String,
    },
    /// What happened cannot be stored.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// How an agent comes to another conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switch {
    /// It is another one, or a new one.
    Other,
    /// It begins as a part of the one before.
    Fork {
        /// The entry it goes on from; none for the start.
        entry: Option<Arc<str>>,
    },
}

/// What became of an input.
#[derive(Clone, Debug, PartialEq)]
pub enum Taken {
    /// A command ran.
    Command {
        /// What it has to say.
        said: Option<String>,
    },
    /// A handler dealt with it.
    Handled,
    /// It was queued.
    Queued(Delivery),
    /// The agent worked on it, and this is why it stopped.
    Ran(crate::Stop),
}

type RunCommand = dyn Fn(String, Agent) -> BoxFuture<'static, Result<Option<String>, String>> + Send + Sync;

/// A command that a person can type: `/name args`.
#[derive(Clone)]
pub struct Command {
    /// What it does, in one line.
    pub description: String,
    /// Runs it with what follows its name; what comes back is shown.
    pub run: Arc<RunCommand>,
}

/// What is chosen now, for the next request.
#[derive(Clone)]
pub(crate) struct Choice {
    pub target: Target,
    pub layout: LayoutName,
    pub thinking: Thinking,
    pub client: Option<Arc<Client>>,
}

pub(crate) struct Inner {
    pub setup: Setup,
    pub events: Events,
    pub commands: Mutex<BTreeMap<String, Command>>,
    pub queues: Mutex<Queues>,
    /// Messages that go with the next prompt.
    pub next_turn: Mutex<Vec<CustomMessage>>,
    pub conversation: Mutex<Conversation>,
    pub choice: Mutex<Choice>,
    pub asked: Mutex<Option<Arc<Asked>>>,
    pub abort: Mutex<CancellationToken>,
    /// Ends the command that the person runs.
    pub shell_token: Mutex<CancellationToken>,
    /// What commands printed while the model was answering.
    pub late: Mutex<Vec<AgentMessage>>,
    /// Held while the agent works: one run at a time.
    pub bench: tokio::sync::Mutex<Bench>,
}

/// An agent. Copies are the same agent.
#[derive(Clone)]
pub struct Agent {
    pub(crate) inner: Arc<Inner>,
}

/// A lock is never held while something can break, and what it guards is never half-changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Agent {
    /// An agent for a conversation.
    pub fn new(setup: Setup, conversation: Conversation) -> Self {
        let Setup { target, layout, thinking, settings, .. } = &setup;
        let choice = Choice { target: target.clone(), layout: *layout, thinking: *thinking, client: None };
        let inner = Inner {
            events: Events::new(settings.handler_limit),
            commands: Mutex::default(),
            queues: Mutex::default(),
            next_turn: Mutex::default(),
            conversation: Mutex::new(conversation),
            bench: tokio::sync::Mutex::new(Bench::new(choice.target.vocabulary())),
            choice: Mutex::new(choice),
            asked: Mutex::default(),
            abort: Mutex::new(CancellationToken::new()),
            shell_token: Mutex::new(CancellationToken::new()),
            late: Mutex::default(),
            setup,
        };
        Agent { inner: Arc::new(inner) }
    }

    /// Where handlers are registered.
    pub fn events(&self) -> &Events {
        &self.inner.events
    }

    /// Registers a command. One of the same name is replaced.
    pub fn command<F>(
        &self,
        name: &str,
        description: &str,
        run: impl Fn(String, Agent) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<Option<String>, String>> + Send + 'static,
    {
        let run: Arc<RunCommand> = Arc::new(move |arguments, agent| Box::pin(run(arguments, agent)));
        let command = Command { description: description.to_owned(), run };
        lock(&self.inner.commands).insert(name.to_owned(), command);
    }

    /// The commands, by name.
    pub fn commands(&self) -> BTreeMap<String, Command> {
        lock(&self.inner.commands).clone()
    }

    /// Skills and templates.
    pub fn expansions(&self) -> &Expansions {
        &self.inner.setup.expansions
    }

    /// Says that the session has begun. Faces call it once their handlers are registered.
    pub async fn start(&self) {
        let (session, resumed) = {
            let conversation = lock(&self.inner.conversation);
            (conversation.session.clone(), !conversation.messages.is_empty())
        };
        self.events().tell(self, SessionStart { session, resumed }).await;
    }

    /// Says that the session ends, and waits until everything is stored.
    pub async fn shutdown(&self) -> Result<(), AgentError> {
        self.abort();
        let _idle = self.inner.bench.lock().await;
        self.store_late().await?;
        let session = lock(&self.inner.conversation).session.clone();
        self.events().tell(self, SessionShutdown { session }).await;
        lock(&self.inner.conversation).settle(Settle::Session, self.now());
        let flushed = lock(&self.inner.conversation).flush();
        Ok(flushed.await?)
    }

    /// Takes what was typed all the way: a command runs, anything else begins a run and is worked on to its end. While the
    /// agent works this is [`AgentError::Busy`]: use [`Agent::queue`].
    pub async fn prompt(&self, input: Input) -> Result<Taken, AgentError> {
        if let Some(taken) = self.run_command(&input.text).await {
            return Ok(taken);
        }
        if self.is_busy() {
            return Err(AgentError::Busy);
        }
        let token = self.fresh_token();
        let accepting = unless_stopped(&token, self.accept(input)).await;
        match accepting.unwrap_or_else(|stop| Ok(Err(Taken::Ran(stop))))? {
            Ok(accepted) => {
                let Ok(mut bench) = self.inner.bench.try_lock() else { return Err(AgentError::Busy) };
                let ran = self.run(&mut bench, accepted, token).await;
                drop(bench);
                self.settle().await?;
                Ok(Taken::Ran(ran?))
            }
            Err(taken) => Ok(taken),
        }
    }

    /// Takes what was typed while the agent works: a command runs at once, anything else waits for its time. It passes
    /// commands, the input event and expansion now. When the agent is idle, it begins a run.
    pub async fn queue(&self, input: Input, delivery: Delivery) -> Result<Taken, AgentError> {
        if let Some(taken) = self.run_command(&input.text).await {
            return Ok(taken);
        }
        let accepted = match self.accept(input).await? {
            Ok(accepted) => accepted,
            Err(taken) => return Ok(taken),
        };
        let queued = lock(&self.inner.queues).add(delivery, accepted);
        match queued {
            Ok(()) => {
                self.events().tell(self, QueueUpdate(self.waiting())).await;
                Ok(Taken::Queued(delivery))
            }
            // No run takes from the queues any more: this is the next one.
            Err(accepted) => {
                let mut bench = self.inner.bench.lock().await;
                let ran = self.run(&mut bench, accepted, self.fresh_token()).await;
                drop(bench);
                self.settle().await?;
                Ok(Taken::Ran(ran?))
            }
        }
    }

    /// What waits.
    pub fn waiting(&self) -> Waiting {
        lock(&self.inner.queues).waiting()
    }

    /// Takes what waits out of the queues, to be edited or dropped.
    pub async fn unqueue(&self) -> Waiting {
        let waiting = lock(&self.inner.queues).clear();
        self.events().tell(self, QueueUpdate(Waiting::default())).await;
        waiting
    }

    /// Adds a message that goes with the next prompt.
    pub fn with_next_prompt(&self, message: CustomMessage) {
        lock(&self.inner.next_turn).push(message);
    }

    /// Stops what the agent does, at once. What was received is kept, and so are the queues.
    pub fn abort(&self) {
        lock(&self.inner.abort).cancel();
    }

    /// Whether the agent works.
    pub fn is_busy(&self) -> bool {
        self.inner.bench.try_lock().is_err()
    }

    /// Waits until the agent does not work.
    pub async fn idle(&self) {
        drop(self.inner.bench.lock().await);
    }

    /// The messages of the conversation.
    pub fn messages(&self) -> Vec<AgentMessage> {
        lock(&self.inner.conversation).messages.clone()
    }

    /// The session's id and its file.
    pub fn session(&self) -> (Arc<str>, PathBuf) {
        let conversation = lock(&self.inner.conversation);
        (conversation.session.clone(), conversation.path().to_owned())
    }

    /// Whom requests are for.
    pub fn target(&self) -> Target {
        lock(&self.inner.choice).target.clone()
    }

    /// How prompts are ordered.
    pub fn layout(&self) -> LayoutName {
        lock(&self.inner.choice).layout
    }

    /// Whether the model thinks first.
    pub fn thinking(&self) -> Thinking {
        lock(&self.inner.choice).thinking
    }

    /// From the next request on, another model answers.
    pub async fn select_model(&self, target: Target) -> Result<(), AgentError> {
        let now = self.now();
        let saved = {
            let record = Record::ModelChange {
                provider: target.provider.as_str().into(),
                model: target.model.id.as_str().into(),
            };
            lock(&self.inner.conversation).record(record, now)
        };
        saved.await?;
        let (previous, model) = {
            let mut choice = lock(&self.inner.choice);
            let previous = choice.target.model.name();
            (choice.target, choice.client) = (target, None);
            (previous, choice.target.model.name())
        };
        self.events().tell(self, ModelSelect { previous, model }).await;
        Ok(())
    }

    /// From the next request on, the model thinks this much.
    pub async fn select_thinking(&self, thinking: Thinking) -> Result<(), AgentError> {
        let saved = lock(&self.inner.conversation).think(&level(thinking), self.now());
        if let Some(saved) = saved {
            saved.await?;
        }
        lock(&self.inner.choice).thinking = thinking;
        Ok(())
    }

    /// Stores what a flag or a setting chose, so that a resumed conversation goes on with it.
    pub(crate) fn keep_thinking(&self) {
        let thinking = self.thinking();
        drop(lock(&self.inner.conversation).think(&level(thinking), self.now()));
    }

    /// Turns to another conversation once the agent is idle. What waits in the queues stays.
    pub async fn switch(&self, conversation: Conversation, how: Switch) {
        let _idle = self.inner.bench.lock().await;
        let to = conversation.session.clone();
        let from = {
            let mut current = lock(&self.inner.conversation);
            current.settle(Settle::Session, self.now());
            std::mem::replace(&mut *current, conversation).session
        };
        *lock(&self.inner.asked) = None;
        lock(&self.inner.choice).client = None;
        match how {
            Switch::Other => self.events().tell(self, SessionSwitch { from, to }).await,
            Switch::Fork { entry } => self.events().tell(self, SessionFork { from, entry, to }).await,
        }
    }

    /// Asks the person for a line of text; none where nobody answers.
    pub async fn input(&self, question: &str) -> Option<String> {
        self.inner.setup.approve.input(question).await
    }

    /// Gives the session a name.
    pub async fn rename(&self, name: &str) -> Result<(), AgentError> {
        let now = self.now();
        let saved = lock(&self.inner.conversation).record(Record::Name { name: name.into() }, now);
        Ok(saved.await?)
    }

    /// Gives an entry of the session a label; none takes it away.
    pub async fn label(&self, entry: &str, label: Option<&str>) -> Result<(), AgentError> {
        let now = self.now();
        let saved = {
            let mut conversation = lock(&self.inner.conversation);
            if !conversation.has(entry) {
                return Err(AgentError::Entry {
                    reason: format!("there is no entry {entry} in this session"),
                });
            }
            let record = Record::Label { target: entry.into(), label: label.map(Into::into) };
            conversation.record(record, now)
        };
        Ok(saved.await?)
    }

    /// Keeps an extension's own state in the session; it is never sent.
    pub async fn keep(&self, custom_type: &str, data: serde_json::Value) -> Result<(), AgentError> {
        let now = self.now();
        let record = Record::Custom { custom_type: custom_type.into(), data };
        let saved = lock(&self.inner.conversation).record(record, now);
        Ok(saved.await?)
    }

    /// What the last request held; none before the first. What is said of a panel's hits and cost is what was billed.
    pub fn breakdown(&self) -> Option<Breakdown> {
        let asked = lock(&self.inner.asked).clone()?;
        Some(self.as_billed(asked.breakdown()))
    }

    /// What was used: the last request, the session, the tiers.
    pub fn token_usage(&self) -> TokenUsage {
        let (session, requests) = {
            let conversation = lock(&self.inner.conversation);
            (conversation.spent, conversation.requests)
        };
        let asked = lock(&self.inner.asked).clone();
        let tiers = self.breakdown().map(|breakdown| serde_json::to_value(breakdown).unwrap_or_default());
        TokenUsage {
            last_request: asked.as_ref().and_then(|asked| asked.spent),
            session,
            requests,
            tiers: tiers.unwrap_or_default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.inner.setup.clock)()
    }

    /// The token that ends the run in progress.
    pub(crate) fn fresh_token(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *lock(&self.inner.abort) = token.clone();
        token
    }

    /// What is due from a queue.
    pub(crate) fn due(&self, delivery: Delivery) -> Vec<Accepted> {
        let settings = &self.inner.setup.settings;
        let mode = match delivery {
            Delivery::Steer => settings.steering,
            Delivery::FollowUp => settings.follow_up,
        };
        lock(&self.inner.queues).take(delivery, mode)
    }
}

/// The word for how much a model thinks.
fn level(thinking: Thinking) -> String {
    match thinking {
        Thinking::Off => NO_THINKING.to_owned(),
        Thinking::Budget(tokens) => tokens.to_string(),
    }
}
