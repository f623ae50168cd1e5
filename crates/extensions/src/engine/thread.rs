//! [`ScriptThread`]: takes jobs one after the other, and runs each as a slice.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Exception, Function, Module, Object, Persistent, Runtime};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::fault::{ScriptError, ScriptFault, caught_fault, fault_of};
use super::host::{HostError, ScriptHost};
use super::json_size::{MAX_VALUES, count_values};
use super::{CallKind, ScriptLimits, native};
use crate::modules::{self, ModuleSources, ScriptLoader};

/// The engine's own JavaScript: a function of the native functions that gives the entries.
const API: &str = include_str!("../js/api.js");
const BYTES: &str = include_str!("../js/bytes.js");
const INSPECT: &str = include_str!("../js/inspect.js");
const PLATFORM: &str = include_str!("../js/platform.js");
const NODE: &str = include_str!("../js/node.js");
const NODE_PATH: &str = include_str!("../js/node_path.js");
const NODE_FILES: &str = include_str!("../js/node_files.js");
const NODE_CRYPTO: &str = include_str!("../js/node_crypto.js");
const PROCESSES: &str = include_str!("../js/processes.js");
const PROVIDERS: &str = include_str!("../js/providers.js");
const INTL: &str = include_str!("../js/intl.js");
const FETCH: &str = include_str!("../js/fetch.js");

/// Parts of it that are evaluated when a script first needs them, by the names that `node.js` uses.
const LAZY_PARTS: [(&str, &str); 15] = [
    ("assert", include_str!("../js/assert.js")),
    ("coding-agent", include_str!("../js/coding_agent.js")),
    ("coding-tools", include_str!("../js/coding_tools.js")),
    ("components", include_str!("../js/components.js")),
    ("glob", include_str!("../js/glob.js")),
    ("models", include_str!("../js/models.js")),
    ("packages", include_str!("../js/packages.js")),
    ("provider-parts", include_str!("../js/provider_parts.js")),
    ("schemas", include_str!("../js/schemas.js")),
    ("sessions", include_str!("../js/sessions.js")),
    ("terminal", include_str!("../js/terminal_text.js")),
    ("yaml", include_str!("../js/yaml.js")),
    ("streams", include_str!("../js/streams.js")),
    ("http", include_str!("../js/http.js")),
    ("small-modules", include_str!("../js/small_modules.js")),
];

/// How often the jobs of a slice get more time. After that the script is ended.
const MAX_EXTENSIONS: u32 = 2;

/// How many rejected promises of one slice are told of.
const MAX_REJECTIONS: usize = 1_000;

/// How soon a script that waits for its host notices that it was stopped.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// Something for the thread to do.
pub enum Job {
    Call {
        id: u64,
        kind: CallKind,
        key: String,
        payload: String,
        reply: oneshot::Sender<Result<Value, ScriptError>>,
    },
    /// Nobody waits for the call any more.
    Abandon {
        id: u64,
    },
    /// Something that the script asked its host for has ended.
    Settle {
        id: u64,
        outcome: Result<Value, HostError>,
    },
    Stop,
}

/// Something that the host does for a script.
pub struct HostCall {
    pub abort: AbortHandle,
    /// Length of its arguments as JSON.
    pub bytes: usize,
    /// How many values they have.
    pub values: usize,
}

/// What a thread starts with.
pub struct ScriptThread {
    pub entry: PathBuf,
    pub sources: Arc<dyn ModuleSources>,
    pub host: Arc<dyn ScriptHost>,
    pub limits: ScriptLimits,
    pub jobs: mpsc::Sender<Job>,
    pub stop: Arc<AtomicBool>,
    pub runtime: tokio::runtime::Handle,
}

/// What the thread and its native functions share.
pub struct ThreadState {
    pub host: Arc<dyn ScriptHost>,
    pub limits: ScriptLimits,
    pub jobs: mpsc::Sender<Job>,
    pub runtime: tokio::runtime::Handle,
    pub started: Instant,
    pub loader: ScriptLoader,
    stop: Arc<AtomicBool>,
    deadline: Cell<Option<Instant>>,
    /// How often the engine was stopped in this slice.
    interruptions: Cell<u32>,
    pub timers: RefCell<BTreeMap<(Instant, u64), ()>>,
    pub replies: RefCell<BTreeMap<u64, oneshot::Sender<Result<Value, ScriptError>>>>,
    /// What the host does for the script at the moment.
    pub host_calls: RefCell<BTreeMap<u64, HostCall>>,
    /// Promises that were rejected in this slice, and that nobody has taken up yet.
    rejections: RefCell<Vec<ScriptFault>>,
}

