//! [`Telemetry`]: follows an agent and its sub-agents by their events.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hardpan_agent::events::{
    AgentEnd, AgentStart, BeforeProviderRequest, Event, MessageEnd, ToolExecutionEnd, ToolExecutionStart,
};
use hardpan_agent::{Agent, AgentEvent};
use hardpan_providers::Transport;
use hardpan_session::RequestRecord;
use ring::rand::{SecureRandom, SystemRandom};

use crate::exporter::{ExportError, Exporter};
use crate::settings::TelemetrySettings;
use crate::span::{SpanContext, UnixNanos};
use crate::tracer::{AgentTracer, TextFilter, TracerOutput};

/// The name under which the handlers are registered.
const OWNER: &str = "telemetry";

/// How long the end of a conversation waits for the collector.
const FINISH_LIMIT: Duration = Duration::from_secs(3);

/// What telemetry needs of the program that it is part of.
pub struct TelemetryHost {
    /// Carries the requests to the collector.
    pub transport: Arc<dyn Transport>,
    /// The time now.
    pub clock: fn() -> UnixNanos,
    /// Takes keys out of texts, before they are sent.
    pub filter: TextFilter,
    /// Called once, when something could not be sent.
    pub on_failure: Box<dyn FnOnce(ExportError) + Send>,
}

/// Where a sub-agent comes from.
pub struct SubagentPlace<'a> {
    /// Its name.
    pub name: &'a str,
    /// The session of the agent that started it.
    pub session: &'a str,
    /// The call that started it.
    pub call_id: &'a str,
}

/// The calls that run, by session and id, with their spans.
type OpenCalls = Mutex<BTreeMap<(Arc<str>, Arc<str>), SpanContext>>;

/// Follows agents and sends what it learns. [`Telemetry::finish`] sends what is left.
pub struct Telemetry {
    exporter: Arc<Exporter>,
    clock: fn() -> UnixNanos,
    filter: TextFilter,
    calls: Arc<OpenCalls>,
    /// Set once the task that sends has begun.
    task: Arc<OnceLock<()>>,
}

impl Telemetry {
    /// Telemetry that goes where the settings say. The process gets an id of its own among those that
    /// have the same name.
    pub fn new(mut settings: TelemetrySettings, host: TelemetryHost) -> Self {
        let instance = format!("{:016x}{:016x}", random_id(), random_id());
        settings.resource.push(("service.instance.id".into(), instance));
        let exporter = Exporter::new(settings, host.transport, host.clock, host.on_failure);
        Telemetry {
            exporter: Arc::new(exporter),
            clock: host.clock,
            filter: host.filter,
            calls: Arc::default(),
            task: Arc::default(),
        }
    }

    /// Follows the agent of a conversation; `name` gives the name that it has now.
    pub fn follow(&self, agent: &Agent, name: impl Fn() -> String + Send + Sync + 'static) {
        self.subscribe(agent, None, Arc::new(name));
    }

    /// Follows a sub-agent: its run is part of the call that started it.
    pub fn follow_subagent(&self, agent: &Agent, place: &SubagentPlace<'_>) {
        let key = (Arc::from(place.session), Arc::from(place.call_id));
        let parent = self.calls.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        let name = place.name.to_owned();
        self.subscribe(agent, parent, Arc::new(move || name.clone()));
    }

    /// Sends what is left, within a few seconds.
    pub async fn finish(&self) {
        if tokio::time::timeout(FINISH_LIMIT, self.exporter.flush()).await.is_err() {
            self.exporter.report_timeout(FINISH_LIMIT);
        }
    }

    fn subscribe(
        &self,
        agent: &Agent,
        parent: Option<SpanContext>,
        name: Arc<dyn Fn() -> String + Send + Sync>,
    ) {
        let content = self.exporter.settings.content;
        let tracer = AgentTracer::new(content, parent, random_id, self.filter.clone());
        let follower = Follower {
            tracer: Arc::new(Mutex::new(tracer)),
            exporter: self.exporter.clone(),
            clock: self.clock,
            calls: self.calls.clone(),
            task: self.task.clone(),
            name,
        };
        follower.clone().on::<AgentStart>(agent);
        follower.clone().on::<BeforeProviderRequest>(agent);
        follower.clone().on::<MessageEnd>(agent);
        follower.clone().on::<ToolExecutionStart>(agent);
        follower.clone().on::<ToolExecutionEnd>(agent);
        follower.clone().on::<AgentEnd>(agent);
        let billed = agent.downgrade();
        agent.on_bill(move |record| {
            if let Some(agent) = billed.upgrade() {
                follower.observe_bill(record, &agent);
            }
        });
    }
}

/// What the handlers of one agent share.
#[derive(Clone)]
struct Follower {
    tracer: Arc<Mutex<AgentTracer>>,
    exporter: Arc<Exporter>,
    clock: fn() -> UnixNanos,
    calls: Arc<OpenCalls>,
    task: Arc<OnceLock<()>>,
    name: Arc<dyn Fn() -> String + Send + Sync>,
}

impl Follower {
    /// Observes the events of one type. Handlers are asked in order, so that a call's span is known
    /// before a sub-agent starts in it.
    fn on<E: Event<Reply = ()> + Into<AgentEvent>>(self, agent: &Agent) {
        agent.events().subscribe::<E, _>(OWNER, move |event, agent| {
            self.observe(&event.into(), &agent);
            async { Ok(()) }
        });
    }

    fn observe_bill(&self, record: &RequestRecord, agent: &Agent) {
        let (session, name) = (agent.session().0, (self.name)());
        let output = {
            let mut tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner);
            // No run may have begun in this session.
            tracer.set_identity(session, name);
            tracer.observe_bill(record)
        };
        self.send(output);
    }

    fn observe(&self, event: &AgentEvent, agent: &Agent) {
        let now = (self.clock)();
        let session = agent.session().0;
        let output = {
            let mut tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(event, AgentEvent::AgentStart(_)) {
                tracer.set_identity(session.clone(), (self.name)());
            }
            tracer.observe(event, now)
        };
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((call_id, context)) = &output.call {
            calls.insert((session, call_id.clone()), *context);
        } else if let AgentEvent::ToolExecutionEnd(ended) = event {
            calls.remove(&(session, ended.call_id.clone()));
        }
        drop(calls);
        self.send(output);
    }

    fn send(&self, output: TracerOutput) {
        self.exporter.add(output);
        self.task.get_or_init(|| drop(tokio::spawn(Exporter::run(Arc::downgrade(&self.exporter)))));
    }
}

/// A random number that is not 0: OTLP has no such ids.
fn random_id() -> u64 {
    let mut bytes = [0; 8];
    // Where the system has no random numbers, all spans have the same id, and nothing else breaks.
    let _ = SystemRandom::new().fill(&mut bytes);
    u64::from_ne_bytes(bytes).max(1)
}
