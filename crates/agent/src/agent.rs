//! [`Agent`]: one conversation, shared by everyone who takes part in it.
//!
//! An `Agent` is a cheap handle. The terminal, an RPC server and extensions each hold a clone and
//! call it from any task: one of them prompts, another one steers or aborts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hardpan_context::{Breakdown, EphemeralText};
use hardpan_economy::ledger::RequestPurpose;
use hardpan_prompt::AgentMessage;
use hardpan_session::RequestRecord;
use hardpan_tools::ToolRegistry;
use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::command::Command;
use crate::conversation::Conversation;
use crate::error::AgentError;
use crate::events::{
    AgentSettled, CustomMessage, DiscoveryReason, Events, HandlerClock, HandlerFault, Input, InputSource,
    Note, QueueUpdate, SessionShutdown, SessionStart, TaskUsage,
};
use crate::expand::Expansions;
use crate::extension_runs::{ExtensionMessage, ExtensionRuns};
use crate::last_request::LastRequest;
use crate::model_selection::ModelSelection;
use crate::queue::{Delivery, InputQueues, PreparedInput, QueuedInputs};
use crate::resources::DiscoveredResources;
use crate::run::{RunState, unless_aborted};
use crate::run_status::{Activity, RunGate, WorkClaim};
use crate::secret_guard::SecretGuard;
use crate::session_ledger::FlushScope;
use crate::setup::Setup;
use crate::spending::UsageReport;

/// What happened to an input given to [`Agent::prompt`] or [`Agent::queue`].
#[derive(Clone, Debug, PartialEq)]
pub enum InputOutcome {
    /// The input was a slash command, and the command ran.
    Command {
        /// Text to show to the user: the command's output, or why it failed.
        output: Option<String>,
    },
    /// A handler of the [`Input`] event answered `Handled`: nothing goes to the model.
    Handled,
    /// A run is in progress; the input waits in this queue.
    Queued(Delivery),
    /// The agent ran to its end, which this value explains.
    Ran(crate::RunEnd),
}

/// Who an input comes from, for what it may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageSender {
    /// An extension, or a hook.
    Extension,
    /// The person, or Hardpan itself.
    Other,
    /// The same, once the run in progress had been stopped: it is not meant for that run.
    OtherAfterStop,
}

impl MessageSender {
    fn of_input(source: InputSource) -> Self {
        match source {
            InputSource::Extension => MessageSender::Extension,
            InputSource::Interactive | InputSource::Rpc | InputSource::Agent => MessageSender::Other,
        }
    }
}

/// How long the end of a conversation waits for work that goes on.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(3);

/// How long all handlers of the end of a conversation may take together.
const SHUTDOWN_HANDLERS: Duration = Duration::from_secs(5);

pub(crate) struct Inner {
    pub setup: Setup,
    pub events: Events,
    pub commands: Mutex<BTreeMap<String, Command>>,
    /// Tells that `commands` has changed.
    pub command_changes: watch::Sender<()>,
    pub queues: Mutex<InputQueues>,
    /// Extension messages that are added after the next prompt.
    pub next_prompt_messages: Mutex<Vec<CustomMessage>>,
    pub conversation: Mutex<Conversation>,
    pub selection: Mutex<ModelSelection>,
    pub last_request: Mutex<Option<Arc<LastRequest>>>,
    /// The one before it, to compare both.
    pub request_before: Mutex<Option<Arc<LastRequest>>>,
    pub abort: Mutex<CancellationToken>,
    /// Cancels each of the tool calls that run, by their ids.
    pub running_calls: Mutex<BTreeMap<Arc<str>, CancellationToken>>,
    /// Tells a failed request that waits to be sent again.
    pub retry_now: Notify,
    /// Cancels the shell commands that the user is running.
    pub shell_abort: Mutex<CancellationToken>,
    /// Results of the user's shell commands that finished during a turn, and messages that extensions
    /// added. They are stored between turns, never between a tool call and its result.
    pub pending_shell_messages: Mutex<Vec<AgentMessage>>,
    /// Lets one piece of work at a time use the conversation, and knows which.
    pub gate: Arc<RunGate>,
    /// Secrets that requests would contain.
    pub secrets: Mutex<SecretGuard>,
    /// Texts for the next request alone.
    pub ephemeral: Mutex<Vec<EphemeralText>>,
    /// Skills and templates, with those that handlers named.
    pub resources: Mutex<DiscoveredResources>,
    /// Told of each request that was billed.
    pub bill_listeners: Mutex<Vec<BillListener>>,
    /// What extensions begin by themselves.
    pub extension_runs: Mutex<ExtensionRuns>,
    /// Stops the commands of extensions that run now.
    pub command_stop: Mutex<CancellationToken>,
}