#[expect(clippy::disallowed_methods, reason = "limits and timers of the engine are about real time")]
pub fn clock() -> Instant {
    Instant::now()
}

impl ThreadState {
    /// Adds time that the host took to the slice.
    pub fn extend_slice(&self, taken: Duration) {
        self.deadline.set(self.deadline.get().map(|deadline| deadline + taken));
    }

    /// Lets the host do something that may take long, and waits for it. The time does not count; only the
    /// end of the script ends the wait.
    pub fn wait_for_host(&self, name: &str, arguments: Value) -> Result<Value, HostError> {
        let began = clock();
        let (sender, receiver) = mpsc::channel();
        let called = self.host.call(name, arguments);
        let task = self.runtime.spawn(async move {
            // The script may have been stopped.
            let _ = sender.send(called.await);
        });
        let outcome = loop {
            match receiver.recv_timeout(STOP_INTERVAL) {
                Ok(outcome) => break outcome,
                Err(RecvTimeoutError::Timeout) if !self.stop.load(Ordering::Relaxed) => {}
                Err(_) => {
                    task.abort();
                    break Err(HostError("the extension was stopped".into()));
                }
            }
        };
        self.extend_slice(began.elapsed());
        outcome
    }

    fn is_overdue(&self) -> bool {
        self.extend_slice(self.loader.take_spent());
        self.deadline.get().is_some_and(|deadline| clock() > deadline)
    }

    fn answer(&self, id: u64, outcome: Result<Value, ScriptError>) {
        if let Some(reply) = self.replies.borrow_mut().remove(&id) {
            // The caller may have gone.
            let _ = reply.send(outcome);
        }
    }

    /// The script's answer to a call.
    pub fn finish(&self, id: u64, succeeded: bool, json: &str) {
        let outcome = match json.len() {
            bytes if bytes > self.limits.result => {
                Err(ScriptError::TooLarge { bytes, limit: self.limits.result })
            }
            _ if count_values(json) > MAX_VALUES => {
                Err(ScriptError::TooManyValues { values: count_values(json), limit: MAX_VALUES })
            }
            _ if succeeded => native::parse_json(json).map_err(ScriptError::Unreadable),
            _ => Err(match serde_json::from_str(json) {
                Ok(fault) => ScriptError::Raised(fault),
                Err(error) => ScriptError::Unreadable(error),
            }),
        };
        self.answer(id, outcome);
    }
}

/// The functions of `api.js` that the thread calls.
struct Entries {
    dispatch: Persistent<Function<'static>>,
    abandon: Persistent<Function<'static>>,
    settle: Persistent<Function<'static>>,
    fire: Persistent<Function<'static>>,
}

/// A file of the engine's own JavaScript: a function.
fn evaluate_part<'js>(ctx: &Ctx<'js>, source: &str, name: &str) -> rquickjs::Result<Function<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some(format!("hardpan:{name}"));
    ctx.eval_with_options(source, options)
}

#[expect(clippy::needless_pass_by_value, reason = "the engine hands over what it has converted")]
fn evaluate_lazy_part<'js>(ctx: Ctx<'js>, name: String) -> rquickjs::Result<Function<'js>> {
    let part = LAZY_PARTS.iter().find(|(known, _)| *known == name);
    let (name, source) = part.ok_or_else(|| Exception::throw_message(&ctx, "there is no such part"))?;
    evaluate_part(&ctx, source, name)
}

/// Whether the thread goes on.
#[derive(PartialEq, Eq)]
enum Flow {
    Continue,
    End,
}

struct Engine {
    // Dropped before the runtime whose values they hold.
    entries: Entries,
    context: Context,
    state: Rc<ThreadState>,
}

impl ScriptThread {
    /// Runs jobs until the script is stopped.
    pub fn run(self, received: &mpsc::Receiver<Job>) {
        let state = Rc::new(ThreadState {
            host: self.host,
            limits: self.limits,
            jobs: self.jobs,
            runtime: self.runtime,
            started: clock(),
            loader: ScriptLoader::new(&self.entry, self.sources),
            stop: self.stop,
            deadline: Cell::default(),
            interruptions: Cell::default(),
            timers: RefCell::default(),
            replies: RefCell::default(),
            host_calls: RefCell::default(),
            rejections: RefCell::default(),
        });
        match Engine::start(state.clone()) {
            Ok(engine) => engine.take_jobs(received),
            Err(fault) => {
                if let Ok(Job::Call { reply, .. }) = received.recv() {
                    // The caller may have gone.
                    let _ = reply.send(Err(ScriptError::Engine(fault.to_string())));
                }
            }
        }
        state.host_calls.borrow().values().for_each(|call| call.abort.abort());
        // Whoever still waits learns that the script has stopped.
        state.replies.borrow_mut().clear();
    }
}

