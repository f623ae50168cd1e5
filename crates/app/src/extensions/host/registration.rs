//! What an extension registers: handlers, tools, commands, flags and shortcuts.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use hardpan_agent::{Agent, ArgumentChoice, Command, CommandError};
use hardpan_extensions::{CallKind, HostError, ScriptError, ScriptFault, ScriptHost};
use hardpan_tools::Tool;
use serde_json::{Value, json};

use super::super::events;
use super::super::tool::ExtensionTool;
use super::limits::{MAX_DESCRIPTION, MAX_REGISTERED, check_count, check_size, cut_text};
use super::{ExtensionHost, lock, text};

/// The built-in tools that an extension's tool of the same name takes the place of. The others belong to
/// what Hardpan keeps of a conversation.
const REPLACEABLE_TOOLS: [&str; 7] = ["bash", "edit", "find", "grep", "ls", "read", "write"];

/// The largest tool, as JSON: its description and its schema go to the model with every request.
const MAX_TOOL_BYTES: usize = 256 << 10;

#[derive(Default)]
pub(super) struct Registered {
    pub events: Vec<String>,
    pub tools: Vec<String>,
    /// By the name that the extension gave, the name under which it is typed.
    pub commands: BTreeMap<String, String>,
    /// By name, with type, description and default.
    pub flags: BTreeMap<String, Value>,
    /// By key, with what each does.
    pub shortcuts: BTreeMap<String, String>,
    /// Event and number of each handler. Until the extension is loaded, they wait.
    pub handlers: Vec<(String, String)>,
    /// How many handlers of `tool_call` it ever had, also those that went with what failed.
    pub guards: usize,
}

/// What is wrong with the schema of a tool's parameters.
fn schema_problem(parameters: &Value) -> Option<String> {
    match (parameters, &parameters["type"]) {
        (Value::Null, _) => None,
        (Value::Object(_), Value::Null) => None,
        (Value::Object(_), kind) if kind == "object" => None,
        (Value::Object(_), kind) => {
            Some(format!("its parameters have the type {kind}, and must be an object"))
        }
        _ => Some("its parameters are no schema".to_owned()),
    }
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

impl ExtensionHost {
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
        if let Err(error) = self.call(CallKind::Shortcut, key, Value::Null.to_string()).await {
            self.fault(ScriptFault::new(format!("{key}: {error}")));
        }
    }

    /// The value of a flag: what the user gave, else the default.
    pub(super) fn flag(&self, name: &str) -> Value {
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

    pub(super) fn subscribe(self: &Arc<Self>, event: &str, handler: &str) {
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

    pub(super) fn register_tool(&self, described: &Value) -> Result<(), HostError> {
        let (agent, name) = (self.agent()?, text(described, "name")?.to_owned());
        let me = self.me.upgrade().ok_or_else(|| HostError("the extension is gone".into()))?;
        super::limits::check_name("the name of a tool", &name)?;
        check_size("the description of a tool", described, MAX_TOOL_BYTES)?;
        if let Some(problem) = schema_problem(&described["parameters"]) {
            // Providers would refuse every request for it.
            self.warn(format!("the tool {name} is left out: {problem}"));
            return Ok(());
        }
        {
            let registered = lock(&self.registered);
            if !registered.tools.contains(&name) {
                check_count("tools", registered.tools.len(), MAX_REGISTERED)?;
            }
        }
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

    pub(super) fn register_command(&self, described: &Value) -> Result<(), HostError> {
        let (agent, name) = (self.agent()?, text(described, "name")?.to_owned());
        super::limits::check_name("the name of a command", &name)?;
        let known = {
            let registered = lock(&self.registered);
            if !registered.commands.contains_key(&name) {
                check_count("commands", registered.commands.len(), MAX_REGISTERED)?;
            }
            registered.commands.get(&name).cloned()
        };
        let typed_name = known.unwrap_or_else(|| self.name_command(&agent, &name));
        let (me, key) = (self.me.clone(), name.clone());
        let description = cut_text(described["description"].as_str().unwrap_or_default(), MAX_DESCRIPTION);
        let mut command = Command::new(&description, move |arguments, _| {
            let (me, key) = (me.clone(), key.clone());
            async move {
                let host = me.upgrade().ok_or(CommandError::Crashed)?;
                let called = host.call(CallKind::Command, &key, json!(arguments).to_string()).await;
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
                    let answer = host
                        .call(CallKind::Complete, &key, json!(typed).to_string())
                        .await
                        .unwrap_or_default();
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
    pub(super) fn name_command(&self, agent: &Agent, name: &str) -> String {
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
    pub(super) fn number_command(&self, agent: &Agent, name: &str, numbered: impl Fn() -> String) {
        let mut registered = lock(&self.registered);
        let Some(typed) = registered.commands.get_mut(name).filter(|typed| *typed == name) else { return };
        if let Some(command) = agent.commands().remove(name) {
            *typed = numbered();
            agent.remove_command(name);
            agent.add_command(typed, command);
        }
    }
}