/// A function that is told of requests that were billed.
pub(crate) type BillListener = Arc<dyn Fn(&RequestRecord) + Send + Sync>;

/// A handle to one agent; clones refer to the same agent.
#[derive(Clone)]
pub struct Agent {
    pub(crate) inner: Arc<Inner>,
}

/// A handle that does not keep the agent: for its own tools.
#[derive(Clone, Default)]
pub struct WeakAgent(Weak<Inner>);

impl WeakAgent {
    /// The agent, if somebody else still has it.
    pub fn upgrade(&self) -> Option<Agent> {
        self.0.upgrade().map(|inner| Agent { inner })
    }
}

/// Locks a mutex and ignores poisoning: no guarded value is ever left half-changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Agent {
    /// Creates an agent that continues `conversation`. No event is emitted before [`Agent::start`].
    pub fn new(setup: Setup, conversation: Conversation) -> Self {
        let Setup { target, layout, thinking, settings, tools, .. } = &setup;
        conversation.restore_tool_switches(tools);
        let secrets = Mutex::new(SecretGuard::new(&setup.secrets, &conversation));
        let (target, client) = (target.clone(), Arc::default());
        let selection = ModelSelection { target, layout: *layout, thinking: *thinking, client };
        let resources = Mutex::new(DiscoveredResources::new(&setup.expansions));
        let inner = Inner {
            secrets,
            events: Events::new(settings.handler_timeout),
            commands: Mutex::default(),
            command_changes: watch::Sender::new(()),
            queues: Mutex::default(),
            next_prompt_messages: Mutex::default(),
            conversation: Mutex::new(conversation),
            gate: RunGate::new(RunState::new(selection.target.vocabulary())),
            selection: Mutex::new(selection),
            last_request: Mutex::default(),
            request_before: Mutex::default(),
            abort: Mutex::new(CancellationToken::new()),
            retry_now: Notify::new(),
            running_calls: Mutex::default(),
            shell_abort: Mutex::new(CancellationToken::new()),
            pending_shell_messages: Mutex::default(),
            bill_listeners: Mutex::default(),
            extension_runs: Mutex::default(),
            command_stop: Mutex::default(),
            ephemeral: Mutex::default(),
            resources,
            setup,
        };
        let agent = Agent { inner: Arc::new(inner) };
        agent.register_recall();
        agent.register_message_tool();
        agent.note_declared_tools();
        agent
    }

    /// A handle that does not keep the agent.
    pub fn downgrade(&self) -> WeakAgent {
        WeakAgent(Arc::downgrade(&self.inner))
    }

    /// The event registry: faces get their stream here, handlers are subscribed here.
    pub fn events(&self) -> &Events {
        &self.inner.events
    }

    /// The tools that the model may call. What changes in the registry takes effect with the next
    /// request.
    pub fn tools(&self) -> &ToolRegistry {
        &self.inner.setup.tools
    }

    /// The skills, templates and agents of the settings, without those that handlers named.
    pub fn own_expansions(&self) -> &Expansions {
        &self.inner.setup.expansions
    }

    /// Emits [`SessionStart`]. Call it once, after your handlers are subscribed.
    pub async fn start(&self) {
        let (session, resumed) = {
            let conversation = lock(&self.inner.conversation);
            (conversation.session.clone(), !conversation.messages.is_empty())
        };
        self.events().emit(self, SessionStart { session, resumed }).await;
        self.discover_resources(DiscoveryReason::Startup).await;
    }

    /// Aborts the run, emits [`SessionShutdown`], and waits until everything is stored.
    pub async fn shutdown(&self) -> Result<(), AgentError> {
        self.abort();
        // Work that does not end, such as that of a handler, keeps nobody from leaving.
        let _alone = tokio::time::timeout(SHUTDOWN_WAIT, self.begin(Activity::ShuttingDown)).await;
        self.flush_shell_messages().await?;
        let session = lock(&self.inner.conversation).session.clone();
        self.events().emit_within(self, SessionShutdown { session }, SHUTDOWN_HANDLERS).await;
        lock(&self.inner.conversation).store_run_records(FlushScope::Session, self.now());
        let flushed = lock(&self.inner.conversation).flush();
        Ok(flushed.await?)
    }

    /// Tells handlers that a run is over.
    async fn tell_settled(&self) {
        let token = lock(&self.inner.abort).clone();
        self.events().tell_unless_aborted(self, AgentSettled {}, token).await;
    }

    /// Handles an input to its end: runs it if it is a slash command, otherwise starts a run and
    /// waits for it. Returns [`AgentError::Busy`] while another run is in progress; use
    /// [`Agent::queue`] then.
    pub async fn prompt(&self, input: Input) -> Result<InputOutcome, AgentError> {
        if input.source.is_typed() {
            self.note_person();
        }
        if input.source.is_typed()
            && let Some(outcome) = self.run_command(&input.text).await
        {
            return Ok(outcome);
        }
        if self.is_busy() {
            return Err(AgentError::Busy);
        }
        let token = self.new_abort_token();
        let accepting = unless_aborted(&token, self.prepare_input(input)).await;
        match accepting.unwrap_or_else(|stop| Ok(Err(InputOutcome::Ran(stop))))? {
            Ok(prepared) => {
                let mut run_state = self.try_begin(Activity::Running)?;
                let ran = self.run(&mut run_state, prepared, token).await;
                drop(run_state);
                self.flush_shell_messages_if_idle().await?;
                self.tell_settled().await;
                Ok(InputOutcome::Ran(ran?))
            }
            Err(outcome) => Ok(outcome),
        }
    }

    /// Handles an input while a run is in progress: a slash command runs at once, anything else
    /// passes the input event and expansion now and then waits in the queue for `delivery`. If the
    /// agent is idle, it starts a run.
    pub async fn queue(&self, input: Input, delivery: Delivery) -> Result<InputOutcome, AgentError> {
        self.queue_claimed(input, delivery, self.claim_work()).await
    }

    /// Does what [`Agent::queue`] does, for an input that was accepted before: the claim is kept
    /// until the input is queued or its run begins.
    pub async fn queue_claimed(
        &self,
        input: Input,
        delivery: Delivery,
        claim: WorkClaim,
    ) -> Result<InputOutcome, AgentError> {
        if input.source.is_typed() {
            self.note_person();
            if let Some(outcome) = self.run_command(&input.text).await {
                return Ok(outcome);
            }
        }
        let sender = self.input_sender(input.source);
        let prepared = match self.prepare_input(input).await? {
            Ok(prepared) => prepared,
            Err(outcome) => return Ok(outcome),
        };
        self.queue_prepared(prepared, sender, delivery, claim).await
    }

    /// Who sends an input now. What a handler sends is never a person's answer to a stop.
    fn input_sender(&self, source: InputSource) -> MessageSender {
        let is_after_stop = self.is_abort_requested() && HandlerClock::current().is_none();
        match MessageSender::of_input(source) {
            MessageSender::Other if is_after_stop => MessageSender::OtherAfterStop,
            sender => sender,
        }
    }

    /// Queues what is ready to become a message, or starts a run with it.
    pub(crate) async fn queue_prepared(
        &self,
        prepared: PreparedInput,
        sender: MessageSender,
        delivery: Delivery,
        claim: WorkClaim,
    ) -> Result<InputOutcome, AgentError> {
        // Under the lock of the queues, so that a run that ends sees this input or leaves it alone.
        let queued = {
            let mut queues = lock(&self.inner.queues);
            let activity = self.status().activity;
            let begins_work = activity != Activity::Running || delivery == Delivery::FollowUp;
            let admitted = match sender {
                MessageSender::Extension if begins_work => lock(&self.inner.extension_runs).admit(),
                MessageSender::Extension => lock(&self.inner.extension_runs).admit_steering(),
                _ => ExtensionMessage::Delivered,
            };
            match admitted {
                ExtensionMessage::Delivered
                    if sender == MessageSender::OtherAfterStop && self.is_abort_requested() =>
                {
                    queues.add_after_stop(activity, prepared)
                }
                ExtensionMessage::Delivered => queues.add(activity, delivery, prepared),
                ExtensionMessage::Held => {
                    queues.hold(prepared);
                    Ok(())
                }
                ExtensionMessage::Refused => return Err(AgentError::ExtensionRuns),
                ExtensionMessage::Dropped => return Ok(InputOutcome::Handled),
            }
        };
        match queued {
            Ok(()) => {
                self.events().emit(self, QueueUpdate(self.queued_inputs())).await;
                Ok(InputOutcome::Queued(delivery))
            }
            // No run reads the queues any more, so this input starts the next run.
            Err(prepared) => {
                let mut run_state = self.begin(Activity::Running).await;
                drop(claim);
                let ran = self.run(&mut run_state, prepared, self.new_abort_token()).await;
                drop(run_state);
                self.flush_shell_messages_if_idle().await?;
                self.tell_settled().await;
                Ok(InputOutcome::Ran(ran?))
            }
        }
    }

    /// The inputs that wait in both queues, in delivery order.
    pub fn queued_inputs(&self) -> QueuedInputs {
        lock(&self.inner.queues).queued_inputs()
    }

    /// Empties both queues and returns what was in them, so that the user can edit or drop it.
    pub async fn clear_queue(&self) -> QueuedInputs {
        let waiting = lock(&self.inner.queues).clear();
        self.events().emit(self, QueueUpdate(QueuedInputs::default())).await;
        waiting
    }

    /// Adds an extension message that is stored right after the next prompt.
    pub fn attach_to_next_prompt(&self, message: CustomMessage) {
        lock(&self.inner.next_prompt_messages).push(message);
    }

    /// Has the model read a text with the next request, and with no other. It stands after everything
    /// that is cached, so that it costs its own tokens and nothing else; it is not stored.
    pub fn add_ephemeral(&self, extension: &str, text: &str) {
        if !text.trim().is_empty() {
            let text = EphemeralText { extension: extension.into(), text: text.into() };
            lock(&self.inner.ephemeral).push(text);
        }
    }

    /// Stores an extension message: at once if the agent is idle, else when the turn has ended, so
    /// that the next request has it.
    pub async fn append_message(&self, message: CustomMessage) -> Result<(), AgentError> {
        let (body, details) = message.into_parts();
        let mut message = lock(&self.inner.conversation).new_message(body, self.now());
        message.note(|facts| facts.details = details);
        lock(&self.inner.pending_shell_messages).push(message);
        self.flush_shell_messages_if_idle().await
    }

    /// Delivers an extension message as an input is delivered: to the run in progress, as steering or
    /// when the model is done, or with a run of its own. The claim is kept until then.
    pub async fn queue_message(
        &self,
        message: CustomMessage,
        delivery: Delivery,
        claim: WorkClaim,
    ) -> Result<InputOutcome, AgentError> {
        let text = message.text();
        let prepared = PreparedInput { text, custom: Some(message), ..PreparedInput::default() };
        self.queue_prepared(prepared, MessageSender::Extension, delivery, claim).await
    }

    /// Tells the faces something that the user should know.
    pub fn publish_note(&self, note: &Note) {
        self.events().publish(note);
    }

    /// Tells the faces that something of an extension failed outside of a handler.
    pub fn report_fault(&self, fault: HandlerFault) {
        self.events().report_faults(&[fault]);
    }

    /// Stops the run at once. The part of the answer that was received is kept, and so are the
    /// queues.
    pub fn abort(&self) {
        lock(&self.inner.abort).cancel();
    }

    /// Sends a failed request again at once, if it waits for that.
    pub fn retry_now(&self) {
        self.inner.retry_now.notify_waiters();
    }

    /// Whether the last run was aborted, also if that was after its end.
    pub fn is_abort_requested(&self) -> bool {
        lock(&self.inner.abort).is_cancelled()
    }

    /// A copy of the conversation's messages, oldest first.
    pub fn messages(&self) -> Vec<AgentMessage> {
        lock(&self.inner.conversation).messages.clone()
    }

    /// Asks the user for a line of text; `None` if nobody is there to answer. In an event handler,
    /// the time until the answer does not count.
    pub async fn ask_user(&self, question: &str) -> Option<String> {
        let _pause = HandlerClock::current().map(|clock| clock.pause());
        self.inner.setup.approval_handler.ask_user(question).await
    }

    /// What the last request contained, by region and kind; `None` before the first one. Panel hits
    /// and costs are those that the provider billed.
    pub fn breakdown(&self) -> Option<Breakdown> {
        let last_request = lock(&self.inner.last_request).clone()?;
        Some(self.with_billed_costs(last_request.breakdown()))
    }

    /// Tokens and dollars of the last request and of the whole session.
    pub fn token_usage(&self) -> UsageReport {
        let (session, requests, tasks) = {
            let conversation = lock(&self.inner.conversation);
            let tasks = conversation.billing.ledger.by_purpose.get(&RequestPurpose::Task);
            (conversation.spending, conversation.requests, tasks.map(TaskUsage::from))
        };
        let last_request = lock(&self.inner.last_request).clone();
        UsageReport {
            last_request: last_request.as_ref().and_then(|last_request| last_request.spending),
            session,
            requests,
            tasks,
            breakdown: self.breakdown().map(Arc::new),
        }
    }

    /// The agent's current time.
    pub fn now(&self) -> Timestamp {
        (self.inner.setup.clock)()
    }

    /// Makes a new cancellation token and installs it as the one that [`Agent::abort`] cancels.
    pub(crate) fn new_abort_token(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *lock(&self.inner.abort) = token.clone();
        token
    }

    /// Takes the inputs that are due from a queue, one or all as its setting says.
    pub(crate) fn take_due_inputs(&self, delivery: Delivery) -> Vec<PreparedInput> {
        let settings = &self.inner.setup.settings;
        let mode = match delivery {
            Delivery::Steer => settings.steering,
            Delivery::FollowUp => settings.follow_up,
        };
        lock(&self.inner.queues).take(delivery, mode)
    }
}