impl Engine {
    fn start(state: Rc<ThreadState>) -> Result<Self, ScriptFault> {
        let plain = |error: rquickjs::Error| ScriptFault::new(error.to_string());
        let runtime = Runtime::new().map_err(plain)?;
        runtime.set_memory_limit(state.limits.memory);
        runtime.set_max_stack_size(state.limits.stack);
        let watched = state.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || {
            let interrupt = watched.stop.load(Ordering::Relaxed) || watched.is_overdue();
            if interrupt {
                watched.interruptions.set(watched.interruptions.get() + 1);
            }
            interrupt
        })));
        let watched = state.clone();
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |_, _, reason, is_handled| {
            let fault = fault_of(&reason);
            let mut rejections = watched.rejections.borrow_mut();
            if !is_handled {
                if rejections.len() < MAX_REJECTIONS {
                    rejections.push(fault);
                }
            } else if let Some(at) = rejections.iter().rposition(|rejected| *rejected == fault) {
                rejections.remove(at);
            }
        })));
        runtime.set_loader(state.loader.clone(), state.loader.clone());
        let context = Context::full(&runtime).map_err(plain)?;
        let entries = context
            .with(|ctx| Self::evaluate_api(&ctx, &state).map_err(|error| caught_fault(&ctx, &error)))?;
        Ok(Engine { entries, context, state })
    }

    /// Evaluates the engine's own JavaScript. Of it, extensions see the globals of the platform, the
    /// built-in modules, and what is handed to them.
    fn evaluate_api(ctx: &Ctx<'_>, state: &Rc<ThreadState>) -> rquickjs::Result<Entries> {
        let evaluate = |source: &str, name: &str| evaluate_part(ctx, source, name);
        let native = native::functions(ctx, state)?;
        let bytes: Object = evaluate(BYTES, "bytes")?.call((native.clone(),))?;
        let inspection: Object = evaluate(INSPECT, "inspect")?.call(())?;
        let platform: Object = evaluate(PLATFORM, "platform")?.call((native.clone(), bytes, inspection))?;
        evaluate(INTL, "intl")?.call::<_, ()>((platform.get::<_, Function>("define")?,))?;
        evaluate(FETCH, "fetch")?.call::<_, ()>((native.clone(), platform.clone()))?;
        let node_parts = Object::new(ctx.clone())?;
        let sources =
            [("processes", PROCESSES), ("path", NODE_PATH), ("files", NODE_FILES), ("crypto", NODE_CRYPTO)];
        for (name, source) in sources {
            node_parts.set(name, evaluate(source, name)?)?;
        }
        let lazy_part = Function::new(ctx.clone(), evaluate_lazy_part)?;
        let modules: Object =
            evaluate(NODE, "node")?.call((native.clone(), platform.clone(), node_parts, lazy_part))?;
        let providers: Object = evaluate(PROVIDERS, "providers")?.call((platform.clone(),))?;
        platform.set("providers", providers)?;
        // The built-in modules read their content from a module that extensions cannot import.
        ctx.globals().set(modules::INTERNAL_GLOBAL, modules)?;
        let (_, evaluated) =
            Module::declare(ctx.clone(), modules::INTERNAL, modules::internal_source())?.eval()?;
        evaluated.finish::<()>()?;
        ctx.globals().remove(modules::INTERNAL_GLOBAL)?;
        let api: Object = evaluate(API, "api")?.call((native, platform))?;
        let entry = |name: &str| -> rquickjs::Result<Persistent<Function<'static>>> {
            Ok(Persistent::save(ctx, api.get::<_, Function>(name)?))
        };
        Ok(Entries {
            dispatch: entry("dispatch")?,
            abandon: entry("abandon")?,
            settle: entry("settle")?,
            fire: entry("fire")?,
        })
    }

    fn take_jobs(self, received: &mpsc::Receiver<Job>) {
        loop {
            let next = self.state.timers.borrow().keys().next().map(|(due, _)| *due);
            let job = match next {
                None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => received.recv_timeout(due.saturating_duration_since(clock())),
            };
            if self.state.stop.load(Ordering::Relaxed) {
                return;
            }
            let flow = match job {
                Ok(job) => self.run_job(job),
                Err(RecvTimeoutError::Timeout) => self.fire_timers(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if flow == Flow::End {
                return;
            }
        }
    }

    fn run_job(&self, job: Job) -> Flow {
        match job {
            Job::Call { id, kind, key, payload, reply } => {
                self.state.replies.borrow_mut().insert(id, reply);
                self.slice(Some(id), |ctx, entries| {
                    let payload = ctx.json_parse(payload)?;
                    entries.dispatch.clone().restore(ctx)?.call((id, kind.name(), key, payload))
                })
            }
            Job::Abandon { id } => {
                self.state.replies.borrow_mut().remove(&id);
                self.slice(None, |ctx, entries| entries.abandon.clone().restore(ctx)?.call((id,)))
            }
            Job::Settle { id, outcome } => {
                self.state.host_calls.borrow_mut().remove(&id);
                self.slice(None, |ctx, entries| {
                    let settle = entries.settle.clone().restore(ctx)?;
                    match outcome {
                        Ok(value) => settle.call((id, true, ctx.json_parse(value.to_string())?)),
                        Err(error) => settle.call((id, false, error.0)),
                    }
                })
            }
            Job::Stop => Flow::End,
        }
    }

    fn fire_timers(&self) -> Flow {
        let now = clock();
        loop {
            let due = self.state.timers.borrow().keys().next().copied().filter(|(due, _)| *due <= now);
            let Some(key) = due else { return Flow::Continue };
            self.state.timers.borrow_mut().remove(&key);
            let flow = self.slice(None, |ctx, entries| entries.fire.clone().restore(ctx)?.call((key.1,)));
            if flow == Flow::End {
                return Flow::End;
            }
        }
    }

    /// Enters the engine, and runs what follows until the script waits. `call` is the call that is to
    /// blame for a fault.
    fn slice(
        &self,
        call: Option<u64>,
        enter: impl FnOnce(&Ctx<'_>, &Entries) -> rquickjs::Result<()>,
    ) -> Flow {
        let state = &self.state;
        state.interruptions.set(0);
        state.deadline.set(Some(clock() + state.limits.slice));
        let flow = self.context.with(|ctx| {
            if let Err(error) = enter(&ctx, &self.entries) {
                let fault = caught_fault(&ctx, &error);
                if state.interruptions.get() == 0 {
                    match call {
                        Some(id) => state.answer(id, Err(ScriptError::Raised(fault))),
                        None => state.host.fault(fault),
                    }
                }
            }
            self.run_pending_jobs(&ctx)
        });
        state.deadline.set(None);
        let rejections = std::mem::take(&mut *state.rejections.borrow_mut());
        if state.interruptions.get() > 0 {
            self.fail_calls(call);
        } else {
            rejections.into_iter().for_each(|fault| state.host.fault(fault));
        }
        flow
    }

    /// Runs what promises have to do. What is left after code that was stopped gets time of its own;
    /// jobs that make new jobs without end would take every further slice, and end the script.
    fn run_pending_jobs(&self, ctx: &Ctx<'_>) -> Flow {
        let state = &self.state;
        let mut extensions = 0;
        loop {
            if state.is_overdue() {
                if extensions == MAX_EXTENSIONS {
                    state.interruptions.set(state.interruptions.get() + 1);
                    return Flow::End;
                }
                extensions += 1;
                state.deadline.set(Some(clock() + state.limits.slice));
            }
            if !ctx.execute_pending_job() {
                return Flow::Continue;
            }
        }
    }

    /// Fails what waits for a slice that was stopped: the call that began it. If something else did,
    /// nobody knows whose promise it was, and all calls fail.
    fn fail_calls(&self, call: Option<u64>) {
        let state = &self.state;
        let ids = match call {
            Some(id) if state.replies.borrow().contains_key(&id) => vec![id],
            _ => state.replies.borrow().keys().copied().collect(),
        };
        if ids.is_empty() && !state.stop.load(Ordering::Relaxed) {
            let message = ScriptError::TooLong(state.limits.slice).to_string();
            state.host.fault(ScriptFault::new(message));
        }
        ids.into_iter().for_each(|id| state.answer(id, Err(ScriptError::TooLong(state.limits.slice))));
    }
}
