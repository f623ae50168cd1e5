//! [`ExtensionHost`]: what one extension asks for, answered from the conversation.

mod calls; // what a script asks for, by name

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_agent::events::{
    ClockPause, FaceChange, HandlerClock, HandlerFault, Note, NoteKind, NoteLevel, WidgetPlace,
};
use hardpan_agent::{
    Agent, AgentError, ApprovalHandler, ArgumentChoice, Command, CommandError, Delivery, Input, InputSource,
    WeakAgent,
};
use hardpan_extensions::{CallKind, HostError, LogLevel, Script, ScriptError, ScriptFault, ScriptHost};
use hardpan_models::{Catalogue, ThinkingSetting};
use hardpan_tools::{Scope, ShellOptions, Tool, ToolSource, ToolState, WebClient};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::event_order::ToolEventOrder;
use super::messages::{custom_message, parts_from_script};
use super::models::ExtensionProviders;
use super::permissions::{PermissionStore, Permissions};
use super::tool::ExtensionTool;
use super::{
    ExtensionListing, ExtensionOrigin, FoundExtension, entries, events, exec, files, models, network,
    questions, sessions,
};
use crate::approval::{Approver, UserPrompter};
use crate::conversation_app::ConversationApp;

/// How long a handler may take when the extension is loaded anew.
const RAISE_TIME: Duration = Duration::from_secs(30);

/// The built-in tools that an extension's tool of the same name takes the place of. The others belong to
/// what Hardpan keeps of a conversation.
const REPLACEABLE_TOOLS: [&str; 7] = ["bash", "edit", "find", "grep", "ls", "read", "write"];

/// What all extensions of a conversation share.
pub(crate) struct ExtensionSetting {
    /// The conversation, for what a user could do to it.
    pub app: Weak<ConversationApp>,
    /// The models and providers of the settings.
    pub catalogue: Catalogue,
    pub providers: Arc<ExtensionProviders>,
    /// Flags that the user gave.
    pub flags: BTreeMap<String, Option<String>>,
    /// What is in the input line, as far as the face tells.
    pub editor_text: Arc<Mutex<String>>,
    pub scope: Scope,
    pub prompter: Option<Arc<dyn UserPrompter>>,
    pub approvals: Arc<dyn ApprovalHandler>,
    /// Decides about hosts that an extension reaches.
    pub approver: Arc<Approver>,
    pub web: WebClient,
    pub permissions: PermissionStore,
    /// The folder with the data of extensions.
    pub data: Option<PathBuf>,
    pub shell: ShellOptions,
    pub is_project_trusted: bool,
    /// Names of the face's commands, which extensions cannot take.
    pub reserved_names: Vec<&'static str>,
    /// The extensions that registered a command, by its name.
    pub command_owners: Mutex<BTreeMap<String, Vec<Weak<ExtensionHost>>>>,
    /// One question at a time, whichever extension asks.
    pub dialog: tokio::sync::Mutex<()>,
    pub runtime: tokio::runtime::Handle,
}

/// The channel that extensions talk to each other on.
#[derive(Default)]
pub struct ExtensionBus {
    listeners: Mutex<Vec<(String, Weak<ExtensionHost>)>>,
}

/// One extension's side of the conversation.
pub struct ExtensionHost {
    name: Arc<str>,
    origin: ExtensionOrigin,
    root: PathBuf,
    agent: WeakAgent,
    pub(super) permissions: Permissions,
    pub(super) setting: Arc<ExtensionSetting>,
    bus: Arc<ExtensionBus>,
    me: Weak<ExtensionHost>,
    script: Mutex<Weak<Script>>,
    /// What was registered, for lists.
    registered: Mutex<Registered>,
    /// Clocks of the handlers that run now.
    clocks: Mutex<Vec<HandlerClock>>,
    /// Where updates of running tool calls go.
    updates: Mutex<BTreeMap<String, mpsc::UnboundedSender<Value>>>,
    warnings: Mutex<Vec<String>>,
    /// The thinking level that the extension has asked for and that is not yet stored.
    wanted_thinking: Mutex<Option<ThinkingSetting>>,
    tool_event_order: ToolEventOrder,
    /// Commands of calls that run now, in the place of a built-in tool: the person was asked about them.
    allowed_commands: Arc<Mutex<Vec<String>>>,
    /// What the extension sends to the conversation, in its order. The script does not wait for it: its
    /// own handlers may be asked meanwhile.
    outbox: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
}

