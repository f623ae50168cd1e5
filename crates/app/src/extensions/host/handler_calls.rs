//! Calls of an extension's handlers and tools, and what belongs to a call while it runs.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hardpan_agent::events::{ClockPause, HandlerClock};
use hardpan_extensions::{CallKind, HostError, ScriptError, ScriptFault, ScriptHost};
use serde_json::Value;
use tokio::sync::mpsc;

use super::super::api::ScriptEvent;
use super::super::events;
use super::{ExtensionHost, lock};

/// How many updates of a tool call wait for the face; of more, some are left out.
const MAX_UPDATES: usize = 64;

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

impl ExtensionHost {
    /// Calls the extension's own handlers of an event, apart from all others, each for as long as `limit`. A
    /// fault is reported.
    pub async fn raise<P: ScriptEvent>(&self, event: P, limit: Duration) {
        let payload = event.to_json();
        let handlers: Vec<String> = {
            let registered = lock(&self.registered);
            let of_event = registered.handlers.iter().filter(|(name, _)| name == P::NAME);
            of_event.map(|(_, handler)| handler.clone()).collect()
        };
        for handler in handlers {
            let called = tokio::time::timeout(limit, self.call_handler(&handler, payload.clone())).await;
            let fault = match called {
                Ok(Ok(_)) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("{} took longer than {} s", P::NAME, limit.as_secs()),
            };
            self.fault(ScriptFault::new(fault));
        }
    }

    /// Calls a part of the script.
    pub async fn call(&self, kind: CallKind, key: &str, payload: String) -> Result<Value, ScriptError> {
        let script = lock(&self.script).upgrade().ok_or(ScriptError::Stopped)?;
        script.call(kind, key, payload).await
    }

    /// Calls a handler with a payload, as JSON. While it asks a person, its clock stands still.
    pub async fn call_handler(&self, handler: &str, payload: String) -> Result<Value, ScriptError> {
        let clock = HandlerClock::current();
        lock(&self.clocks).extend(clock.clone());
        let result = self.call(CallKind::Handler, handler, payload).await;
        *lock(&self.typed_command) = None;
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
    pub(super) fn script_ended(&self) {
        let Ok(agent) = self.agent() else { return };
        let events = lock(&self.registered).events.clone();
        // One that was withdrawn may have a successor of its name.
        if events.is_empty() {
            return;
        }
        if events.iter().any(|event| event == "tool_call") {
            let name = &self.name;
            let reason = format!(
                "the extension {name} decides about tool calls, and has ended: /reload loads it anew"
            );
            events::block_all_calls(&agent, reason);
        }
        agent.events().unsubscribe(&self.name);
    }

    /// How many handlers of tool calls it has had, also those that went with what failed.
    pub fn guards(&self) -> usize {
        lock(&self.registered).guards
    }

    pub async fn call_tool(&self, name: &str, payload: &Value) -> Result<Value, ScriptError> {
        self.call(CallKind::Tool, name, payload.to_string()).await
    }

    /// Lets the extension run a command that was approved as a call of its tool, until the result is dropped.
    pub fn allow_command(&self, command: String) -> AllowedCommand {
        lock(&self.allowed_commands).push(command.clone());
        AllowedCommand { command, all: self.allowed_commands.clone() }
    }

    /// Lets the extension run once, in the place of Hardpan, a command that the person has typed, until the handler
    /// that is asked about it is done.
    pub fn let_typed_command_run(&self, command: &str) {
        *lock(&self.typed_command) = Some(command.to_owned());
    }

    /// Whether these words run, in a shell and unchanged, a command that was approved. It was approved once.
    pub fn use_allowed_command(&self, words: &[String]) -> bool {
        let [shell, flag, command] = words else { return false };
        if !matches!(&**shell, "sh" | "bash") || flag != "-c" {
            return false;
        }
        if lock(&self.typed_command).take_if(|typed| typed == command).is_some() {
            return true;
        }
        let mut allowed = lock(&self.allowed_commands);
        let found = allowed.iter().position(|allowed| allowed == command);
        found.map(|at| allowed.swap_remove(at)).is_some()
    }

    /// Stops the clocks of all handlers that run now.
    pub fn pause_clocks(&self) -> Vec<ClockPause> {
        lock(&self.clocks).iter().map(HandlerClock::pause).collect()
    }

    /// Receives the updates of a tool call.
    pub fn follow_updates(&self, call: &str) -> mpsc::Receiver<Value> {
        let (sender, receiver) = mpsc::channel(MAX_UPDATES);
        lock(&self.updates).insert(call.to_owned(), sender);
        receiver
    }

    /// Receives the events of an answer that the extension gives, under a number.
    pub fn follow_answer(&self) -> (u64, mpsc::UnboundedReceiver<Value>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut answers = lock(&self.answers);
        answers.retain(|_, sender| !sender.is_closed());
        // A number is used once: a script may go on with an answer that nobody waits for.
        let number = self.last_answer.fetch_add(1, Ordering::Relaxed);
        answers.insert(number, sender);
        (number, receiver)
    }

    pub fn forget_answer(&self, number: u64) {
        lock(&self.answers).remove(&number);
    }

    /// An event of an answer. An error means that nobody waits for it.
    pub(super) fn continue_answer(&self, arguments: &Value) -> Result<(), HostError> {
        let number = arguments["request"].as_u64().unwrap_or(u64::MAX);
        let sender = lock(&self.answers).get(&number).cloned();
        let sent = sender.is_some_and(|sender| sender.send(arguments["event"].clone()).is_ok());
        if sent { Ok(()) } else { Err(HostError("Request was aborted".into())) }
    }

    pub fn forget_updates(&self, call: &str) {
        lock(&self.updates).remove(call);
    }
}