/// A command that an extension may run while this is there.
pub struct AllowedCommand {
    command: String,
    all: Arc<Mutex<Vec<String>>>,
}

impl Drop for AllowedCommand {
    fn drop(&mut self) {
        let mut all = lock(&self.all);
        if let Some(at) = all.iter().position(|command| *command == self.command) {
            all.swap_remove(at);
        }
    }
}

#[derive(Default)]
struct Registered {
    events: Vec<String>,
    tools: Vec<String>,
    /// By the name that the extension gave, the name under which it is typed.
    commands: BTreeMap<String, String>,
    /// By name, with type, description and default.
    flags: BTreeMap<String, Value>,
    /// By key, with what each does.
    shortcuts: BTreeMap<String, String>,
    /// Event and number of each handler. Until the extension is loaded, they wait.
    handlers: Vec<(String, String)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, HostError> {
    arguments[name].as_str().ok_or_else(|| HostError(format!("{name} must be a string")))
}

fn optional_text(arguments: &Value, name: &str) -> Option<String> {
    arguments[name].as_str().map(str::to_owned)
}

/// What `getArgumentCompletions` returned: values, or values with a label.
fn choices_of(answer: &Value) -> Vec<ArgumentChoice> {
    let choices = answer.as_array().into_iter().flatten().filter_map(|choice| {
        let text = choice.as_str().or_else(|| choice["value"].as_str())?.to_owned();
        let detail = choice["description"].as_str().or_else(|| choice["label"].as_str());
        let detail = detail.filter(|detail| *detail != text).unwrap_or_default().to_owned();
        Some(ArgumentChoice { text, detail })
    });
    choices.collect()
}

fn failed(error: impl std::fmt::Display) -> HostError {
    HostError(error.to_string())
}

/// Tells the user what the extension sent in vain.
fn report<T>(host: &Weak<ExtensionHost>, sent: Result<T, AgentError>) {
    if let (Err(error), Some(host)) = (sent, host.upgrade()) {
        host.fault(ScriptFault { message: error.to_string(), place: None });
    }
}

impl ExtensionHost {
    pub fn new(
        name: &str,
        extension: &FoundExtension,
        agent: &Agent,
        setting: &Arc<ExtensionSetting>,
        bus: &Arc<ExtensionBus>,
    ) -> Arc<Self> {
        // One that cannot be read cannot be loaded either, and that is reported.
        let source = extension.sources.read(&extension.entry).unwrap_or_default();
        let (outbox, mut work) = mpsc::unbounded_channel::<BoxFuture<'static, ()>>();
        setting.runtime.spawn(async move {
            while let Some(work) = work.recv().await {
                work.await;
            }
        });
        Arc::new_cyclic(|me| ExtensionHost {
            outbox,
            name: name.into(),
            origin: extension.origin,
            wanted_thinking: Mutex::default(),
            root: extension.sources.root().to_owned(),
            permissions: Permissions::new(
                &extension.name,
                &extension.entry,
                &extension.sources,
                setting.permissions.clone(),
            ),
            agent: agent.downgrade(),
            setting: setting.clone(),
            bus: bus.clone(),
            me: me.clone(),
            script: Mutex::default(),
            registered: Mutex::default(),
            clocks: Mutex::default(),
            updates: Mutex::default(),
            warnings: Mutex::default(),
            allowed_commands: Arc::default(),
            tool_event_order: ToolEventOrder::of_source(&source),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// In which order it hears of tool calls.
    pub fn tool_event_order(&self) -> ToolEventOrder {
        self.tool_event_order
    }

    /// The folder that holds the extension.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder for what the extension stores, which is made when it is first asked for.
    pub fn data_folder(&self) -> Option<PathBuf> {
        let folder = self.setting.data.as_ref()?.join(&*self.name);
        hardpan_files::create_private_folder(&folder).ok()?;
        folder.canonicalize().ok()
    }

    /// The folder that the conversation works in.
    pub fn cwd(&self) -> String {
        self.setting.scope.folder.to_string_lossy().into_owned()
    }

    fn source(&self) -> ToolSource {
        ToolSource::named(format!("extension:{}", self.name))
    }

    /// Its name, as events and faces carry it.
    pub fn owner(&self) -> &Arc<str> {
        &self.name
    }

    pub fn origin(&self) -> ExtensionOrigin {
        self.origin
    }

    fn app(&self) -> Result<Arc<ConversationApp>, HostError> {
        self.setting.app.upgrade().ok_or_else(|| HostError("the conversation is over".into()))
    }

    pub fn agent(&self) -> Result<Agent, HostError> {
        self.agent.upgrade().ok_or_else(|| HostError("the conversation is over".into()))
    }

    /// The extension is loaded: its handlers take part from now on.
    pub fn begin(self: &Arc<Self>, script: &Arc<Script>) {
        *lock(&self.script) = Arc::downgrade(script);
        for name in self.permissions.missing_variables() {
            self.warn(format!(
                "it does not see {name} of the environment: `hardpan extensions allow {} --env {name}` allows it",
                self.name
            ));
        }
        let handlers = lock(&self.registered).handlers.clone();
        for (event, handler) in handlers {
            self.subscribe(&event, &handler);
        }
    }

    /// Nothing of the extension stays: it could not be loaded, or is loaded anew.
    pub fn withdraw(&self) {
        lock(&self.bus.listeners).retain(|(_, host)| !host.ptr_eq(&self.me));
        // Without one of its providers, the others are still valid rows.
        let _ = self.setting.providers.remove(&self.name, None, &self.setting.catalogue);
        let Ok(agent) = self.agent() else { return };
        agent.events().unsubscribe(&self.name);
        agent.tools().remove_source(&self.source());
        agent.remove_commands_of(&self.name);
        *lock(&self.registered) = Registered::default();
        agent.change_face(&self.name, FaceChange::Cleared);
    }

    /// Calls the extension's own handlers of an event, apart from all others. A fault is reported.
    pub async fn raise(&self, event: &str, mut payload: Value) {
        payload["type"] = json!(event);
        let handlers: Vec<String> = {
            let registered = lock(&self.registered);
            let of_event = registered.handlers.iter().filter(|(name, _)| name == event);
            of_event.map(|(_, handler)| handler.clone()).collect()
        };
        for handler in handlers {
            let called = tokio::time::timeout(RAISE_TIME, self.call_handler(&handler, &payload)).await;
            let fault = match called {
                Ok(Ok(_)) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("{event} took longer than {} s", RAISE_TIME.as_secs()),
            };
            self.fault(ScriptFault { message: fault, place: None });
        }
    }

    /// What went wrong while loading, without stopping it.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.warnings))
    }

    fn warn(&self, warning: String) {
        tracing::warn!(extension = &*self.name, "{warning}");
        lock(&self.warnings).push(warning);
    }

    pub fn listing(&self, path: &Path, origin: ExtensionOrigin) -> ExtensionListing {
        let registered = lock(&self.registered);
        ExtensionListing {
            name: self.name.to_string(),
            path: path.to_owned(),
            origin,
            events: registered.events.clone(),
            tools: registered.tools.clone(),
            commands: registered.commands.values().cloned().collect(),
            declared: self.permissions.declared().cloned(),
            granted: self.permissions.granted(),
            flags: registered.flags.keys().cloned().collect(),
            shortcuts: registered.shortcuts.keys().cloned().collect(),
            providers: self.setting.providers.names_of(&self.name),
        }
    }

    /// The names of its flags.
    pub fn has_flag(&self, name: &str) -> bool {
        lock(&self.registered).flags.contains_key(name)
    }

    /// Its shortcuts, with what each does.
    pub fn shortcuts(&self) -> BTreeMap<String, String> {
        lock(&self.registered).shortcuts.clone()
    }

    /// Does what a shortcut is for.
    pub async fn press(&self, key: &str) {
        if let Err(error) = self.call(CallKind::Shortcut, key, &Value::Null).await {
            self.fault(ScriptFault { message: format!("{key}: {error}"), place: None });
        }
    }

    /// The value of a flag: what the user gave, else the default.
    fn flag(&self, name: &str) -> Value {
        let registered = lock(&self.registered);
        let Some(described) = registered.flags.get(name) else { return Value::Null };
        let is_text = described["type"].as_str() == Some("string");
        match self.setting.flags.get(name) {
            Some(Some(value)) if is_text => json!(value),
            Some(None) if is_text => json!(""),
            Some(value) => json!(!matches!(value.as_deref(), Some("false" | "0" | "no"))),
            None => described["default"].clone(),
        }
    }

    fn subscribe(self: &Arc<Self>, event: &str, handler: &str) {
        let Ok(agent) = self.agent() else { return };
        if !events::subscribe(&agent, self, event, handler) {
            self.warn(format!("there is no event \"{event}\" here: its handler is never called"));
            return;
        }
        let mut registered = lock(&self.registered);
        if !registered.events.iter().any(|known| known == event) {
            registered.events.push(event.to_owned());
        }
    }

    async fn call(&self, kind: CallKind, key: &str, payload: &Value) -> Result<Value, ScriptError> {
        let script = lock(&self.script).upgrade().ok_or(ScriptError::Stopped)?;
        script.call(kind, key, payload.to_string()).await
    }

    /// Calls a handler. While it asks a person, its clock stands still.
    pub async fn call_handler(&self, handler: &str, payload: &Value) -> Result<Value, ScriptError> {
        let clock = HandlerClock::current();
        lock(&self.clocks).extend(clock.clone());
        let result = self.call(CallKind::Handler, handler, payload).await;
        if let Some(clock) = clock {
            lock(&self.clocks).retain(|other| !other.is(&clock));
        }
        if matches!(result, Err(ScriptError::Stopped)) {
            self.script_ended();
        }
        result
    }

    /// The script has ended, as one does that never gives its thread back: nobody asks it any more. If it
    /// decided about tool calls, none runs until it is loaded anew.
    fn script_ended(&self) {
        let Ok(agent) = self.agent() else { return };
        let events = lock(&self.registered).events.clone();
        // One that was withdrawn may have a successor of its name.
        if events.is_empty() {
            return;
        }
        agent.events().unsubscribe(&self.name);
        if events.iter().any(|event| event == "tool_call") {
            events::block_all_calls(&agent, &self.name);
        }
    }

    pub async fn call_tool(&self, name: &str, payload: &Value) -> Result<Value, ScriptError> {
        self.call(CallKind::Tool, name, payload).await
    }

    /// Lets the extension run a command that was approved as a call of its tool, until the result is dropped.
    pub fn allow_command(&self, command: String) -> AllowedCommand {
        lock(&self.allowed_commands).push(command.clone());
        AllowedCommand { command, all: self.allowed_commands.clone() }
    }

    /// Whether these words run, in a shell and unchanged, a command that was approved.
    pub fn is_allowed_command(&self, words: &[String]) -> bool {
        let [shell, flag, command] = words else { return false };
        matches!(&**shell, "sh" | "bash") && flag == "-c" && lock(&self.allowed_commands).contains(command)
    }

    /// Stops the clocks of all handlers that run now.
    pub fn pause_clocks(&self) -> Vec<ClockPause> {
        lock(&self.clocks).iter().map(HandlerClock::pause).collect()
    }

    /// Receives the updates of a tool call.
    pub fn follow_updates(&self, call: &str) -> mpsc::UnboundedReceiver<Value> {
        let (sender, receiver) = mpsc::unbounded_channel();
        lock(&self.updates).insert(call.to_owned(), sender);
        receiver
    }

    pub fn forget_updates(&self, call: &str) {
        lock(&self.updates).remove(call);
    }

    fn register_tool(&self, described: &Value) -> Result<(), HostError> {
        let (agent, name) = (self.agent()?, text(described, "name")?.to_owned());
        let me = self.me.upgrade().ok_or_else(|| HostError("the extension is gone".into()))?;
        // The first to take a name keeps it; the others are told of, and the conversation goes on.
        let tools = agent.tools();
        let result = if REPLACEABLE_TOOLS.contains(&&*name) && tools.is_built_in(&name) {
            let make =
                |built_in| -> Arc<dyn Tool> { Arc::new(ExtensionTool::new(me, described, Some(built_in))) };
            tools.replace_built_in(&self.source(), &name, make)
        } else {
            tools.register(&self.source(), Arc::new(ExtensionTool::new(me, described, None)))
        };
        match result {
            Ok(()) => {
                let mut registered = lock(&self.registered);
                if !registered.tools.contains(&name) {
                    registered.tools.push(name);
                }
            }
            Err(error) => self.warn(format!("the tool {name} is left out: {error}")),
        }
        Ok(())
    }

    fn register_command(&self, described: &Value) -> Result<(), HostError> {
        let (agent, name) = (self.agent()?, text(described, "name")?.to_owned());
        let known = lock(&self.registered).commands.get(&name).cloned();
        let typed_name = known.unwrap_or_else(|| self.name_command(&agent, &name));
        let (me, key) = (self.me.clone(), name.clone());
        let description = described["description"].as_str().unwrap_or_default();
        let mut command = Command::new(description, move |arguments, _| {
            let (me, key) = (me.clone(), key.clone());
            async move {
                let host = me.upgrade().ok_or(CommandError::Crashed)?;
                let called = host.call(CallKind::Command, &key, &json!(arguments)).await;
                let failed =
                    |error: ScriptError| CommandError::failed(format!("extension {}: {error}", host.name));
                called.map_err(failed)?;
                Ok(None)
            }
        })
        .of(&self.name);
        if described["hasCompletions"].as_bool() == Some(true) {
            let (me, key) = (self.me.clone(), name.clone());
            command = command.completed_by(move |typed| {
                let (me, key) = (me.clone(), key.clone());
                async move {
                    let Some(host) = me.upgrade() else { return Vec::new() };
                    // Without an answer there is nothing to choose from.
                    let answer = host.call(CallKind::Complete, &key, &json!(typed)).await.unwrap_or_default();
                    choices_of(&answer)
                }
            });
        }
        agent.add_command(&typed_name, command);
        lock(&self.registered).commands.insert(name, typed_name);
        Ok(())
    }

    /// The name under which a command is typed. Of several extensions with one name, each gets a number;
    /// so does an extension's command that has the name of one of Hardpan's own.
    fn name_command(&self, agent: &Agent, name: &str) -> String {
        let numbered = || {
            let commands = agent.commands();
            let mut names = (1_u32..).map(|number| format!("{name}:{number}"));
            names.find(|name| !commands.contains_key(name)).unwrap_or_default()
        };
        let mut owners = lock(&self.setting.command_owners);
        let others = owners.entry(name.to_owned()).or_default();
        let first = others.iter().find_map(Weak::upgrade);
        others.push(self.me.clone());
        if let Some(first) = first {
            first.number_command(agent, name, numbered);
            return numbered();
        }
        if !self.setting.reserved_names.contains(&name) && !agent.commands().contains_key(name) {
            return name.to_owned();
        }
        let numbered = numbered();
        self.warn(format!("its command /{name} is /{numbered} here, because Hardpan has one of this name"));
        numbered
    }

    /// Gives a command that has its plain name a number, too.
    fn number_command(&self, agent: &Agent, name: &str, numbered: impl Fn() -> String) {
        let mut registered = lock(&self.registered);
        let Some(typed) = registered.commands.get_mut(name).filter(|typed| *typed == name) else { return };
        if let Some(command) = agent.commands().remove(name) {
            *typed = numbered();
            agent.remove_command(name);
            agent.add_command(typed, command);
        }
    }

    fn send_message(&self, arguments: &Value) -> Result<(), HostError> {
        let (agent, message) = (self.agent()?, custom_message(&arguments["message"]));
        let options = &arguments["options"];
        let triggers = options["triggerTurn"].as_bool();
        let delivery = match options["deliverAs"].as_str() {
            Some("nextTurn") => {
                agent.attach_to_next_prompt(message);
                return Ok(());
            }
            Some("followUp") => Delivery::FollowUp,
            _ => Delivery::Steer,
        };
        let me = self.me.clone();
        // To a run in progress, unless the extension says no; else a run begins only if it says so.
        if triggers.unwrap_or(agent.is_busy()) {
            let claim = agent.claim_work();
            self.send(async move {
                // A run may take long, and what is sent next does not wait for its end.
                tokio::spawn(async move {
                    report(&me, agent.queue_message(message, delivery, claim).await);
                });
            });
        } else {
            self.send(async move {
                report(&me, agent.append_message(message).await);
            });
        }
        Ok(())
    }

    /// Sends a text as the user would, without waiting for the run.
    fn send_input(&self, agent: Agent, content: &Value, delivery: Delivery) {
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for part in parts_from_script(content) {
            match part {
                hardpan_prompt::MessagePart::Text { text } => texts.push(text.to_string()),
                hardpan_prompt::MessagePart::Image(image) => images.push(image),
                _ => {}
            }
        }
        let source = InputSource::Extension;
        let input = Input { text: texts.join("\n"), below: None, images, source, id: None };
        let (me, claim) = (self.me.clone(), agent.claim_work());
        self.send(async move {
            // A run may take long, and what is sent next does not wait for its end.
            tokio::spawn(async move {
                report(&me, agent.queue_claimed(input, delivery, claim).await);
            });
        });
    }

    fn send(&self, work: impl Future<Output = ()> + Send + 'static) {
        // The receiver lives as long as this host.
        let _ = self.outbox.send(Box::pin(work));
    }

    fn tools(&self) -> Result<Value, HostError> {
        let tools = self.agent()?.tools().list();
        let describe = |tool: &hardpan_tools::ToolListing| json!({ "name": tool.name, "description": tool.summary, "active": tool.state == ToolState::On });
        Ok(tools.iter().map(describe).collect())
    }

    fn set_active_tools(&self, names: &Value) -> Result<(), HostError> {
        let agent = self.agent()?;
        let names: Vec<&str> = names.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for tool in agent.tools().list() {
            let state = if names.contains(&&*tool.name) { ToolState::On } else { ToolState::Off };
            if tool.state != state {
                // Stored, and the tools of requests stay as they are until a fold.
                self.setting.runtime.block_on(agent.switch_tool(&tool.name, state)).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn set_thinking(&self, level: &str) -> Result<(), HostError> {
        let setting: ThinkingSetting = level.parse().map_err(failed)?;
        let app = self.app()?;
        *lock(&self.wanted_thinking) = Some(setting);
        let me = self.me.clone();
        // Not waited for: handlers of this extension may be told of it.
        self.send(async move {
            let selected = app.select_thinking(setting).await;
            let Some(host) = me.upgrade() else { return };
            lock(&host.wanted_thinking).take_if(|wanted| *wanted == setting);
            if let Err(error) = selected {
                host.fault(ScriptFault { message: format!("setThinkingLevel: {error}"), place: None });
            }
        });
        Ok(())
    }

    fn change_face(&self, change: FaceChange) -> Result<(), HostError> {
        self.agent()?.change_face(&self.name, change);
        Ok(())
    }

    fn change_widget(&self, arguments: &Value) -> Result<(), HostError> {
        let lines = arguments["lines"]
            .as_array()
            .map(|lines| lines.iter().map(|line| line.as_str().unwrap_or_default().to_owned()).collect());
        let place = match arguments["placement"].as_str() {
            Some("belowEditor") => WidgetPlace::BelowEditor,
            _ => WidgetPlace::AboveEditor,
        };
        self.change_face(FaceChange::Widget { key: text(arguments, "key")?.to_owned(), lines, place })
    }

    fn emit_on_bus(&self, channel: &str, data: &Value) {
        let listeners: Vec<Arc<ExtensionHost>> = lock(&self.bus.listeners)
            .iter()
            .filter(|(name, host)| name == channel && !host.ptr_eq(&self.me))
            .filter_map(|(_, host)| host.upgrade())
            .collect();
        for host in listeners {
            let (channel, data) = (channel.to_owned(), data.clone());
            self.setting.runtime.spawn(async move {
                // Its own faults are reported by the script.
                let _ = host.call(CallKind::Bus, &channel, &data).await;
            });
        }
    }

    fn notify(&self, arguments: &Value) -> Result<(), HostError> {
        let level = serde_json::from_value(arguments["level"].clone()).unwrap_or(NoteLevel::Info);
        let kind = NoteKind::Extension { extension: self.name.clone(), level };
        self.agent()?.publish_note(&Note { text: text(arguments, "text")?.to_owned(), kind });
        Ok(())
    }
}
